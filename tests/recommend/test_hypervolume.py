"""The universal prior with several objectives: the gain of hypervolume, and what it chooses."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.proposers.hypervolume import SOFTNESS, Gain
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.space.rules import Rule

PLANE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
FRONT = np.array([[1.0, 4.0], [2.0, 3.0], [4.0, 1.0]])


def directions(n_objectives: int) -> np.ndarray:
    drawn = np.abs(np.random.default_rng(0).normal(size=(20_000, n_objectives)))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def objectives_of(configuration: dict) -> tuple[float, float]:
    """Two bowls: what is best lies between (.2, .2) and (.8, .8), where x = y."""
    point = np.array([configuration["x"], configuration["y"]])
    return -float(np.square(point - 0.2).sum()), -float(np.square(point - 0.8).sum())


def complete(configuration: dict, **fields) -> Trial:
    objectives = objectives_of(configuration)
    return Trial(configuration, TrialState.COMPLETE, objectives=objectives, **fields)


def history_of(n: int, **fields) -> list[Trial]:
    points = np.random.default_rng(1).random((n, 2)).tolist()
    return [complete({"x": x, "y": y}, **fields) for x, y in points]


def suggested(history: list[Trial], count: int = 1, space=PLANE, settings=None, **given) -> list:
    stats: Counter[str] = Counter()
    recommender = Recommender(space, settings, seed=0, stats=stats)
    suggestions = recommender.suggest(history, count, index=len(history), **given)
    assert stats["fallbacks"] == 0 and stats["universal-prior"] == count
    return suggestions


@pytest.mark.parametrize("n_objectives", [2, 3, 4])
def test_what_a_point_reaches_is_its_hypervolume(n_objectives) -> None:
    gain = Gain(np.zeros(n_objectives), directions(n_objectives), np.zeros(20_000), 1.0)
    points = np.random.default_rng(1).uniform(0.5, 2.0, (n_objectives, 1, 8))
    shares = gain.reached(points).mean(axis=0) / points.prod(axis=0)[0]
    assert shares.std() / shares.mean() < 0.05
    assert (gain.reached(-points) == 0.0).all()


def test_gains_are_what_a_point_adds_to_the_front() -> None:
    gain = Gain.beyond(FRONT, np.array([[0.0, 4.0], [4.0, 0.0], *FRONT]), directions(2))
    points = np.array([[3.0, 2.0], [2.5, 2.5], [5.0, 5.0], [1.0, 1.0]])
    low = gain.low
    assert low == pytest.approx([-0.4, -0.4])
    found = np.exp(gain.logs(np.repeat(points.T[:, None], 20_000, axis=1)))

    def area(points: np.ndarray) -> float:
        highest = points[np.argsort(-points[:, 0])]
        widths = [a[0] - b[0] for a, b in pairwise([*highest, low])]
        heights = np.maximum.accumulate(highest[:, 1]) - low[1]
        return float(widths @ heights)

    added = [area(np.concatenate([FRONT, point[None]])) - area(FRONT) for point in points]
    unit = found[2] / added[2]
    assert found[:3] == pytest.approx(unit * np.array(added[:3]), rel=0.1)
    # What is dominated gains next to nothing, and less if it is farther from the front.
    assert found[3] < 10 * SOFTNESS * found[2]
    nearer, farther = gain.logs(np.repeat([[[2.9, 1.0]], [[0.9, 1.0]]], 20_000, axis=1))
    assert farther < nearer


def test_samples_have_means_and_deviations_of_the_mixtures() -> None:
    evidence = Evidence.of(PLANE, history_of(12), weights=np.array([0.5, 0.5]))
    rng, free = np.random.default_rng(0), np.full(2, np.nan)
    batch = Batch(evidence, range(1), Rule(PLANE, None), free, 0, RecommenderSettings())
    proposer = UniversalProposer(batch)
    units = rng.random((200, 2))
    features = torch.from_numpy(PLANE.features(units)).double()
    samples = proposer._samples.of(proposer._objectives, features)
    for drawn, objective in zip(samples, proposer._objectives, strict=True):
        means, deviations = objective.posterior(features)
        shares = objective.log_weights.exp()
        mean = (shares * means).sum(0)
        deviation = (shares * (deviations**2 + (means - mean) ** 2)).sum(0).sqrt().numpy()
        assert abs(np.mean((drawn.mean(axis=0) - mean.numpy()) / deviation)) < 0.05
        ratio = np.mean(drawn.std(axis=0) / deviation)  # a little below 1, as tails are rare
        assert ratio == pytest.approx(1.0, abs=0.15)


def test_the_universal_prior_proposes_from_the_fourth_trial_on() -> None:
    recommender, trials = Recommender(PLANE, seed=0), []
    for index in range(16):
        (suggestion,) = recommender.suggest(trials, index=index)
        assert suggestion.source == ("random" if index < 3 else "universal-prior")
        assert (suggestion.explanation.predicted_rank is None) == (index < 3)
        trials.append(complete(suggestion.configuration))
    late = np.array([[trial.configuration["x"], trial.configuration["y"]] for trial in trials[8:]])
    distances = np.abs(late[:, 0] - late[:, 1])
    assert distances.mean() < 0.1 and distances.max() < 0.25  # of random points .33 and .8
    assert late.min() < 0.35 and late.max() > 0.65
    assert recommender.stats["fallbacks"] == 0


def test_a_batch_spreads_along_the_front() -> None:
    batch = np.array([suggestion.units for suggestion in suggested(history_of(10), 6)])
    nearest = np.linalg.norm(batch[:, None] - batch, axis=-1) + np.eye(6)
    assert nearest.min() > 0.02 and np.ptp(batch[:, 0]) > 0.3


def test_given_values_are_kept_and_the_others_fit_them() -> None:
    """Where x is given, all y from .2 to .8 are on the front."""
    for n_trials, farthest in ((12, 0.2), (25, 0.1)):
        distances = []
        for x in (0.1, 0.5, 0.9):
            (suggestion,) = suggested(history_of(n_trials), fixed={"x": x})
            assert suggestion.configuration["x"] == x
            y = suggestion.configuration["y"]
            distances.append(abs(y - np.clip(y, 0.2, 0.8)))
        assert max(distances) < farthest and np.mean(distances) < 0.1


def test_what_is_violated_is_avoided_even_if_nothing_is_feasible() -> None:
    history = [
        replace(trial, constraints={"c": trial.configuration["x"] - 0.4})
        for trial in history_of(14)
    ]
    (suggestion,) = suggested(history)
    assert suggestion.configuration["x"] < 0.5
    violated = [trial for trial in history if trial.constraints["c"] > 0.0]
    (suggestion,) = suggested(violated)
    least = min(trial.configuration["x"] for trial in violated)
    assert suggestion.configuration["x"] < least + 0.1


@pytest.mark.parametrize("failed", ["model", "worst", "ignore"])
def test_failures_are_read_as_the_settings_say(failed) -> None:
    history = [
        trial if trial.configuration["x"] > 0.4 else Trial(trial.configuration, TrialState.FAILED)
        for trial in history_of(14)
    ]
    (suggestion,) = suggested(history, settings=RecommenderSettings(failed=failed))
    assert failed == "ignore" or suggestion.configuration["x"] > 0.3


def test_extreme_values_and_tables_do_no_harm() -> None:
    extremes = [(np.inf, 1e300), (-np.inf, -1e300), (1e-300, 0.0), (0.0, 0.0)]
    history = [
        replace(trial, objectives=pair)
        for trial, pair in zip(history_of(8), extremes * 2, strict=True)
    ]
    suggested(history)
    space = SearchSpace({"x": Categorical(["a", "b", "c"]), "y": Categorical(["d", "e", "f"])})
    tried = [{"x": x, "y": y} for x in "abc" for y in "de"]
    history = [
        Trial(configuration, TrialState.COMPLETE, objectives=(float(n), float(-n % 4)))
        for n, configuration in enumerate(tried)
    ]
    (suggestion,) = suggested(history, space=space)
    assert suggestion.configuration["y"] == "f"
