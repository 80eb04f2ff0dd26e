"""Rules known beforehand: every candidate satisfies them, however few configurations do."""

from typing import Any

import numpy as np
import pytest
from small_spaces import is_shared, rising

from dre_plugins.space import Categorical, Condition, Constant, Float, Integer, SearchSpace
from dre_plugins.space.candidates import mutate, sobol
from dre_plugins.space.rules import MAX_TRIED, N_EXAMPLES, Rule, RuleError
from dre_plugins.space.seen import Seen

MIXED = SearchSpace(
    {
        "low": Integer(1, 64),
        "high": Integer(1, 64),
        "rate": Float(1e-5, 1.0, "log"),
        "kind": Categorical(("a", "b", "c")),
        "size": Constant(3),
    }
)
SHARES = SearchSpace(
    {**{name: Float(0.0, 1.0) for name in "abcdef"}, "kind": Categorical(("x", "y", "z"))}
)
BRANCHES = SearchSpace(
    {"kernel": Categorical(("linear", "rbf")), "gamma": Float(0.0, 1.0)},
    [Condition("gamma", "kernel", ("rbf",))],
)


def free(space: SearchSpace) -> np.ndarray:
    return np.full(space.n_parameters, np.nan)


def all_hold(space: SearchSpace, valid: Any, units: np.ndarray) -> bool:
    return all(valid(space.to_configuration(row)) for row in units)


def test_without_a_predicate_candidates_are_the_plain_ones() -> None:
    rule, rng = Rule(MIXED, None), np.random.default_rng(3)
    points = rule.spread(40, rng, free(MIXED))
    children = rule.children(points, 30, rng, free(MIXED))
    rng = np.random.default_rng(3)
    assert np.array_equal(points, sobol(4, 40, rng))
    assert np.array_equal(children, mutate(MIXED, points, 30, rng))
    assert rule.holds(points).all() and rule.kept(points) is points


def test_a_configuration_that_is_asked_of_is_the_one_that_is_suggested() -> None:
    units = sobol(4, 500, np.random.default_rng(0))
    asked: list[dict[str, Any]] = []

    def noting(c: dict[str, Any]) -> bool:
        asked.append(dict(c))
        return True

    Rule(MIXED, noting).holds(units)
    assert asked == [MIXED.to_configuration(row) for row in units]
    assert list(asked[0]) == ["low", "high", "rate", "kind", "size"] and asked[0]["size"] == 3


@pytest.mark.parametrize(("space", "valid"), [(MIXED, rising), (SHARES, is_shared)])
def test_all_candidates_are_valid_and_spread(space, valid) -> None:
    rule, rng = Rule(space, valid, seed=1), np.random.default_rng(0)
    points = rule.spread(512, rng, free(space))
    children = rule.children(points[:32], 256, rng, free(space))
    for units in (points, children):
        assert len(units) > 120
        assert all_hold(space, valid, units)
        assert len(np.unique(space.canonical(units), axis=0)) > 100
    # Moves stay within the thin set and still go everywhere along it.
    assert (points.max(axis=0) - points.min(axis=0) > 0.7).all()


def test_a_thin_set_is_approached_from_any_side() -> None:
    """Six rounds of children come near an optimum in six dimensions, three of them on the band."""
    rule, rng = Rule(SHARES, is_shared, seed=1), np.random.default_rng(0)
    best = np.array([0.6, 0.3, 0.1, 0.2, 0.9, 0.5])

    def distance(units: np.ndarray) -> np.ndarray:
        return np.square(units[:, :6] - best).sum(axis=1) ** 0.5

    units = rule.spread(512, rng, free(SHARES))
    for _ in range(6):
        parents = units[np.argsort(distance(units))[:32]]
        units = np.concatenate([units, rule.children(parents, 256, rng, free(SHARES))])
    assert distance(units).min() < 0.25 and all_hold(SHARES, is_shared, units)


