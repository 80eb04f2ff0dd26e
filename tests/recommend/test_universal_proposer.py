"""The universal prior in its turns: what it suggests, and what it is conditioned on."""

import math
from collections import Counter
from unittest.mock import Mock

import numpy as np
import pytest
from presets import of_steps
from small_spaces import PLANE, evaluated, history_of, sphere

from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.recommend.schedule import is_branch_turn
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.universal_prior import possible_targets
from dre_plugins.space import Categorical, Condition, Float, SearchSpace
from dre_plugins.space.rules import Rule
from dre_plugins.study import AskTell

QUICK = of_steps(20)
SETTINGS = RecommenderSettings(preset=QUICK, n_startup_trials=4)


# ------------------------------------------------------------------------------ what it suggests


def test_it_finds_a_smooth_optimum_alone() -> None:
    history = history_of(6)
    recommender = Recommender(PLANE, SETTINGS, seed=0)
    for _ in range(10):
        (suggestion,) = recommender.suggest(history, index=2 * len(history) + 1)
        assert suggestion.source == "universal-prior"
        expected = suggestion.explanation
        assert 0.0 < expected.predicted_rank <= expected.n_reference and expected.spread >= 0.0
        value = sphere(suggestion.configuration)
        history.append(Trial(suggestion.configuration, TrialState.COMPLETE, value))
    assert max(trial.value for trial in history) > -0.02


def test_it_knows_which_ranks_to_expect() -> None:
    (suggestion,) = Recommender(PLANE, SETTINGS, seed=0).suggest(history_of(40), index=41)
    assert suggestion.explanation.predicted_rank < 10.0 and suggestion.explanation.spread < 10.0
    assert "universal prior" in str(suggestion.explanation)


def test_what_runs_is_believed() -> None:
    recommender = Recommender(PLANE, SETTINGS, seed=0)
    history = history_of(20)
    (first,) = recommender.suggest(history, index=21)
    running = Trial(first.configuration, TrialState.RUNNING)
    (second,) = recommender.suggest([*history, running], index=21)
    moved = [abs(first.configuration[name] - second.configuration[name]) for name in "xy"]
    assert second.source == "universal-prior" and max(moved) > 0.01


def test_values_that_no_trial_has_are_tried() -> None:
    """Of four values of seven one is far better: the others are not expected to be as bad."""
    space = SearchSpace({"kind": Categorical(list("abcdefg")), **PLANE.domains})

    def ended(configuration: dict[str, object]) -> Trial:
        gain = {"d": 10.0, "f": 12.0}.get(configuration["kind"], 0.0)
        return Trial(configuration, TrialState.COMPLETE, sphere(configuration) + gain)

    history = [
        ended({"kind": kind, **trial.configuration})
        for kind, trial in zip("abcd" * 6, history_of(24), strict=True)
    ]
    recommender = Recommender(space, SETTINGS, seed=0)
    for _ in range(12):
        (suggestion,) = recommender.suggest(history, index=2 * len(history) + 1)
        history.append(ended(suggestion.configuration))
    assert {trial.configuration["kind"] for trial in history} == set("abcdefg")


@pytest.mark.parametrize(
    ("n", "index", "x", "source"),
    [
        (12, 13, -0.3, "universal-prior"),
        (20, 21, -1.0, "universal-prior"),
        (20, 22, -1.0, "model"),
    ],
)
def test_given_values_are_kept_and_the_others_are_good_beside_them(n, index, x, source) -> None:
    recommender = Recommender(PLANE, SETTINGS, seed=0)
    (suggestion,) = recommender.suggest(history_of(n), index=index, fixed={"x": x})
    assert suggestion.source == source and suggestion.configuration["x"] == x
    assert suggestion.configuration["y"] == pytest.approx(-0.7, abs=0.3)


def test_a_table_is_searched_whole() -> None:
    rows = np.random.default_rng(1).random((300, 2))
    values = [sphere({"x": 2 * x - 1, "y": 2 * y - 1}) for x, y in rows]
    (suggestion,) = Recommender(PLANE, SETTINGS, seed=0).suggest(
        history_of(21), index=21, candidates=PLANE.canonical(rows)
    )
    assert suggestion.source == "universal-prior"
    assert values[int(np.abs(rows - suggestion.units).sum(1).argmin())] > np.quantile(values, 0.9)


