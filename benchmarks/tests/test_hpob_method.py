"""`DRETable` on tables of anonymous columns."""

from __future__ import annotations

import numpy as np
import pytest
from presets import TINY

from dre_bench.hpob_method import DRETable
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings, Settings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

ROWS = np.random.default_rng(0).random((60, 3))
VALUES = -((ROWS - 0.4) ** 2).sum(1)


def choose(method, n=8, y=None, X=None, pending=None):
    return method.observe_and_suggest(
        ROWS[:n] if X is None else X,
        VALUES[:n, None] if y is None else y,
        ROWS[n:] if pending is None else pending,
    )


def table(**arguments):
    return DRETable(**{"seed": 0, "settings": Settings(preset=TINY), **arguments})


@pytest.fixture(scope="module")
def prior():
    space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(3)})
    tasks = [
        Task(f"{shift}", space, ROWS, VALUES + shift, np.zeros(60, dtype=bool)) for shift in (0, 9)
    ]
    return Prior.train(MetaDataset.of(tasks), settings=MetaTrainingSettings(n_steps=100))


def test_it_suggests_what_the_recommender_does():
    space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(3)})
    settings = RecommenderSettings(n_startup_trials=0, preset=TINY)
    history = [
        Trial(dict(zip(space.names, row, strict=True)), TrialState.COMPLETE, value)
        for row, value in zip(ROWS[:8].tolist(), VALUES[:8].tolist(), strict=True)
    ]
    expected = Recommender(space, settings, seed=0).suggest(history, index=8, candidates=ROWS)[0]
    method = table()
    np.testing.assert_array_equal(ROWS[8:][choose(method)], expected.units)
    assert method.stats["model"] == method.stats["suggestions"] == 1


def test_a_suggestion_is_a_function_of_data_seed_and_number():
    method = table()
    first = choose(method)
    choose(method, n=20)
    assert choose(method) == choose(table()) == choose(table(names=["a", "b", "c"])) == first
    # Any monotone transformation, any shape of y.
    assert choose(method, y=np.exp(VALUES[:8])) == choose(method, y=VALUES[:8].tolist()) == first
    chosen = {choose(table(seed=seed), n=2) for seed in range(6)}
    assert len(chosen) > 1


def test_it_finds_the_best_row():
    rows = list(range(5))
    method = DRETable(seed=0)
    for _ in range(10):
        pending = np.delete(np.arange(60), rows)
        rows.append(
            int(pending[method.observe_and_suggest(ROWS[rows], VALUES[rows, None], ROWS[pending])])
        )
    assert VALUES[rows].max() == VALUES.max()
    assert method.stats["fallbacks"] == 0


def test_a_prior_chooses_before_anything_was_observed(prior):
    method = table(prior=prior)
    nothing = np.empty((0, 3)), np.empty((0, 1))
    chosen = method.observe_and_suggest(*nothing, ROWS)
    assert method.stats["prior"] == 1
    assert VALUES[chosen] >= np.sort(VALUES)[-6]
    assert choose(method) in range(52)
    assert method.stats["fallbacks"] == 0


def test_columns_and_prior_are_matched_by_name(prior, tmp_path):
    prior.save(tmp_path / "hills.safetensors")
    from_file = table(prior=tmp_path / "hills.safetensors")
    assert choose(from_file) == choose(table(prior=prior))
    with pytest.raises(ValueError, match="x0"):
        table(prior=prior, names=["a", "b", "c"])


@pytest.mark.parametrize(
    ("y", "X"),
    [
        ([], np.empty((0, 3))),
        ([], []),
        ([1.0], ROWS[:1]),
        (np.ones((8, 1)), ROWS[:8]),
        (np.full(8, np.nan), ROWS[:8]),
        ([np.nan, 1.0, np.inf, -np.inf, 1e9, 0.0, 0.0, 1.0], ROWS[:8]),
        (VALUES[:8], 3.0 * ROWS[:8] - 1.0),
        ([1.0, 2.0], ROWS[[0, 0]]),
    ],
    ids=["none", "lists", "one", "equal", "failed", "extreme", "outside", "repeated"],
)
def test_degenerate_tables_are_no_error(y, X):
    method = table()
    assert choose(method, y=y, X=X) in range(52)
    assert method.stats["fallbacks"] == 0


def test_what_was_observed_is_chosen_only_when_nothing_else_is_left():
    method = table()
    twice = np.concatenate([ROWS[:8], ROWS[8:9]])
    assert choose(method, pending=twice) == 8
    assert choose(method, pending=ROWS[3:4]) == 0
    assert choose(method, pending=ROWS[:3]) in range(3)
    # Not only rows that equal to the last bit.
    assert choose(method, pending=np.concatenate([ROWS[:8] + 1e-11, ROWS[8:9]])) == 8


def test_without_a_table_it_suggests_points_of_the_whole_space():
    """As the continuous part of HPO-B asks: no pending rows, a new point comes back."""
    method = table()
    X, y = ROWS[:5], VALUES[:5, None]
    for _ in range(3):
        point = method.observe_and_suggest(X, y)
        assert point.shape == (3,)
        assert (point >= 0).all() and (point <= 1).all()
        X = np.append(X, point).reshape(-1, 3)
        y = np.append(y, -((point - 0.4) ** 2).sum()).reshape(-1, 1)
    assert len(np.unique(X, axis=0)) == 8
    assert method.stats["fallbacks"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed.*-1"),
        ({"names": ["a", "a"]}, "names"),
        ({"names": []}, "names"),
        ({"prior": "no-such-prior"}, "no-such-prior"),
        ({"prior": [None, None]}, "prior"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        table(**arguments)


def test_arrays_that_do_not_fit_are_named():
    method = table()
    with pytest.raises(ValueError, match=r"y_observed.*\[8\]"):
        choose(method, y=[1.0])
    with pytest.raises(ValueError, match=r"X_observed.*3 columns"):
        choose(method, X=ROWS[:8, :2])
    with pytest.raises(ValueError, match=r"X_pending.*finite"):
        choose(method, pending=np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match=r"X_pending.*at least one row"):
        choose(method, pending=ROWS[:0])
    choose(method)
    with pytest.raises(ValueError, match=r"3 columns, x0, x1, x2.*2 columns"):
        choose(method, X=ROWS[:8, :2], pending=ROWS[8:, :2])
