import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.recommend.pareto import (
    BLOCK,
    draw_weights,
    non_dominated,
    normalised_ranks,
    scalarised,
    scalarised_history,
)


def complete(*objectives: float) -> Trial:
    return Trial({}, TrialState.COMPLETE, objectives=objectives)


POINTS = st.lists(
    st.tuples(*[st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, math.inf, -math.inf])] * 2),
    min_size=1,
    max_size=12,
)


def dominated(values: np.ndarray, i: int) -> bool:
    better = (values >= values[i]).all(1) & (values > values[i]).any(1)
    return bool(better.any())


def test_a_front_by_hand() -> None:
    values = np.array([[3, 1], [1, 3], [2, 2], [1, 1], [2, 2], [0, 0]], dtype=float)
    assert non_dominated(values).tolist() == [True, True, True, False, True, False]


@given(POINTS)
@settings(max_examples=50, deadline=None)
def test_nothing_dominates_the_front_and_something_every_other(points) -> None:
    values = np.array(points)
    found = non_dominated(values).tolist()
    assert found == [not dominated(values, i) for i in range(len(values))]


@pytest.mark.parametrize("n_objectives", [1, 2, 5])
def test_a_front_of_several_blocks(n_objectives) -> None:
    values = np.random.default_rng(0).integers(0, 40, (3 * BLOCK + 1, n_objectives)).astype(float)
    found = non_dominated(values).tolist()
    assert found == [not dominated(values, i) for i in range(len(values))]


@given(POINTS, st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_the_preferred_trial_is_never_dominated(points, seed) -> None:
    values = np.array(points)
    weights = draw_weights(2, np.random.default_rng(seed))
    best = int(scalarised(normalised_ranks(values), weights).argmax())
    assert non_dominated(values)[best]


def test_only_the_order_within_an_objective_counts() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 3))
    bent = np.stack([values[:, 0] ** 3, np.exp(values[:, 1]), 1e9 * values[:, 2]], axis=1)
    weights = draw_weights(3, rng)
    assert np.array_equal(
        scalarised(normalised_ranks(values), weights), scalarised(normalised_ranks(bent), weights)
    )


def test_places_are_shares_and_ties_are_ties() -> None:
    places = normalised_ranks(np.array([[5.0, 0.0], [5.0, 1.0], [9.0, 2.0]]))
    assert places.tolist() == [[0.0, 0.0], [0.0, 0.5], [1.0, 1.0]]
    assert normalised_ranks(np.array([[5.0], [5.0]])).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_weights_differ_and_sum_to_one(n_objectives) -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_weights(n_objectives, rng) for _ in range(5)]
    assert all(math.isclose(weights.sum(), 1.0) and (weights > 0).all() for weights in drawn)
    assert all(not np.allclose(a, b) for a, b in itertools.combinations(drawn, 2))


def test_several_objectives_become_one_value() -> None:
    history = [
        complete(1.0, 1.0),
        complete(2.0, 2.0),
        complete(math.nan, 3.0),
        Trial({}, TrialState.RUNNING),
        Trial({}, TrialState.FAILED),
    ]
    scalarised = scalarised_history(history, np.array([0.5, 0.5]))
    assert scalarised[1].value > scalarised[0].value
    assert [trial.value for trial in scalarised[2:]] == [None, None, None]
    assert [trial.state for trial in scalarised] == [trial.state for trial in history]


def test_one_objective_is_left_alone() -> None:
    history = [Trial({}, TrialState.COMPLETE, 1.0), Trial({}, TrialState.RUNNING)]
    assert scalarised_history(history, np.array([0.5, 0.5])) == history
