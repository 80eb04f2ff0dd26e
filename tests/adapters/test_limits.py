import math

import pytest

from dre_plugins.adapters.common.limits import Limits


def test_violations_by_hand() -> None:
    limits = Limits.of({"size": 10, "accuracy": (0.5, None), "share": (0.25, 0.75)})
    result = {"size": 12.0, "accuracy": 0.75, "share": 0.5, "other": 1.0}
    assert limits.violations(result) == {"size": 2.0, "accuracy": -0.25, "share": -0.25}
    assert limits.violations({"size": math.inf})["size"] == math.inf


def test_infinite_and_huge_values_within_and_beyond() -> None:
    limits = Limits.of({"size": 10, "accuracy": (0.5, None), "steps": 10**400})
    result = {"size": -math.inf, "accuracy": math.inf, "steps": 10**400}
    assert limits.violations(result) == dict.fromkeys(result, -math.inf)
    assert limits.violations({"size": 10**400, "accuracy": -(10**400)})["size"] == math.inf
    assert limits.violations({"accuracy": -(10**400)})["accuracy"] == math.inf


@pytest.mark.parametrize("result", [{}, {"size": None}, {"size": "big"}, {"size": math.nan}])
def test_what_is_not_reported_is_unknown(result) -> None:
    said: list[tuple[str, str]] = []
    limits = Limits.of({"size": 10, "share": 1})
    violations = limits.violations_of(3, {**result, "share": 2}, lambda *text: said.append(text))
    assert math.isnan(violations["size"]) and violations["share"] == 1.0
    assert [("['size']" in text, topic) for text, topic in said] == [(True, "constraints")]


@pytest.mark.parametrize(
    "limit", ["10", None, (None, None), (1, 2, 3), (2.0, 1.0), math.nan, True, ("a", 1.0)]
)
def test_a_limit_must_be_one(limit) -> None:
    with pytest.raises(ValueError, match=r"constraints\['size'\] must be"):
        Limits.of({"size": limit})


def test_limits_must_be_by_metric() -> None:
    with pytest.raises(ValueError, match=r"constraints must be a dictionary.*got \['size'\]"):
        Limits.of(["size"])


def test_no_limits_are_no_constraints() -> None:
    assert Limits.of(None).violations({"size": 1.0}) == {}
