"""What priors expect of configurations before anything is observed."""

from dataclasses import replace

import numpy as np
import pytest
from test_recommender_prior import PRESET, SPACE, FixedPrior

from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.space.candidates import sobol

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
