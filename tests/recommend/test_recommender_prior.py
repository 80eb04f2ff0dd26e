"""A recommender with a prior, and one that may choose from given rows only."""

from dataclasses import replace

import numpy as np
import pytest
from presets import of_steps
from small_spaces import evaluated

from dre_plugins.engine import ScorerSettings
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.prior import AlignedPrior, PriorLike
from dre_plugins.space import Float, SearchSpace
from dre_plugins.study import AskTell

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
SCORER = ScorerSettings(n_members=4, hidden=(8,), range_limit=None)
PRESET = of_steps(20, 20, scorer=SCORER)
FAVOURITES = np.array([[0.1, 0.2], [0.8, np.nan], [0.5, 0.5]])


class FixedPrior(PriorLike):
    """A prior of random weights: what it prefers is arbitrary, but always the same."""

    def __init__(self, favourites: np.ndarray = FAVOURITES) -> None:
        self.favourites = favourites

    def on(self, space: SearchSpace) -> AlignedPrior:
        ensemble = DeepRankingEnsemble.initialise(SCORER, space.n_features, seed=3)
        return AlignedPrior(ensemble, space.features, self.favourites)


class NoPrior(FixedPrior):
    def on(self, space: SearchSpace) -> None:
        return None


def recommender_of(prior: FixedPrior | None, **settings) -> Recommender:
    return Recommender(SPACE, RecommenderSettings(preset=PRESET, **settings), seed=0, prior=prior)


def observed(rows: np.ndarray) -> list[Trial]:
    return evaluated(SPACE, rows, lambda c: -(c["x"] ** 2) - c["y"] ** 2)


def test_first_suggestions_are_favourites_each_once() -> None:
    suggestions = recommender_of(FixedPrior()).suggest((), 3, index=0)
    xs = sorted(suggestion.configuration["x"] for suggestion in suggestions[:2])
    assert suggestions[0].source == "prior"
    assert set(xs) <= {0.1, 0.5, 0.8}
    assert all(0 <= suggestion.configuration["y"] <= 1 for suggestion in suggestions)


def test_more_first_suggestions_than_favourites_are_still_new() -> None:
    suggestions = recommender_of(FixedPrior()).suggest((), 8, index=0)
    assert len({repr(suggestion.configuration) for suggestion in suggestions}) == 8
    assert {suggestion.source for suggestion in suggestions} <= {"prior", "contrast"}


def test_a_prior_without_favourites_searches() -> None:
    prior = FixedPrior(np.empty((0, 2)))
    (suggestion,) = recommender_of(prior).suggest((), index=0)
    assert suggestion.source == "prior"
    rank = suggestion.explanation.predicted_rank
    assert rank is not None and rank < 100  # of 512


def test_start_up_trials_can_be_asked_for_in_spite_of_a_prior() -> None:
    recommender = recommender_of(FixedPrior(), n_startup_trials=2)
    sources = []
    trials: list[Trial] = []
    for index in range(4):
        (suggestion,) = recommender.suggest(trials, index=index)
        sources.append(suggestion.source)
        trials.append(Trial(suggestion.configuration, TrialState.COMPLETE, float(index)))
    assert sources[:2] == ["random", "random"]
    assert set(sources[2:]) <= {"model", "contrast"}


def test_contrasts_are_tried_until_there_are_some() -> None:
    recommender = recommender_of(FixedPrior())
    trials: list[Trial] = []
    for index in range(14):
        (suggestion,) = recommender.suggest(trials, index=index)
        trials += observed(suggestion.units[None])
    assert 1 <= recommender.stats["contrast"] <= 8
    assert recommender.stats["model"] >= 5
    assert recommender.stats["fallbacks"] == 0


@pytest.mark.parametrize("prior", [None, FixedPrior()])
def test_given_candidates_are_all_that_is_suggested(prior: FixedPrior | None) -> None:
    rows = np.random.default_rng(0).random((12, 2))
    recommender = recommender_of(prior, n_startup_trials=3 if prior is None else None)
    trials: list[Trial] = []
    found = []
    for index in range(12):
        (suggestion,) = recommender.suggest(trials, index=index, candidates=rows)
        found.append(suggestion.units.tolist())
        trials += observed(suggestion.units[None])
    assert sorted(found) == sorted(rows.tolist())
    (again,) = recommender.suggest(trials, index=12, candidates=rows)
    assert again.source == "exhausted" and again.units.tolist() in found


def test_short_lists_take_a_share_of_the_steps() -> None:
    lists = observed(np.random.default_rng(0).random((5, 2)))
    full = replace(PRESET.from_random, n_steps=40)
    short = replace(full, full_length=20)
    chosen = [
        Recommender(
            SPACE,
            RecommenderSettings(preset=replace(PRESET, from_random=fitting), n_startup_trials=5),
            seed=0,
        ).suggest(lists, index=6)[0]
        for fitting in (short, replace(full, n_steps=10), full)
    ]
    ranks = [suggestion.explanation.predicted_rank for suggestion in chosen]
    assert chosen[0].configuration == chosen[1].configuration
    assert ranks[0] == ranks[1] != ranks[2]


def test_running_trials_count_once_among_those_that_check_the_prior() -> None:
    """Three trials need one contrast and five need two; running trials are counted."""
    recommender = recommender_of(FixedPrior())
    rows = np.random.default_rng(0).random((200, 2))
    with isolated("cpu", 1):
        ranks, _ = recommender.ensemble((), index=0).predicted(SPACE.canonical(rows))
    order = np.argsort(ranks)
    (contrast,) = observed(rows[order[-1:]])
    favourites = [
        replace(trial, state=TrialState.RUNNING, value=None) for trial in observed(rows[order[:4]])
    ]
    (suggestion,) = recommender.suggest([contrast, *favourites[:2]], index=3)
    assert suggestion.source == "model"
    (suggestion,) = recommender.suggest([contrast, *favourites], index=5)
    assert suggestion.source == "contrast"


@pytest.mark.parametrize("make", [AskTell, lambda *a, **k: Recommender(*a, seed=0, **k)])
def test_a_list_without_any_prior_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"prior must be a prior for one objective.*None, None"):
        make(SPACE, prior=[None, None])


@pytest.mark.parametrize("prior", [NoPrior(), [NoPrior(), None]])
def test_priors_that_do_not_apply_are_as_none(prior) -> None:
    recommender = Recommender(SPACE, RecommenderSettings(preset=PRESET), seed=0, prior=prior)
    assert recommender.suggest((), index=0)[0].source == "random"
