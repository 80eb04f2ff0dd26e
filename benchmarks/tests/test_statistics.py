"""Statistics of benchmark runs, on cases that are computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dre_bench.reports import statistics


def by_task(*rows):
    return pd.DataFrame(np.array(rows, dtype=float), [f"s{i}" for i in range(len(rows))])


def test_normalised_regret():
    # Best so far 0.4, 0.7, 0.7; (0.9 - x) / (0.9 - 0.5).
    regret = statistics.normalised_regret([0.4, 0.7, 0.6], best=0.9, unit=0.5)
    np.testing.assert_allclose(regret, [1.25, 0.5, 0.5])
    nothing = statistics.normalised_regret([0.5, 0.5], best=0.5, unit=0.5)
    np.testing.assert_array_equal(nothing, 0)


def test_tests_are_adjusted_for_the_others():
    found = statistics.compare_all(by_task(*np.outer([2.0, 1.0, 3.0], np.arange(1, 9))), "s1")
    assert found[["wins", "ties", "losses"]].to_numpy().tolist() == [
        [0, 0, 8],
        [0, 8, 0],
        [0, 0, 8],
    ]
    # 2 / 2^8 each, times two samplers.
    assert found["p"].tolist() == pytest.approx([2 * 2 / 2**8, 1.0, 2 * 2 / 2**8])


def test_rounding_is_a_tie():
    found = statistics.compare_all(by_task([0.1 + 0.2, 0.5], [0.3, 0.4]), "s1")
    assert found.loc["s0", ["wins", "ties", "losses"]].tolist() == [0, 1, 1]
    single = statistics.compare_all(by_task([0.3, 0.5]), "s0")
    assert single.loc["s0"].tolist() == [0, 2, 0, 1.0]


def test_signed_rank_p_by_hand():
    # |d| = 1, 2, 3 with ranks 1, 2, 3: of the 8 sums of positive ranks only 0 is as low, 2 / 8.
    assert statistics.signed_rank_p(np.array([-1.0, -2.0, -3.0])) == 0.25
    # Positive ranks sum to 1: of the 8 sums 0 and 1 are as low, 2 * 2 / 8.
    assert statistics.signed_rank_p(np.array([1.0, -2.0, -3.0])) == 0.5
    assert statistics.signed_rank_p(np.zeros(3)) == 1.0


@pytest.mark.parametrize("ties", [False, True])
def test_signed_rank_p_is_that_of_scipy(ties):
    rng = np.random.default_rng(0)
    for _ in range(5):
        difference = rng.normal(0.3, 1.0, 8)
        if ties:
            difference = np.array([0.0, *np.round(difference[1:], 0)])
        expected = stats.wilcoxon(difference, zero_method="pratt").pvalue
        assert statistics.signed_rank_p(difference) == pytest.approx(expected)
