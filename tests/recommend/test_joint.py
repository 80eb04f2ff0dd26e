"""Several objectives: fronts and scalarisations, and the surrogate that expects ranks of both."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from presets import NARROW, of_steps

from dre_plugins.engine import FittingSettings
from dre_plugins.engine.ranks import ranks_against
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.lists import TrialList
from dre_plugins.recommend.members import JointMembers, Members, Mixture
from dre_plugins.recommend.pareto import (
    BLOCK,
    draw_weights,
    non_dominated,
    normalised_ranks,
    scalarised,
    scalarised_history,
)
from dre_plugins.recommend.prior import AlignedPrior, PriorLike
from dre_plugins.space import Float, SearchSpace

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
FITTING = FittingSettings(n_steps=150, learning_rate=0.03)
PRESET = of_steps(40, 20, scorer=NARROW)
# What is good for the first objective, and for the second.
BEST_X, BEST_Y = 0.2, 0.8
GRID = np.random.default_rng(0).random((60, 2))
ALL = np.arange(len(GRID))


def features(units: np.ndarray) -> np.ndarray:
    return units.astype(np.float32)


def value(units: np.ndarray, objective: int) -> np.ndarray:
    return -np.abs(units[:, objective] - (BEST_X, BEST_Y)[objective])


def listed(objective: int, trials: np.ndarray = ALL) -> TrialList:
    ranks = value(GRID[trials], objective).argsort().argsort().astype(float)
    return TrialList(trials, ranks, 1.0)


def part(seed: int = 0) -> Members:
    return Members(DeepRankingEnsemble.initialise(NARROW, 2, seed=seed), features, FITTING)


def fitted(objective: int) -> Members:
    return part(objective).fit([listed(objective)], GRID, 0, 1.0)


class TaughtPrior(PriorLike):
    """What is known of one objective."""

    def __init__(self, objective: int) -> None:
        self.objective = objective

    def on(self, space: SearchSpace) -> AlignedPrior:
        return AlignedPrior(fitted(self.objective).ensemble, features, np.array([[0.5, 0.5]]))


def taught(*objectives: int | None) -> list[TaughtPrior | None]:
    """Return a prior for each objective; None where nothing is known."""
    return [None if objective is None else TaughtPrior(objective) for objective in objectives]


def joint(weights: Sequence[float], trials: np.ndarray = ALL) -> JointMembers:
    lists = ([listed(0, trials)], [listed(1, trials)])
    return JointMembers((part(0), part(1)), lists, np.array(weights), GRID)


def test_scores_are_the_places_of_both_objectives_as_one() -> None:
    weights = np.array([0.3, 0.7])
    parts = (fitted(0), fitted(1))
    both = JointMembers(parts, ([], []), weights, GRID)
    units = np.random.default_rng(1).random((20, 2))
    ranks = [ranks_against(each.scores(units), each.scores(GRID)).numpy() for each in parts]
    places = 1.0 - np.stack(ranks, axis=-1) / len(GRID)
    expected = scalarised(places, weights)
    assert expected.shape == (4, 20)
    assert np.allclose(both.scores(units).numpy(), expected)
    by_hand = min(0.3 * (places[2, 5, 0] - 1), 0.7 * (places[2, 5, 1] - 1))
    by_hand += 0.05 * (0.3 * places[2, 5, 0] + 0.7 * places[2, 5, 1])
    assert both.scores(units)[2, 5].item() == pytest.approx(by_hand)


def test_each_part_is_fitted_to_its_own_objective() -> None:
    ours = joint([0.5, 0.5]).fit([], GRID, 0, 1.0)
    best = GRID[Mixture([ours], GRID).mean_ranks(GRID).argmin()]
    assert np.abs(best - [BEST_X, BEST_Y]).max() < 0.2
    for weights, objective in (([1.0, 0.0], 0), ([0.0, 1.0], 1)):
        single = joint(weights).fit([], GRID, 0, 1.0)
        best = GRID[Mixture([single], GRID).mean_ranks(GRID).argmin()]
        assert abs(best[objective] - (BEST_X, BEST_Y)[objective]) < 0.1


def test_believed_trials_stand_where_each_part_ranks_them() -> None:
    fitted_part = joint([0.5, 0.5], np.arange(50)).fit([], GRID, 0, 1.0)
    told = fitted_part.with_fantasies(np.array([50, 51]), GRID)
    for objective, (ranked,) in enumerate(told.lists):
        assert ranked.trials[-2:].tolist() == [50, 51]
        ranks = Mixture([fitted_part.by_objective[objective]], GRID).mean_ranks(GRID[[50, 51]])
        assert (ranked.ranks[-2] > ranked.ranks[-1]) == (ranks[0] < ranks[1])
    assert len(fitted_part.lists[0][0].trials) == 50
    assert torch.isfinite(told.fit([], GRID, 0, 0.25).scores(GRID)).all()


def recommender_of(*objectives: int | None) -> Recommender:
    prior = taught(*objectives)
    settings = RecommenderSettings(preset=PRESET)
    return Recommender(SPACE, settings, seed=0, prior=prior, n_objectives=2)


def first(*objectives: int | None) -> np.ndarray:
    (suggestion,) = recommender_of(*objectives).suggest((), index=0)
    assert suggestion.source == "prior"
    return suggestion.units


def test_the_first_suggestion_is_good_for_all_objectives_that_are_known() -> None:
    assert np.abs(first(0, 1) - [BEST_X, BEST_Y]).max() < 0.2
    assert abs(first(0, None)[0] - BEST_X) < 0.15
    assert abs(first(None, 1)[1] - BEST_Y) < 0.15
    batch = recommender_of(0, 1).suggest((), 4, index=0)
    assert len({suggestion.units.tobytes() for suggestion in batch}) == 4


def test_priors_that_are_wrong_lose_their_credit() -> None:
    recommender = recommender_of(1, 0)  # each objective has the prior of the other
    trials: list[Trial] = []
    for index in range(25):
        (suggestion,) = recommender.suggest(trials, index=index)
        units = suggestion.units[None]
        objectives = (float(value(units, 0)[0]), float(value(units, 1)[0]))
        trials.append(Trial(suggestion.configuration, TrialState.COMPLETE, objectives=objectives))
    late = np.array([list(trial.configuration.values()) for trial in trials[-8:]])
    assert np.abs(np.median(late, axis=0) - [BEST_X, BEST_Y]).max() < 0.2
    assert recommender.stats["fallbacks"] == 0


def test_trials_of_other_numbers_of_objectives_are_refused() -> None:
    def trial(*objectives: float) -> Trial:
        return Trial({"x": 0.5, "y": 0.5}, TrialState.COMPLETE, objectives=objectives)

    recommender = Recommender(SPACE, RecommenderSettings(preset=PRESET), seed=0)
    with pytest.raises(ValueError, match="same objectives in all trials"):
        recommender.suggest([trial(1.0, 2.0), trial(1.0, 2.0, 3.0)], index=2)
    with pytest.raises(ValueError, match="of 2, as the priors are"):
        recommender_of(0, 1).suggest([trial(1.0, 2.0, 3.0)], index=1)


def test_a_right_prior_is_trusted_beside_an_objective_without_one() -> None:
    """It is judged by its own objective, whatever the other one does."""
    recommender = recommender_of(0, None)
    rng = np.random.default_rng(0)
    trials = [
        Trial(
            dict(zip("xy", units.tolist(), strict=True)),
            TrialState.COMPLETE,
            objectives=(float(value(units[None], 0)[0]), float(rng.normal())),
        )
        for units in rng.random((20, 2))
    ]
    (suggestion,) = recommender.suggest(trials, index=20)
    assert suggestion.source == "model"  # with trust lost, it would be a contrast
    history = [*trials, *(replace(t, objectives=t.objectives[::-1]) for t in trials)]
    assert recommender_of(0, None).suggest(history, index=40)[0].source in ("model", "contrast")


def test_repetitions_are_one_value_to_each_objective() -> None:
    settings = RecommenderSettings(preset=PRESET, allow_duplicates=True)
    rng = np.random.default_rng(0)
    trials = [
        Trial(
            {"x": 0.1 * (n % 6), "y": 0.5},
            TrialState.COMPLETE,
            objectives=(n % 6 + float(rng.normal()) / 100, -(n % 6) + float(rng.normal()) / 100),
        )
        for n in range(18)
    ]
    with patch.object(JointMembers, "fit", autospec=True, side_effect=JointMembers.fit) as spy:
        Recommender(SPACE, settings, seed=0, prior=None).suggest(trials, index=18)
    fitted_part = spy.call_args_list[0].args[0]
    rising, falling = (lists[0].ranks.reshape(3, 6) for lists in fitted_part.lists)
    assert (rising == rising[0]).all() and (np.diff(rising[0]) > 0).all()
    assert (falling == falling[0]).all() and (np.diff(falling[0]) < 0).all()


# ---- fronts, and several objectives as one value


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
    single = [Trial({}, TrialState.COMPLETE, 1.0), Trial({}, TrialState.RUNNING)]
    assert scalarised_history(single, np.array([0.5, 0.5])) == single
