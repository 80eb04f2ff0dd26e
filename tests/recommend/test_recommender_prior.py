"""A recommender with a prior: trust, expectations, and one that chooses from given rows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from presets import of_steps
from small_spaces import evaluated

from dre_plugins.engine import ScorerSettings
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.lists import FAILED_RANK, dense_ranks
from dre_plugins.recommend.members import Expectation, agreement, trust
from dre_plugins.recommend.prior import AlignedPrior, PriorLike
from dre_plugins.recommend.schedule import CONTRAST_SHARE as CONTRAST, is_contrast_due
from dre_plugins.space import Float, SearchSpace
from dre_plugins.space.candidates import sobol
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


def test_first_suggestions_are_favourites_each_once_and_more_are_still_new() -> None:
    suggestions = recommender_of(FixedPrior()).suggest((), 8, index=0)
    xs = sorted(suggestion.configuration["x"] for suggestion in suggestions[:2])
    assert suggestions[0].source == "prior"
    assert set(xs) <= {0.1, 0.5, 0.8}
    assert all(0 <= suggestion.configuration["y"] <= 1 for suggestion in suggestions)
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


# ---- how far a prior is trusted, by what was observed

# What a prior expected of ten spread trials, best first, and ranks that agree with it.
SPREAD = np.linspace(0.0, 1.0, 10)
AS_EXPECTED = np.arange(10.0)[::-1]
NONE = np.empty(0)


@pytest.mark.parametrize(
    ("expected", "ranks"),
    [(NONE, NONE), (np.array([0.7]), np.array([0.0])), (SPREAD, np.zeros(10))],
    ids=["nothing", "one trial", "equal values"],
)
def test_a_prior_is_trusted_while_nothing_can_be_compared(expected, ranks) -> None:
    assert agreement(expected, ranks) == (0.0, math.inf)
    assert trust(expected, ranks) == 1.0


def test_failures_and_infinities_are_compared_like_other_values() -> None:
    ranks = AS_EXPECTED.copy()
    ranks[-3:] = -math.inf
    assert agreement(SPREAD, ranks)[0] > 0.9
    ranks[0] = math.inf
    assert agreement(SPREAD, ranks)[0] > 0.9
    assert agreement(SPREAD, -ranks)[0] < -0.9


def test_a_prior_is_trusted_if_it_is_right() -> None:
    assert agreement(SPREAD, AS_EXPECTED)[0] > 0.9 and trust(SPREAD, AS_EXPECTED) > 0.99
    wrong = AS_EXPECTED[::-1]
    assert agreement(SPREAD, wrong)[0] < -0.9 and trust(SPREAD, wrong) < 0.01


def test_a_prior_that_knows_nothing_loses_trust_with_the_trials() -> None:
    def mean_trust(n: int) -> float:
        rng = np.random.default_rng(n)
        found = [trust(np.linspace(0.0, 1.0, n), rng.permutation(n) * 1.0) for _ in range(200)]
        return float(np.mean(found))

    few, some, many = mean_trust(5), mean_trust(10), mean_trust(100)
    assert 0.95 > few > some > many > 0.0
    assert 0.3 < some < 0.9
    assert many < 0.3


def test_evidence_against_a_prior_grows_with_the_trials() -> None:
    against = [
        trust(np.linspace(0.0, 1.0, n), np.arange(n, dtype=float)) for n in (2, 3, 5, 10, 20)
    ]
    assert against[0] > 0.5  # two trials prove nothing
    assert against == sorted(against, reverse=True)
    # Of a prior that tells no trials apart:
    trusted = [trust(np.full(n, 0.2), np.arange(n, dtype=float)) for n in (2, 10, 60)]
    assert trusted[0] > trusted[1] > 0.5 > trusted[2]


def test_only_the_order_of_what_was_observed_counts() -> None:
    rng = np.random.default_rng(0)
    expected, values = rng.random(30), rng.standard_normal(30)
    ranks = dense_ranks(values)
    assert trust(expected, ranks) == trust(expected, dense_ranks(np.exp(9.0 * values)))
    assert trust(expected, ranks) == trust(expected, 1e6 * ranks**3 - 5.0)


def test_the_order_of_the_trials_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    expected, ranks, order = rng.random(15), rng.random(15), rng.permutation(15)
    assert trust(expected[order], ranks[order]) == pytest.approx(trust(expected, ranks))


def test_favourites_whose_order_was_left_open_prove_little() -> None:
    """Trials that the prior put close together may come out in any order."""
    favourites = np.linspace(0.0, 0.01, 10)
    assert trust(favourites, AS_EXPECTED[::-1]) > 0.3
    assert abs(agreement(favourites, AS_EXPECTED)[0]) < abs(agreement(SPREAD, AS_EXPECTED)[0])


def test_failures_count_as_the_worst() -> None:
    failed_as_feared = np.where(SPREAD > 0.5, FAILED_RANK, AS_EXPECTED)
    failed_favourites = np.where(SPREAD < 0.5, FAILED_RANK, AS_EXPECTED)
    assert trust(SPREAD, failed_as_feared) > 0.9
    assert trust(SPREAD, failed_favourites) < 0.3


def is_due(n_favourites: int, n_contrasts: int, trusted: float) -> bool:
    ranks = [CONTRAST / 10] * n_favourites + [2 * CONTRAST] * n_contrasts
    return is_contrast_due(np.array(ranks), trusted)


def test_contrasts_are_due_now_and_then() -> None:
    assert not is_due(0, 0, 1.0) and not is_due(1, 0, 1.0)
    assert is_due(2, 0, 1.0) and not is_due(2, 1, 1.0)
    assert is_due(4, 1, 1.0) and not is_due(3, 2, 1.0)
    assert is_due(10, 2, 1.0) and not is_due(9, 3, 1.0)
    assert is_due(100, 2, 1.0) and not is_due(100, 3, 1.0)
    # A prior without credit leaves a start-up design to do.
    assert is_due(3, 3, 0.0) and is_due(20, 7, 0.1)
    assert not is_due(3, 8, 0.0)


# ---- what priors expect of configurations before anything is observed

SETTINGS = RecommenderSettings(preset=replace(PRESET, universal_turns=True))
REFERENCE = sobol(2, 256, np.random.default_rng(0))
POINTS = np.random.default_rng(1).random((40, 2))


def expectation(*priors) -> Expectation:
    aligned = [prior and prior.on(SPACE) for prior in priors]
    return Expectation(aligned, REFERENCE, SETTINGS, Evidence.of(SPACE, [], weights=np.ones(1)))


def test_shares_are_those_of_the_reference() -> None:
    shares = expectation(FixedPrior()).shares(REFERENCE)
    assert shares.shape == (1, 256)
    assert 0.0 <= shares.min() < 0.2 and 0.8 < shares.max() <= 1.0 + 1 / 256
    assert shares.mean() == pytest.approx(0.5, abs=0.02)


def test_features_keep_the_order_and_stretch_the_best() -> None:
    expected = expectation(FixedPrior())
    shares, features = expected.shares(POINTS)[0], expected.features(POINTS)[:, 0]
    assert (np.argsort(shares) == np.argsort(features)).all()
    assert 0.0 <= features.min() and features.max() <= 1.01
    # The best quarter of the space takes three quarters of the scale.
    assert 0.7 < np.interp(0.25, np.sort(shares), np.sort(features)) < 0.8


def test_objectives_without_a_prior_have_no_row() -> None:
    assert expectation(None, FixedPrior()).shares(POINTS).shape == (1, 40)
    assert expectation().features(POINTS).shape == (40, 0)
    assert expectation(FixedPrior()).shares(POINTS[:0]).shape == (1, 0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_universal_prior_learns_what_it_tells(sign: float) -> None:
    """Where trials agree with a prior, or say the opposite, its best or worst is suggested."""
    expected = expectation(FixedPrior())

    def value(units: np.ndarray) -> float:
        return float(-sign * expected.features(units[None])[0, 0])

    trials = [
        Trial(SPACE.to_configuration(row), TrialState.COMPLETE, value(row)) for row in POINTS[:12]
    ]
    found = {}
    for prior in (FixedPrior(), "universal"):
        recommender = Recommender(SPACE, SETTINGS, seed=0, prior=prior)
        (suggestion,) = recommender.suggest(trials, index=13)
        assert suggestion.source == "universal-prior"
        found[prior == "universal"] = value(suggestion.units)
    best = max(value(row) for row in REFERENCE)
    assert found[False] >= best - 0.05 and found[False] >= found[True]
