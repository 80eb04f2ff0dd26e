"""Conditions learnt from configurations of define-by-run studies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Domain,
    Float,
    Integer,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.space.conditions import infer_conditions

Configuration = dict[str, Any]


def drawn(
    draw: Callable[[np.random.Generator], Configuration], n: int = 40
) -> list[Configuration]:
    rng = np.random.default_rng(0)
    return [draw(rng) for _ in range(n)]


def test_nothing_missing_means_no_conditions() -> None:
    domains = {"x": Float(0, 1), "k": Categorical("ab".split())}
    assert infer_conditions(domains, [{"x": 0.5, "k": "ab"}]) == ((), frozenset())
    assert infer_conditions(domains, []) == ((), frozenset())


@pytest.mark.parametrize(
    ("parent", "seen", "condition"),  # whether x was there for values of the parent
    [
        (
            Categorical([*"abc"]),
            [(v, v > "a") for v in "abc"] * 9,
            Condition("x", "k", ("b", "c")),
        ),
        # Values that were never seen stay active, those outside the present domain are left out.
        (Categorical([*"abc"]), [("a", False), ("b", True)] * 3, Condition("x", "k", ("b", "c"))),
        (Categorical(["b"]), [("a", False), ("b", True)] * 3, Condition("x", "k", ("b",))),
        # A threshold from above, and a number that is no threshold.
        (Integer(0, 9), [(n, n < 4) for n in range(10)], RangeCondition("x", "k", high=3.5)),
        (Integer(0, 4), [(n, n in (1, 3)) for n in range(5)] * 2, Condition("x", "k", (1, 3))),
        (
            Ordinal([*"lmh"]),
            [(level, level == "h") for level in "lmh"] * 3,
            Condition("x", "k", ("h",)),
        ),
    ],
)
def test_the_parent_decides(
    parent: Domain, seen: list[tuple[Any, bool]], condition: Condition | RangeCondition
) -> None:
    domains = {"seed": Constant(1), "C": Float(0, 1), "k": parent, "x": Float(0, 1)}
    numbers = np.random.default_rng(0).random(len(seen)).tolist()
    configurations = [
        {"C": number, "k": value, **({"x": 0.5} if has_x else {})}
        for number, (value, has_x) in zip(numbers, seen, strict=True)
    ]
    assert infer_conditions(domains, configurations) == ((condition,), frozenset())


def test_true_and_one_are_told_apart() -> None:
    domains = {"k": Categorical([1, True]), "x": Float(0, 1)}
    conditions, _ = infer_conditions(domains, [{"k": 1}, {"k": True, "x": 0.1}] * 3)
    (condition,) = conditions
    assert isinstance(condition, Condition) and condition.values[0] is True


def test_a_count_of_layers() -> None:
    def draw(rng: np.random.Generator) -> Configuration:
        n = int(rng.integers(1, 5))
        return {"lr": float(rng.random()), "n": n, **{f"u{i}": 8 for i in range(1, n + 1)}}

    domains: dict[str, Domain] = {"lr": Float(0, 1), "n": Integer(1, 4)}
    domains |= {f"u{i}": Integer(4, 16) for i in range(1, 5)}
    conditions, optional = infer_conditions(domains, drawn(draw))
    assert conditions == (
        RangeCondition("u2", "n", low=1.5),
        RangeCondition("u3", "n", low=2.5),
        RangeCondition("u4", "n", low=3.5),
    )
    assert not optional


def test_nested_branches() -> None:
    def draw(rng: np.random.Generator) -> Configuration:
        if rng.random() < 0.5:
            return {"model": "svm", "C": float(rng.random())}
        n = int(rng.integers(1, 4))
        return {"model": "net", "n": n, **{f"u{i}": 8 for i in range(1, n + 1)}}

    domains: dict[str, Domain] = {
        "C": Float(0, 1),
        "u1": Integer(4, 16),
        "u2": Integer(4, 16),
        "u3": Integer(4, 16),
        "n": Integer(1, 3),
        "model": Categorical(["svm", "net"]),
    }
    configurations = drawn(draw)
    conditions, optional = infer_conditions(domains, configurations)
    parents = {condition.child: condition.parent for condition in conditions}
    assert parents == {"C": "model", "u1": "model", "u2": "n", "u3": "n", "n": "model"}
    space = SearchSpace(domains, conditions, optional)
    units = space.to_units(configurations)
    assert [space.to_configuration(row).keys() for row in units] == [
        c.keys() for c in configurations
    ]


def test_two_parents_at_once() -> None:
    def draw(rng: np.random.Generator) -> Configuration:
        opt, depth = str(rng.choice(["adam", "sgd", "rms"])), int(rng.integers(1, 9))
        conditional = {"x": float(rng.random())} if opt == "sgd" and depth > 4 else {}
        return {"lr": float(rng.random()), "opt": opt, "depth": depth, **conditional}

    domains: dict[str, Domain] = {
        "lr": Float(0, 1),
        "opt": Categorical(["adam", "sgd", "rms"]),
        "depth": Integer(1, 8),
        "x": Float(0, 1),
    }
    conditions, optional = infer_conditions(domains, drawn(draw, 80))
    assert set(conditions) == {
        Condition("x", "opt", ("sgd",)),
        RangeCondition("x", "depth", low=4.5),
    }
    assert not optional
    # Of a few configurations chance would tell as much.
    assert infer_conditions(domains, drawn(draw, 8))[1] <= {"x"}


def test_what_two_branches_share_is_optional_only_within_them() -> None:
    def draw(rng: np.random.Generator) -> Configuration:
        model = str(rng.choice(["svm", "forest", "boosting"]))
        booster = {"booster": str(rng.choice(["tree", "linear"]))} if model == "boosting" else {}
        has_trees = model == "forest" or booster.get("booster") == "tree"
        return {"model": model, **booster, **({"trees": 8} if has_trees else {})}

    domains: dict[str, Domain] = {
        "model": Categorical(["svm", "forest", "boosting"]),
        "booster": Categorical(["tree", "linear"]),
        "trees": Integer(1, 9),
    }
    conditions, optional = infer_conditions(domains, drawn(draw))
    assert conditions == (
        Condition("booster", "model", ("boosting",)),
        Condition("trees", "model", ("forest", "boosting")),
    )
    assert optional == {"trees"}


def test_absence_that_shows_nothing_yet() -> None:
    """A parameter that a study began to ask for later."""
    domains = {"k": Categorical(["a", "b"]), "x": Float(0, 1)}
    seen = [{"k": "a"}, {"k": "b"}] * 3 + [{"k": "a"}, {"k": "b", "x": 0.1}] * 4
    assert infer_conditions(domains, seen) == ((), frozenset({"x"}))
    condition = Condition("x", "k", ("b",))
    assert infer_conditions(domains, seen, {"x": 6}) == ((condition,), frozenset({"x"}))


def test_what_nothing_explains_and_what_was_never_seen_is_optional() -> None:
    def draw(rng: np.random.Generator) -> Configuration:
        conditional = {"x": 0.5} if rng.random() < 0.5 else {}
        return {"k": str(rng.choice(["a", "b"])), "lr": float(rng.random()), **conditional}

    domains = {"k": Categorical(["a", "b"]), "lr": Float(0, 1), "x": Float(0, 1)}
    for seen in (drawn(draw), [{"k": "a", "lr": 0.5}, {"k": "b", "lr": 0.5}]):
        assert infer_conditions(domains, seen) == ((), frozenset({"x"}))


def test_a_few_random_numbers_are_no_evidence() -> None:
    """Any two numbers can be told apart by a threshold; the kernel is the better explanation."""
    domains = {"lr": Float(0, 1), "kernel": Categorical(["a", "b"]), "x": Float(0, 1)}
    seen = [{"lr": 0.1, "kernel": "a"}, {"lr": 0.7, "kernel": "b", "x": 0.5}]
    assert infer_conditions(domains, seen)[0] == (Condition("x", "kernel", ("b",)),)
    del domains["kernel"]
    assert infer_conditions(domains, seen) == ((), frozenset({"x"}))


def test_much_evidence_for_a_threshold_of_a_float() -> None:
    domains = {"lr": Float(0, 1), "x": Float(0, 1)}
    seen = [
        {"lr": v, **({"x": 0.5} if v > 0.5 else {})} for v in np.linspace(0, 0.99, 12).tolist()
    ]
    (condition,), optional = infer_conditions(domains, seen)
    assert isinstance(condition, RangeCondition) and condition.low == pytest.approx(0.495)
    assert not optional


def test_conditions_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="'x' lists no value of 'k'"):
        Condition("x", "k", ())
    with pytest.raises(ValueError, match="'x' needs a low or a high"):
        RangeCondition("x", "k")
