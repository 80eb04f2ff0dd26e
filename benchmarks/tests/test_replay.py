"""Replays of past tasks: what is expected of chance, what is picked, what is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np
import pytest

from dre_bench.replays import replay as module
from dre_bench.replays.replay import (
    NO_PRIOR,
    PRIOR,
    RANDOM,
    WAYS,
    YOURS,
    LeftOut,
    Replay,
    evaluations_needed,
    expected_best,
    leave_one_out,
    mean_replay,
    regrets_of,
    replay,
    table_of,
)
from dre_plugins.engine.settings import PRESETS, FittingSettings, ScorerSettings
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
SCORER = ScorerSettings(n_members=3, hidden=(16, 16), activation="silu", range_limit=None)


def task_of(name: str, units: np.ndarray, values: np.ndarray) -> Task:
    values = np.asarray(values, dtype=float)
    return Task(name, SPACE, np.asarray(units, dtype=float), values, np.isnan(values))


def bowl(name: str, seed: int, n: int = 24) -> Task:
    """Random points around an optimum that all tasks share, up to a little."""
    rng = np.random.default_rng(seed)
    units = rng.random((n, 2))
    optimum = np.array([0.3, 0.7]) + 0.02 * rng.standard_normal(2)
    return task_of(name, units, -((units - optimum) ** 2).sum(axis=1))


@pytest.fixture
def small_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = FittingSettings(n_steps=10, learning_rate=0.01)
    preset = replace(PRESETS["default"], scorer=SCORER, from_random=fitting, from_prior=fitting)
    settings = partial(module.RecommenderSettings, preset=preset)
    monkeypatch.setattr(module, "RecommenderSettings", settings)


@pytest.fixture(scope="module")
def prior() -> Prior:
    others = MetaDataset.of(bowl(f"other {seed}", seed) for seed in range(1, 5))
    settings = MetaTrainingSettings(n_steps=150, list_length=24, learning_rate=0.01)
    return Prior.train(others, scorer=SCORER, settings=settings)


# ---- tables


def test_a_table_has_different_configurations_with_a_value() -> None:
    units = [[0.1, 0.1], [0.2, 0.2], [0.1, 0.1], [0.3, 0.3], [0.2, 0.2]]
    table = table_of(task_of("t", units, [math.nan, 1.0, 5.0, 3.0, 9.0]))
    np.testing.assert_array_equal(table.values, [1.0, 5.0, 3.0])
    np.testing.assert_array_equal(table.units[:, 0], [0.2, 0.1, 0.3])
    np.testing.assert_array_equal(regrets_of(table.values), [1.0, 0.0, 0.5])


@pytest.mark.parametrize(
    ("values", "regret"),
    [
        ([1.0, math.inf, 3.0, -math.inf], [1.0, 0.0, 0.0, 1.0]),
        ([2.0, 2.0, -math.inf], [0.0, 0.0, 1.0]),
        ([2.0, math.inf], [1.0, 0.0]),
        ([-1.7e308, 1.7e308, 0.0], [1.0, 0.0, 0.5]),
        ([4.0, 4.0], [0.0, 0.0]),
    ],
)
def test_regret_is_finite(values: list[float], regret: list[float]) -> None:
    np.testing.assert_array_equal(regrets_of(np.array(values)), regret)


# ---- chance


@pytest.mark.parametrize("regret", [[0.0, 0.2, 0.5, 0.9, 1.0], [0.0, 1.0, 0.0, 0.3, 0.3], [0.4]])
def test_the_expectation_of_random_order_is_exact(regret: list[float]) -> None:
    orders = np.array([*permutations(regret)])
    best = np.minimum.accumulate(orders, axis=1).mean(axis=0)
    np.testing.assert_allclose(expected_best(np.array(regret), len(regret)), best, atol=1e-12)


def test_evaluations_needed_go_on_in_random_order() -> None:
    regret = np.array([0.5, 0.005, 1.0, 0.0, 0.7, 0.9])
    assert evaluations_needed(regret, np.array([0, 2, 1, 3])) == 3
    first = np.array([0, 4])
    left = [row for row in range(len(regret)) if row not in first]
    counts = [next(i for i, row in enumerate(o, 1) if row in (1, 3)) for o in permutations(left)]
    assert evaluations_needed(regret, first) == pytest.approx(2 + np.mean(counts))


# ---- replays


@pytest.mark.usefixtures("small_fits")
def test_a_good_prior_is_ahead_from_the_first_pick(prior: Prior) -> None:
    found = replay(bowl("new", 9), prior, n_picks=8, seeds=(0, 1))
    assert [*found.regret] == [*found.needed] == [*WAYS]
    assert found.n_configurations == 24
    for curve in found.regret.values():
        assert curve.shape == (8,) and (np.diff(curve) <= 1e-12).all()
    assert found.regret[PRIOR][0] < 0.5 * found.regret[RANDOM][0]
    assert found.saved(YOURS) == 0
    assert found.saved(PRIOR) == found.needed[YOURS] - found.needed[PRIOR]


@pytest.mark.usefixtures("small_fits")
def test_a_replay_is_a_function_of_its_seeds(prior: Prior) -> None:
    first, same, other = (
        replay(bowl("new", 9), prior, n_picks=12, seeds=seeds) for seeds in [(0,), (0,), (1,)]
    )
    for way in WAYS:
        np.testing.assert_array_equal(first.regret[way], same.regret[way])
    assert (first.regret[NO_PRIOR] != other.regret[NO_PRIOR]).any()


@pytest.mark.usefixtures("small_fits")
def test_a_table_that_is_picked_empty_ends_at_its_best(prior: Prior) -> None:
    found = replay(bowl("new", 9, n=6), prior, n_picks=30)
    for way in WAYS:
        assert found.regret[way].shape == (6,)
        assert found.regret_after(way, 20) == found.regret[way][-1] == pytest.approx(0.0)


@pytest.mark.usefixtures("small_fits")
def test_the_users_order_is_that_of_the_task() -> None:
    units = np.random.default_rng(0).random((6, 2))
    task = task_of("t", units, [0.0, 2.0, 1.0, math.nan, 4.0, 3.0])
    trained = Prior.train(
        MetaDataset.of([bowl("a", 1)]), scorer=SCORER, settings=MetaTrainingSettings(n_steps=1)
    )
    found = replay(task, trained, n_picks=3)
    np.testing.assert_array_equal(found.regret[YOURS], [1.0, 0.5, 0.5])
    assert found.needed[YOURS] == 4


# ---- one task after the other


@pytest.mark.usefixtures("small_fits")
def test_each_task_is_replayed_without_having_been_learnt_from(prior: Prior) -> None:
    metadata = MetaDataset.of(bowl(name, seed) for seed, name in enumerate("abc"))
    learnt: list[list[str]] = []

    def train(others: MetaDataset) -> Prior:
        learnt.append([task.name for task in others])
        return prior

    found = list(leave_one_out(metadata, train, n_picks=2))
    assert [outcome.task for outcome in found] == ["a", "b", "c"]
    assert learnt == [["b", "c"], ["a", "c"], ["a", "b"]]
    learnt.clear()
    (replayed,) = leave_one_out(metadata, train, names=["b"], n_picks=2)
    assert replayed.task == "b" and learnt == [["a", "c"]]
    with pytest.raises(ValueError, match=r"no tasks \['d'\]"):
        list(leave_one_out(metadata, train, names=["d"]))


@pytest.mark.usefixtures("small_fits")
def test_what_cannot_be_replayed_is_left_out(prior: Prior) -> None:
    few = task_of("few", np.tile([[0.1, 0.2], [0.3, 0.4]], (5, 1)), np.arange(10))
    flat = task_of("flat", np.random.default_rng(0).random((9, 2)), np.ones(9))
    other = SearchSpace({"colour": Float(0.0, 1.0)})
    line = np.linspace(0, 1, 9)[:, None]
    strange = Task("strange", other, line, np.arange(9.0), np.zeros(9, bool))
    metadata = MetaDataset.of([few, flat, strange, bowl("fine", 9)])
    *left_out, fine = leave_one_out(metadata, lambda others: prior, n_picks=2)
    assert isinstance(fine, Replay)
    assert [outcome.task for outcome in left_out] == ["few", "flat", "strange"]
    reasons = ["2 different", "are the same", "no parameter in common"]
    for left, reason in zip(left_out, reasons, strict=True):
        assert isinstance(left, LeftOut) and reason in left.reason


def test_means_are_over_tasks_and_exhausted_tables_stay_at_their_best() -> None:
    curves = np.array([0.4, 0.0]), np.array([0.8, 0.4, 0.2])
    short = Replay("a", 2, dict.fromkeys(WAYS, curves[0]), dict.fromkeys(WAYS, 2.0))
    long = Replay("b", 9, dict.fromkeys(WAYS, curves[1]), dict.fromkeys(WAYS, 5.0))
    mean = mean_replay([short, long])
    np.testing.assert_allclose(mean.regret[PRIOR], [0.6, 0.2, 0.1])
    assert mean.needed == dict.fromkeys(WAYS, 3.5)
