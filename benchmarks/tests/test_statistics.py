"""Statistics of benchmark runs, on cases that are computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dre_bench.reports import statistics


def test_normalised_regret():
    # Best so far 0.4, 0.7, 0.7; (0.9 - x) / (0.9 - 0.5).
    regret = statistics.normalised_regret([0.4, 0.7, 0.6], best=0.9, unit=0.5)
    np.testing.assert_allclose(regret, [1.25, 0.5, 0.5])


def test_normalised_regret_where_there_is_nothing_to_find():
    np.testing.assert_array_equal(statistics.normalised_regret([0.5, 0.5], best=0.5, unit=0.5), 0)


def test_mean_by_task_counts_each_task_once():
    runs = np.array([[[1.0], [3.0], [10.0]]])
    np.testing.assert_array_equal(statistics.mean_by_task(runs, [0, 0, 1]), [[[2.0], [10.0]]])


def test_ranks_share_the_places_of_ties():
    # One run and two trials: 1 before two equal ones, which share places 2 and 3; all equal.
    regret = np.array([[[0.3, 0.5]], [[0.1, 0.5]], [[0.3, 0.5]]])
    np.testing.assert_array_equal(statistics.ranks(regret)[:, 0], [[2.5, 2], [1, 2], [2.5, 2]])


def test_standard_error_is_over_tasks():
    # Means of the tasks are 1 and 3: deviation sqrt(2), over sqrt(2) tasks.
    runs = np.array([[[0.0], [2.0], [3.0], [3.0]]])
    np.testing.assert_allclose(statistics.standard_error(runs, [0, 0, 1, 1]), [[1.0]])
    np.testing.assert_array_equal(statistics.standard_error(runs, [0, 0, 0, 0]), [[0.0]])


def test_bootstrap_bands_draw_whole_tasks():
    # Two tasks, with 1 (twice) and 4: means of resamples are 1, 4 or (1 + 1 + 4) / 3 = 2.
    runs = np.array([[[1.0], [1.0], [4.0]]])
    rng = np.random.default_rng(0)
    low, high = statistics.bootstrap_bands(runs, [0, 0, 1], rng, n_resamples=200)
    np.testing.assert_array_equal([low[0, 0], high[0, 0]], [1, 4])
    low, high = statistics.bootstrap_bands(runs, [0, 0, 1], rng, n_resamples=200, confidence=0.2)
    np.testing.assert_array_equal([low[0, 0], high[0, 0]], [2, 2])


def test_bootstrap_bands_are_repeated_by_the_same_generator():
    runs = np.random.default_rng(1).uniform(size=(2, 12, 3))
    tasks = np.repeat(np.arange(4), 3)
    first, second = (
        statistics.bootstrap_bands(runs, tasks, np.random.default_rng(7)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert np.all(first[0] < runs.mean(1)) and np.all(runs.mean(1) < first[1])


def test_area_under_curve():
    np.testing.assert_allclose(statistics.area_under_curve(np.array([[1.0, 0.5, 0.0]])), [0.5])


def test_stagnating():
    stuck = [0.9, 0.5, 0.5, 0.5]
    late = [0.9, 0.5, 0.5, 0.4]
    good = [0.9, 0.01, 0.01, 0.01]
    regret = np.array([[stuck, late], [good, stuck]])
    np.testing.assert_array_equal(statistics.stagnating(regret, n_trials=2), [0.5, 0.5])
    np.testing.assert_array_equal(statistics.stagnating(regret, n_trials=2, above=0.0), [0.5, 1])
    np.testing.assert_array_equal(statistics.stagnating(regret, n_trials=99), [0, 0])


def test_quantiles_of_unknown_times_are_unknown():
    seconds = np.array([[[1.0, 2.0, 3.0]], [[np.nan] * 3]])
    known, unknown = statistics.quantiles(seconds, (0.0, 0.5))
    np.testing.assert_array_equal(known, [1.0, 2.0])
    assert np.isnan(unknown).all()
    assert np.isnan(statistics.quantiles(seconds[:, :, 3:])).all()


def test_quantiles_leave_out_what_is_unknown():
    seconds = np.array([[[1.0, np.nan, 3.0], [2.0, np.nan, np.nan]]])
    np.testing.assert_array_equal(statistics.quantiles(seconds, (0.0, 0.5, 1.0)), [[1, 2, 3]])


def test_compare_counts_and_tests():
    # All of 6 tasks won: the smallest p there is, 2 / 2^6.
    found = statistics.compare(np.arange(6.0), np.arange(6.0) + np.array([1, 2, 3, 4, 5, 6]))
    assert (found.wins, found.ties, found.losses) == (6, 0, 0)
    assert found.p == pytest.approx(2 / 2**6) == statistics.smallest_p(6)


def test_compare_calls_rounding_a_tie():
    found = statistics.compare(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.4]))
    assert (found.wins, found.ties, found.losses) == (0, 1, 1)
    same = statistics.compare(np.array([0.3, 0.5]), np.array([0.3, 0.5]))
    assert same == statistics.Comparison(0, 2, 0, 1.0)


def test_compare_all_adjusts_for_the_others():
    by_task = np.outer([2.0, 1.0, 3.0], np.arange(1, 9))
    first, rival, last = statistics.compare_all(by_task, 1)
    assert (first.wins, first.losses) == (last.wins, last.losses) == (0, 8)
    # 2 / 2^8 each, times two samplers.
    assert first.p == last.p == pytest.approx(2 * 2 / 2**8)
    assert rival == statistics.Comparison(0, 8, 0, 1.0)


def test_signed_rank_p_by_hand():
    # |d| = 1, 2, 3 with ranks 1, 2, 3: of the 8 sums of positive ranks only 0 is as low, 2 / 8.
    assert statistics.signed_rank_p(np.array([-1.0, -2.0, -3.0])) == 0.25
    # Positive ranks sum to 1: of the 8 sums 0 and 1 are as low, 2 * 2 / 8.
    assert statistics.signed_rank_p(np.array([1.0, -2.0, -3.0])) == 0.5
    assert statistics.signed_rank_p(np.array([1.0, -1.0])) == 1.0
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


def test_holm():
    # Sorted .01, .02, .03, .04 times 4, 3, 2, 1 is .04, .06, .06, .04, which must not fall.
    adjusted = statistics.holm([0.04, 0.01, 0.03, 0.02])
    np.testing.assert_allclose(adjusted, [0.06, 0.04, 0.06, 0.06])
    np.testing.assert_array_equal(statistics.holm([0.9, 0.8]), [1, 1])
    assert statistics.holm([]).shape == (0,)


def test_pairwise_p_is_adjusted_for_all_pairs():
    by_task = np.outer([1.0, 2.0, 2.0], np.arange(1, 9))
    p = statistics.pairwise_p(by_task)
    # Two pairs of 2 / 2^8 each, times 3 tests; the later of the two must not be smaller.
    assert p[0, 1] == p[1, 0] == p[0, 2] == pytest.approx(3 * 2 / 2**8)
    assert p[1, 2] == 1
    np.testing.assert_array_equal(np.diag(p), 1)


def test_smallest_p_is_at_most_one():
    assert statistics.smallest_p(1) == statistics.smallest_p(2, 5) == 1.0


def test_critical_difference():
    pytest.importorskip("scikit_posthocs")
    # The same order on 10 tasks: ranks 1, 2, 3. Friedman's statistic is then 2 n = 20, and with
    # 2 degrees of freedom p = exp(-10).
    found = statistics.critical_difference(np.outer([0.1, 0.2, 0.3], np.arange(1, 11)))
    np.testing.assert_allclose(found.ranks, [1, 2, 3])
    assert found.friedman_p == pytest.approx(np.exp(-10))
    # Demšar (2006), table 5: q = 2.343 for 3 classifiers.
    assert found.difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 10)), abs=1e-3)
    assert found.p[0, 2] < 0.05 < found.p[0, 1]
    assert found.n_tasks == 10


def test_critical_difference_of_equals():
    pytest.importorskip("scikit_posthocs")
    found = statistics.critical_difference(np.ones((3, 4)))
    np.testing.assert_array_equal(found.ranks, [2, 2, 2])
    assert found.friedman_p == 1.0
    np.testing.assert_allclose(found.p, 1.0)


@pytest.mark.parametrize("shape", [(2, 9), (3, 1)])
def test_critical_difference_needs_three_samplers_and_two_tasks(shape):
    with pytest.raises(ValueError, match=f"got {shape[0]} and {shape[1]}"):
        statistics.critical_difference(np.ones(shape))
