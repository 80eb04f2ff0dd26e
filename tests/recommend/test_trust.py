"""How far a prior is trusted, by what was observed."""

import math

import numpy as np
import pytest

from dre_plugins.recommend.ensemble.expectation import agreement, trust
from dre_plugins.recommend.lists import FAILED_RANK, dense_ranks
from dre_plugins.recommend.schedule import CONTRAST_SHARE as CONTRAST, is_contrast_due

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


def test_a_prior_without_credit_leaves_a_start_up_design_to_do() -> None:
    assert is_due(3, 3, 0.0) and is_due(20, 7, 0.1)
    assert not is_due(3, 8, 0.0)


def test_a_prior_that_tells_no_trials_apart_loses_trust_as_they_grow() -> None:
    trusted = [trust(np.full(n, 0.2), np.arange(n, dtype=float)) for n in (2, 10, 60)]
    assert trusted[0] > trusted[1] > 0.5 > trusted[2]