def test_given_values_are_kept_and_the_rest_goes_with_them() -> None:
    rule, fixed = Rule(MIXED, rising), free(MIXED)
    fixed[1] = MIXED.domains["high"].to_unit(2)
    points = rule.spread(64, np.random.default_rng(0), fixed)
    assert {MIXED.to_configuration(row)["high"] for row in points} == {2}
    assert {MIXED.to_configuration(row)["low"] for row in points} == {1, 2}
    shares, fixed = Rule(SHARES, is_shared), free(SHARES)
    fixed[:2] = 0.9, 0.9
    assert not shares.may_hold(fixed)
    fixed[1] = np.nan
    assert shares.may_hold(fixed) and len(shares.spread(64, np.random.default_rng(0), fixed)) > 30


def test_a_finite_space_ends_with_its_valid_configurations() -> None:
    space = SearchSpace({"low": Integer(1, 4), "high": Integer(1, 4)})
    rule, seen = Rule(space, rising), Seen()
    assert rule.n_configurations == 10 and len(rule.assignments(100)) == 10
    seen.include(space.to_units([{"low": 1, "high": 1}]))
    left = rule.unseen(free(space), seen, np.random.default_rng(0), 99)
    assert len(left) == 9 and all_hold(space, rising, left)
    left = rule.unseen(space.to_units([{"low": 3}])[0], seen, np.random.default_rng(0), 99)
    assert [space.to_configuration(row)["low"] for row in left] == [3, 3]


def test_the_only_valid_configurations_of_a_finite_space_are_found() -> None:
    space = SearchSpace({f"n{i}": Integer(0, 9) for i in range(4)})
    rule = Rule(space, lambda c: sum(c.values()) == 36)
    assert rule.n_configurations == 1
    assert rule.check() == ""  # all of them are known
    point = rule.spread(8, np.random.default_rng(0), free(space))[0]
    assert set(space.to_configuration(point).values()) == {9}


def test_a_rule_that_nothing_satisfies_says_so() -> None:
    with pytest.raises(RuleError, match=rf"none of {MAX_TRIED}.* low, high, rate, kind .*narrow"):
        Rule(MIXED, lambda c: c["rate"] > 2).check()
    with pytest.raises(RuleError, match=r"none of 4 configurations of a "):
        Rule(SearchSpace({"a": Integer(1, 4)}), lambda c: False).check()


def test_a_rule_that_hardly_anything_satisfies_is_warned_of() -> None:
    warning = Rule(MIXED, lambda c: abs(c["rate"] - 1e-3) < 3e-6).check()
    assert "were tried" in warning and "Narrower ranges" in warning
    assert Rule(MIXED, rising).check() == ""
    assert len(Rule(MIXED, rising).examples(free(MIXED))) == N_EXAMPLES


def test_what_a_rule_raises_names_the_configuration() -> None:
    with pytest.raises(RuleError, match=r"ZeroDivisionError: .*'low': 3") as raised:
        Rule(MIXED, lambda c: c["low"] / 0 > 1).allows({"low": 3})
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    for nothing, name in ((lambda c: None, "None"), (lambda c: (c[n] for n in c), "<generator")):
        with pytest.raises(RuleError, match=f"returned {name}"):
            Rule(MIXED, nothing).allows({"low": 3})


def test_a_rule_that_reads_an_inactive_parameter() -> None:
    def reads(c: dict[str, Any]) -> bool:
        return c["gamma"] < 0.5

    with pytest.raises(RuleError, match=r"'gamma', for .*'linear'.*c\.get"):
        Rule(BRANCHES, reads).holds(np.array([[0.1, np.nan]]))
    learnt = Rule(BRANCHES, reads, is_learnt=True)
    assert learnt.holds(np.array([[0.1, np.nan], [0.9, 0.9], [0.9, 0.1]])).tolist() == [1, 0, 1]
    # A key of something else is no parameter.
    with pytest.raises(RuleError, match="KeyError"):
        Rule(BRANCHES, lambda c: {}[c["kernel"]], is_learnt=True).allows({"kernel": "rbf"})
