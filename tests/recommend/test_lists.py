import math

import numpy as np
import pytest

from dre_plugins.recommend.lists import (
    FAILED_RANK,
    dense_ranks,
    rank_fantasies,
    subsample,
    trial_lists,
)
from dre_plugins.recommend.trials import Trial, TrialState


def complete(value, **rungs) -> Trial:
    return Trial({}, TrialState.COMPLETE, value, {int(k[1:]): v for k, v in rungs.items()})


def pruned(**rungs) -> Trial:
    return Trial({}, TrialState.PRUNED, None, {int(k[1:]): v for k, v in rungs.items()})


def lists_of(history, failed="worst", max_length=100):
    return trial_lists(history, failed=failed, max_length=max_length)


def test_values_become_dense_ranks() -> None:
    assert dense_ranks([3.0, 1.0, 1e300, 1.0, -math.inf, math.inf]).tolist() == [2, 1, 3, 1, 0, 4]


def test_ranks_keep_what_float32_would_merge() -> None:
    assert dense_ranks([1.0, 1.0 + 1e-12, 1e300, 2e300]).tolist() == [0, 1, 2, 3]


def test_missing_values_have_no_dense_rank() -> None:
    np.testing.assert_array_equal(dense_ranks([2.0, math.nan, 1.0]), [1.0, math.nan, 0.0])


def test_failures_are_tied_below_all_that_succeeded() -> None:
    history = [
        complete(-1e9),
        Trial({}, TrialState.FAILED),
        complete(math.nan),
        complete(None),
        complete(5.0),
        Trial({}, TrialState.RUNNING),
    ]
    (only,) = lists_of(history)
    found = dict(zip(only.trials.tolist(), only.ranks.tolist(), strict=True))
    assert found == {0: 0.0, 4: 1.0, **dict.fromkeys((1, 2, 3), FAILED_RANK)}
    (ignoring,) = lists_of(history, failed="ignore")
    assert ignoring.trials.tolist() == [0, 4]


def test_nothing_to_rank_gives_no_list() -> None:
    assert lists_of([]) == []
    assert lists_of([Trial({}, TrialState.RUNNING)]) == []
    assert lists_of([Trial({}, TrialState.FAILED)], failed="ignore") == []


def test_pruned_trials_are_compared_where_they_were_pruned() -> None:
    history = [
        complete(10.0, s1=1.0, s2=5.0, s3=10.0),
        complete(11.0, s1=4.0, s2=6.0, s3=11.0),
        pruned(s1=0.5),
        pruned(s1=2.0, s2=1.0),
        pruned(s1=9.0, s2=math.nan),  # it diverged: a failure, however good it was before
        pruned(),  # nothing reported: a failure
    ]
    final, second, first = lists_of(history)
    assert final.trials.tolist() == [0, 1, 4, 5]
    assert final.ranks.tolist() == [0.0, 1.0, FAILED_RANK, FAILED_RANK]
    assert (second.trials.tolist(), second.ranks.tolist()) == ([0, 1, 3], [1.0, 2.0, 0.0])
    assert (first.trials.tolist(), first.ranks.tolist()) == ([0, 1, 2, 3], [1.0, 3.0, 0.0, 2.0])
    assert second.weight == pytest.approx(3 / 6)
    assert first.weight == pytest.approx(4 / 6)


def test_thinning_keeps_the_best_half_and_the_extremes() -> None:
    ranks = np.random.default_rng(0).permutation(1000).astype(float)
    kept = subsample(ranks, 100)
    assert len(kept) == len(set(kept.tolist())) == 100
    values = np.sort(ranks[kept])[::-1]
    assert values[:50].tolist() == list(range(999, 949, -1))
    assert values[-1] == 0
    assert np.diff(values[50:]).min() >= -20
    assert subsample(ranks[:100], 100).tolist() == list(range(100))


def test_believed_trials_take_the_place_the_surrogate_predicts() -> None:
    ranks = np.array([0.0, 1.0, 2.0, 3.0])
    predicted = np.array([40.0, 30.0, 20.0, 10.0])  # rank 1 = best: agrees with the order
    believed = rank_fantasies(ranks, predicted, np.array([5.0, 15.0, 35.0, 99.0]))
    # The order becomes: 99, 0, 35, 1, 2, 15, 3, 5.
    assert believed.tolist() == [1, 3, 4, 6, 7, 5, 2, 0]
    failures = rank_fantasies(
        np.array([FAILED_RANK, FAILED_RANK]), np.array([1.0, 2.0]), np.array([9.0])
    )
    assert failures.tolist() == [1, 1, 0]


def test_beliefs_one_after_the_other_keep_their_order() -> None:
    ranks, predicted = np.array([0.0, 1.0]), np.array([20.0, 10.0])
    for better_and_better in (9.0, 8.0, 7.0):
        ranks = rank_fantasies(ranks, predicted, np.array([better_and_better]))
        predicted = np.append(predicted, better_and_better)
    assert ranks.tolist() == [0, 1, 2, 3, 4]


def test_failures_are_the_end_of_the_latest_rung_when_nothing_is_complete() -> None:
    history = [pruned(s1=0.5), Trial({}, TrialState.FAILED), pruned(s1=2.0, s2=1.0)]
    latest, first = lists_of(history)
    assert (latest.trials.tolist(), latest.ranks.tolist()) == ([2, 1], [0.0, FAILED_RANK])
    assert first.trials.tolist() == [0, 2]
