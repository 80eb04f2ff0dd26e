"""What past tasks expect a configuration to gain, and how much each of them counts."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from small_spaces import PLANE, Value, history_of, sphere

from dre_plugins.recommend import Trial, TrialState, past_gains
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.past_gains import LARGEST_WEIGHT, PastGains, misranked_shares, reversals
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.past_tasks import PastTasks

ANYWHERE = PLANE.canonical(np.random.default_rng(1).random((50, 2)))


def alike(configuration) -> float:
    """Return a value that agrees with the other one on one of two parameters."""
    return -((configuration["x"] - 0.4) ** 2) - 0.2 * (configuration["y"] - 0.3) ** 2


def mirrored(configuration) -> float:
    return -sphere(configuration)


def gains_of(
    history: Sequence[Trial],
    *values: Value,
    space: SearchSpace = PLANE,
    n: int = 20,
    failed: str = "model",
) -> PastGains:
    """Return the gains expected by past tasks of these values, for a study so far."""
    tasks = [
        Task.from_trials(f"task {i}", PLANE, history_of(n, value=value, seed=9 + i))
        for i, value in enumerate(values)
    ]
    evidence = Evidence.of(space, history, weights=np.ones(1), failed=failed)
    reference = np.random.default_rng(2).random((200, space.n_parameters))
    return PastGains(PastTasks(tasks).tasks_on(space), evidence, reference)


@pytest.mark.parametrize(
    ("expected", "ranks", "shares", "n_pairs"),
    [
        ([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0], [0.0, 2.0, 1.0]], [0, 1, 2], [0.0, 1.0, 1 / 3], 3),
        ([[1.0, 0.0, 2.0], [1.0, 2.0, 0.0]], [0, 0, 1], [0.0, 1.0], 2),  # equal trials: no pair
        ([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]], [0, 1, 2], [0.0, 2 / 3], 3),  # expected to be equal
        ([[1.0, 2.0], [2.0, 1.0]], [3, 3], [0.0, 0.0], 0),
        ([[1.0]], [0], [0.0], 0),
    ],
)
def test_shares_of_misranked_pairs(expected, ranks, shares, n_pairs) -> None:
    found, n_found = misranked_shares(np.array(expected), np.array(ranks, dtype=np.float64))
    assert found == pytest.approx(shares) and n_found == n_pairs


@pytest.mark.parametrize(
    ("misranked", "n_pairs", "is_reversed", "left"),
    [
        ([0.9, 0.8, 0.2], 45, [True, True, False], [1 - 0.9 * 45 / 48, 1 - 0.8 * 45 / 48, 0.2]),
        ([0.9, 0.3, 0.2], 45, [False] * 3, [0.9, 0.3, 0.2]),  # others order the trials rightly
        ([0.6, 0.59], 1000, [False] * 2, [0.6, 0.59]),
        ([1.0, 1.0], 3, [False] * 2, [1.0, 1.0]),  # three pairs are not enough
        ([1.0, 1.0], 6, [True] * 2, [1 / 3, 1 / 3]),
        ([1.0, 0.51], 45, [True, False], [1 / 16, 0.51]),
        ([0.0], 0, [False], [0.0]),
    ],
)
def test_tasks_that_order_most_pairs_otherwise_are_reversed(
    misranked, n_pairs, is_reversed, left
) -> None:
    found, shares = reversals(np.array(misranked), n_pairs)
    assert found.tolist() == is_reversed and shares == pytest.approx(left)


def test_a_reversed_task_gains_where_it_expected_least() -> None:
    history = history_of(12)
    reversed_task, same = gains_of(history, mirrored), gains_of(history, sphere)
    assert place_of_most(reversed_task) == pytest.approx(place_of_most(same), abs=0.2)
    assert reversed_task.expected(ANYWHERE) == pytest.approx(same.expected(ANYWHERE), abs=0.05)
    assert 0.0 < reversed_task.weights < same.weights
    assert reversed_task.favourites.shape == (0, 2) and len(same.favourites)


def test_weights_fall_with_misranked_pairs_to_nothing_at_a_half(monkeypatch) -> None:
    history = history_of(12)
    same, partly = gains_of(history, sphere, alike, mirrored).weights
    assert LARGEST_WEIGHT >= same > partly > 0.0
    shares = np.array([0.0, 0.25, 0.49, 0.5, 0.8])
    monkeypatch.setattr(past_gains, "misranked_shares", lambda *_: (shares, 66))
    weights = gains_of(history, *[sphere] * 5).weights
    assert weights / LARGEST_WEIGHT == pytest.approx([1.0, 0.75, 1.0 - 0.98**2])


def test_the_names_are_those_of_the_tasks_that_count(monkeypatch) -> None:
    history = history_of(12)
    assert gains_of(history, alike, sphere, mirrored).names == "task 1, task 0"
    of_three = gains_of(history, mirrored, sphere, mirrored).names
    assert of_three == "task 1, reversed task 0, reversed task 2"
    assert gains_of([], mirrored, sphere).names == "task 0, task 1"
    monkeypatch.setattr(past_gains, "misranked_shares", lambda *_: (np.array([0.51]), 66))
    assert gains_of(history, mirrored).names is None


def test_before_two_trials_all_count_and_a_gain_is_what_is_expected() -> None:
    gains = gains_of([], sphere, mirrored)
    assert gains.weights.tolist() == [LARGEST_WEIGHT] * 2
    beyond = LARGEST_WEIGHT * gains.expected(ANYWHERE).sum(0) - gains.at(ANYWHERE)
    assert beyond == pytest.approx(beyond[0]) and gains.at(ANYWHERE).min() >= 0.0
    assert gains_of(history_of(1), sphere, mirrored).weights.tolist() == [LARGEST_WEIGHT] * 2


def test_gains_vanish_at_what_was_tried() -> None:
    history = [trial for trial in history_of(20) if trial.configuration["y"] > 0.0]
    gains = gains_of(history, sphere)
    tried = PLANE.to_units([trial.configuration for trial in history])
    assert gains.at(tried) == pytest.approx(0.0, abs=1e-9)
    assert gains.at(ANYWHERE).min() >= 0.0 and gains.at(gains.favourites).max() > 0.0
    best = Trial({"x": 0.4, "y": -0.7}, TrialState.COMPLETE, 0.0)
    assert gains_of([*history, best], sphere).at(ANYWHERE).max() < gains.at(ANYWHERE).max()


def test_pending_trials_count_as_tried() -> None:
    """Whether they are known at first or suggested meanwhile, and before anything has ended."""
    for history in ([], history_of(12)):
        gains = gains_of(history, sphere)
        best = ANYWHERE[gains.at(ANYWHERE).argmax()][None]
        running = Trial(PLANE.to_configuration(best[0]), TrialState.RUNNING)
        known = gains_of([*history, running], sphere)
        gains.fantasize(best)
        assert gains.at(best) == pytest.approx(0.0, abs=1e-9)
        assert gains.at(ANYWHERE) == pytest.approx(known.at(ANYWHERE), abs=1e-9)


@pytest.mark.parametrize("n_ended", [3, 30])
def test_the_mean_with_the_improvement_that_the_study_expects(n_ended) -> None:
    gains = gains_of(history_of(n_ended), sphere, alike)
    logs = np.linspace(-60.0, 1.0, len(ANYWHERE))
    of_past = gains.weights.sum()
    own = max(0.75, of_past * n_ended / 10)
    direct = (own * np.exp(logs) + gains.at(ANYWHERE)) / (own + of_past)
    assert np.exp(gains.mean_with(logs, ANYWHERE)) == pytest.approx(direct)


def crashing(configuration) -> float:
    """Return nothing on one side of the plane, where the best values would be."""
    return math.nan if configuration["x"] > 0.2 else sphere(configuration)


def place_of_most(gains: PastGains) -> float:
    """Return the first coordinate of the largest gain, from -1 to 1."""
    grid = PLANE.canonical(np.random.default_rng(3).random((2000, 2)))
    return PLANE.to_configuration(grid[gains.at(grid).argmax()])["x"]


def test_where_past_trials_failed_little_is_to_gain() -> None:
    for history in ([], history_of(3, value=lambda configuration: -2.0 - configuration["y"])):
        assert place_of_most(gains_of(history, crashing, n=40)) < 0.25
        ignoring = gains_of(history, crashing, n=40, failed="ignore")
        assert place_of_most(ignoring) > 0.25 and place_of_most(gains_of(history, sphere)) > 0.25
    # Failures by accident change little.
    rng = np.random.default_rng(4)
    gains = gains_of([], lambda c: math.nan if rng.random() < 0.2 else sphere(c), n=40)
    assert abs(place_of_most(gains) - 0.4) < 0.2


def test_a_failed_trial_has_not_shown_what_is_to_gain() -> None:
    failed = Trial({"x": 0.4, "y": -0.7}, TrialState.FAILED)
    begun = [trial for trial in history_of(9) if trial.configuration["y"] > 0.0]
    gains = gains_of(begun, sphere).at(ANYWHERE)
    assert gains_of([*begun, failed], sphere).at(ANYWHERE) == pytest.approx(gains)
    ignoring = gains_of([*begun, failed], sphere, failed="ignore").at(ANYWHERE)
    assert ignoring.max() < 0.2 * gains.max()


def test_the_feature_is_the_rank_of_what_all_tasks_expect() -> None:
    """It is on a logarithmic scale from 0, better than all of the reference, to 1."""
    gains = gains_of(history_of(12), sphere, alike, n=40)
    feature = gains.features(ANYWHERE)[:, 0]
    scores = gains.weights @ gains.expected(ANYWHERE)
    assert (np.diff(feature[np.argsort(-scores)]) >= 0.0).all()  # equal between two references
    alone, grid = gains_of(history_of(12), sphere, n=40), [{"x": 0.4, "y": y} for y in (0.9, -0.6)]
    of_far, of_near = alone.features(PLANE.to_units(grid))[:, 0]
    assert 1.0 > of_far > 0.5 > of_near > 0.0
    (of_best,) = alone.features(PLANE.to_units([{"x": 0.4, "y": -0.7}]))[:, 0]
    assert of_best == 0.0


def test_what_is_expected_is_asked_for_anew_for_each_array() -> None:
    gains, others = gains_of(history_of(12), sphere), ANYWHERE[::-1].copy()
    expected = gains.expected(ANYWHERE)
    assert gains.expected(others) == pytest.approx(expected[:, ::-1])
    assert gains.expected(ANYWHERE) is not expected
    assert gains.expected(ANYWHERE[:0]).shape == (1, 0) == gains.features(ANYWHERE[:0]).T.shape


def test_gains_next_to_what_was_tried_only_are_none() -> None:
    """As where the best configuration of the past was enqueued with rounded numbers."""
    best = Trial({"x": 0.41, "y": -0.71}, TrialState.COMPLETE, 0.0)
    past = PastTasks([Task.from_trials("task", PLANE, [*history_of(20, seed=9), best])])
    rounded = Trial({"x": 0.4097, "y": -0.7103}, TrialState.COMPLETE, 0.0)
    for seed in range(2):
        (found,) = Recommender(PLANE, seed=seed, prior=past).suggest([rounded], index=1)
        assert found.source == "random" and found.explanation.past_studies is None


def test_favourites_have_the_median_of_others_where_a_task_lacks_a_parameter() -> None:
    wider = SearchSpace({**PLANE.domains, "z": Float(0.0, 1.0)})
    favourites = gains_of([], sphere, space=wider).favourites
    assert (favourites[:, 2] == 0.5).all() and (favourites[:, :2] != 0.5).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_infinite_values_of_past_trials_are_only_the_best_or_worst(bad) -> None:
    def value(configuration) -> float:
        return bad if configuration["x"] > 0.8 else sphere(configuration)

    gains = gains_of(history_of(6), value)
    assert np.isfinite(gains.at(ANYWHERE)).all() and np.isfinite(gains.expected(ANYWHERE)).all()