def test_conditional_and_mixed_spaces() -> None:
    space = SearchSpace(
        {
            "kind": Categorical(("a", "b")),
            "x": Float(0.0, 1.0),
            "y": Float(1e-4, 1.0, scale="log"),
        },
        [Condition("x", "kind", ("a",)), Condition("y", "kind", ("b",))],
    )

    def f(configuration) -> float:
        if configuration["kind"] == "a":
            return -abs(configuration["x"] - 0.2)
        return -1.0 - configuration["y"]

    study = AskTell(
        space, direction="maximize", seed=0, settings=Settings(preset=QUICK), n_startup_trials=6
    )
    for i in range(30):
        number, configuration = study.ask()
        study.tell(number, None if i % 7 == 3 else f(configuration))
    assert study.stats["universal-prior"] == 12 and study.stats["fallbacks"] == 0
    free = [number for number in range(18, 30) if not is_branch_turn(number)]
    # The worst a is better than all b.
    assert [study.trials[number].configuration["kind"] for number in free] == ["a"] * 6


def test_its_failure_costs_no_trial(monkeypatch) -> None:
    broken = Mock(side_effect=np.linalg.LinAlgError("not positive definite"))
    monkeypatch.setattr("dre_plugins.recommend.universal_prior.load_network", broken)
    stats: Counter[str] = Counter()
    recommender = Recommender(PLANE, SETTINGS, seed=0, stats=stats)
    made = [recommender.suggest(history_of(8), index=index)[0].source for index in range(4)]
    assert made == ["model", "fallback"] * 2 and stats["fallbacks"] == 2


# ----------------------------------------------------------------------- what it is conditioned on


def ranks(values) -> np.ndarray:
    filled = np.array([-math.inf if math.isnan(value) else value for value in values])
    return np.unique(filled, return_inverse=True)[1].astype(float)


def target(values) -> np.ndarray:
    return possible_targets(np.array(values, dtype=float), ranks(values))[0].values.numpy()


def test_units_of_the_metric_do_not_matter() -> None:
    values = np.random.default_rng(0).normal(size=30)
    assert (target(values * 2.0**40) == target(values)).all()
    assert target(1e3 * values - 7.0) == pytest.approx(target(values))
    assert target(values * 1e300) == pytest.approx(target(values))


def test_infinities_and_failures_are_as_the_worst_and_best() -> None:
    found = target([0.0, 1.0, math.inf, -math.inf, math.nan])
    assert np.isfinite(found).all()
    assert found[2] == found.max() and found[0] > found[3] and found[0] > found[4]
    assert np.isfinite(target([math.inf, -math.inf, math.nan])).all()


@pytest.mark.parametrize(("last", "n"), [(-3.0, 2), (math.nan, 1), (math.inf, 1)])
def test_values_alone_are_read_where_they_tell_all(last: float, n: int) -> None:
    values = np.array([0.0, 2.0, 1.0, 1.0, last])
    assert len(possible_targets(values, ranks(values))) == n


@pytest.mark.parametrize(
    "values", [[1.0], [2.0] * 3, [math.inf] * 2, [0.0] * 5, [0.1] * 3, [-1 / 3] * 7, [1e-320] * 4]
)
def test_equal_values_are_zeros(values) -> None:
    assert (target(values) == 0.0).all()


def proposer_of(history: list[Trial], rule: Rule) -> UniversalProposer:
    evidence = Evidence.of(rule.space, history, weights=np.ones(1))
    free, settings = np.full(2, np.nan), RecommenderSettings()
    return UniversalProposer(Batch(evidence, range(1), rule, free, 0, settings))


@pytest.mark.parametrize(
    ("f", "place"), [(sphere, 1), (lambda c: -math.exp(-30.0 * sphere(c)), 0)]
)
def test_a_smooth_function_is_read_as_it_is_and_decades_are_blended(f, place) -> None:
    history = history_of(40, value=f)
    values = np.array([trial.value for trial in history])
    read = possible_targets(values, ranks(values))
    found = proposer_of(history, Rule(PLANE, None))._objectives[0].targets
    assert (found == read[place].values).all() and (found != read[1 - place].values).any()


def test_what_breaks_a_rule_near_the_best_trials_is_told_as_a_failure() -> None:
    """Only a < b may be tried: beyond, where values rise, nothing is expected any more."""
    space = SearchSpace({"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)})
    rows = np.sort(np.random.default_rng(0).random((30, 2)), axis=1)
    history = evaluated(space, rows, lambda c: c["a"] - c["b"])

    def expected(n: int, rule: Rule) -> tuple[int, float]:
        proposer = proposer_of(history[:n], rule)
        beyond = proposer._expected(np.array([[0.9, 0.1]]))
        return len(proposer._units), beyond.item()

    ordered = Rule(space, lambda c: c["a"] < c["b"])
    assert expected(9, ordered)[0] == 9
    (n, told), (_, free) = expected(30, ordered), expected(30, Rule(space, None))
    assert n == 34
    assert told < free - 0.5
