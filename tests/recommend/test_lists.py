"""Lists of trials: ranks, repetitions as one value, places of pruned trials."""

import logging
import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna_worker import reported
from small_spaces import PLANE, history_of, sphere
from test_universal_proposer import QUICK, SETTINGS

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import Recommender
from dre_plugins.recommend.lists import (
    FAILED_RANK,
    dense_ranks,
    imputed_values,
    joint_list,
    joint_ranks,
    rank_fantasies,
    repetition_keys,
    subsample,
    trial_lists,
    without_noise,
)
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import Trial, TrialState


def complete(value, **rungs) -> Trial:
    return Trial({}, TrialState.COMPLETE, value, {int(k[1:]): v for k, v in rungs.items()})


def pruned(**rungs) -> Trial:
    return Trial({}, TrialState.PRUNED, None, {int(k[1:]): v for k, v in rungs.items()})


def lists_of(history, failed="worst", max_length=100):
    return trial_lists(history, failed=failed, max_length=max_length)


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ([3.0, 1.0, 1e300, 1.0, -math.inf, math.inf], [2, 1, 3, 1, 0, 4]),
        ([1.0, 1.0 + 1e-12, 1e300, 2e300], [0, 1, 2, 3]),  # float32 would merge them
        ([2.0, math.nan, 1.0], [1, math.nan, 0]),
    ],
)
def test_values_become_dense_ranks_and_missing_ones_have_none(values, ranks) -> None:
    np.testing.assert_array_equal(dense_ranks(values), ranks)


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
    # Nothing to rank gives no list.
    assert lists_of([]) == lists_of([Trial({}, TrialState.RUNNING)]) == []
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
    # Beliefs one after the other keep their order.
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


# -------------------------------------------------------------------------- repetitions and noise


def values(pairs: list[tuple[bytes, float]]) -> list[float | None]:
    history = [complete(value) for _, value in pairs]
    return [trial.value for trial in without_noise(history, [key for key, _ in pairs])]


@pytest.mark.parametrize("scale", [1.0, 2.0**1000, 2.0**-1000])
def test_repetitions_get_their_mean_and_near_ties_are_ties(scale: float) -> None:
    pairs = [(b"a", 1.0), (b"a", 3.0), (b"b", 5.0), (b"b", 7.0), (b"c", 9.0), (b"c", 11.0)]

    def levelled(*last: float) -> list[float]:
        found = values(
            [(key, scale * value) for key, value in [*pairs, *((b"d", v) for v in last)]]
        )
        return [value / scale for value in found]

    # The noise is sqrt(2), so that means must differ by sqrt(2): all of these do.
    assert levelled() == [2.0, 2.0, 6.0, 6.0, 10.0, 10.0]
    # A single trial next to a mean of two needs more.
    assert levelled(7.5)[6] == 6.0 and levelled(7.8)[6] == 7.8
    assert levelled(7.5)[:6] == levelled(7.8)[:6] == levelled()


def test_repetitions_at_both_ends_of_the_floats_are_all_noise() -> None:
    pairs = [(b"a", 1.7e308), (b"a", -1.7e308)] * 2 + [(b"b", 1.0), (b"c", -1.0)]
    assert len(set(values(pairs))) == 1


@pytest.mark.parametrize("repeated", [[1.0] * 4, [0.0], [0.0, 1.0], [0.0, 1.0, 2.0]])
def test_exact_and_few_repetitions_change_nothing(repeated: list[float]) -> None:
    pairs = [*((b"a", value) for value in repeated), (b"b", 1.0 + 1e-9), (b"c", 9.0)]
    assert values(pairs) == [value for _, value in pairs]


def test_what_has_no_finite_value_is_left_alone() -> None:
    history = [
        *[complete(value) for value in (1.0, 2.0, 3.0, 4.0, math.inf, math.nan)],
        Trial({}, TrialState.RUNNING),
        Trial({}, TrialState.FAILED),
    ]
    kept = without_noise(history, [b"a"] * 8)
    assert [trial.value for trial in kept[:4]] == [2.5] * 4
    assert kept[4:5] == history[4:5] and kept[6:] == history[6:]
    assert math.isnan(kept[5].value)


def test_what_is_clipped_far_outside_repeats_nothing() -> None:
    units = np.array([[2.0], [2.0], [0.5], [0.5], [-1.0], [np.nan]])
    keys = repetition_keys(units)
    assert keys[2] == keys[3]
    assert len(set(keys)) == 5


# --------------------------------------------------------------------- places of pruned trials


def order(*history: Trial) -> list[int]:
    """Return the positions of trials with a place, the worst first."""
    found = joint_ranks(history)
    placed = [i for i in range(len(history)) if not math.isnan(found[i])]
    return sorted(placed, key=lambda i: found[i])


def test_a_pruned_trial_stands_above_those_that_it_beat_at_its_last_step() -> None:
    a, b, c = complete(1.0, s1=0.1), complete(2.0, s1=0.2), complete(3.0, s1=0.3)
    assert order(a, b, c, pruned(s1=0.25)) == [0, 1, 3, 2]
    assert order(a, b, c, pruned(s1=0.05)) == [3, 0, 1, 2]
    assert order(a, b, c, pruned(s1=0.35)) == [0, 1, 2, 3]
    at_other_steps = [complete(1.0, s1=0.1, s3=0.9), complete(2.0, s1=0.2, s3=0.9)]
    assert order(*at_other_steps, pruned(s2=0.15)) == [0, 2, 1]
    further_than_all = pruned(s1=0.05, s2=0.25)
    assert order(a, b, complete(3.0, s1=0.3, s2=math.nan), further_than_all) == [0, 1, 3, 2]
    own_steps = [pruned(**{"s0": -n, f"s{n}": -n}) for n in range(1, 999)]
    assert order(complete(1.0, s0=1.0, s999=1.0), *own_steps) == [*range(998, -1, -1)]
    # Where learning curves cross, it depends on how many trials are beaten, not on which.
    assert order(complete(1.0, s1=0.9), complete(2.0, s1=0.1), pruned(s1=0.5)) == [0, 2, 1]


def test_those_of_a_later_step_are_placed_first() -> None:
    history = [
        complete(5.0, s1=0.5, s2=0.6),
        complete(9.0, s1=0.6, s2=0.9),
        pruned(s1=0.9, s2=0.7),  # between the two, as far as it got
        pruned(s1=0.7),  # has beaten both complete ones, and not the pruned one
        pruned(s1=0.1),
        pruned(s1=0.2),
    ]
    assert order(*history) == [4, 5, 0, 2, 3, 1]


def test_equal_values_and_equal_reports_share_a_place() -> None:
    assert joint_ranks([complete(3.0), complete(1.0), complete(3.0)]).tolist() == [1.0, 0.0, 1.0]
    found = joint_ranks([complete(1.0, s1=1.0), pruned(s1=0.5), pruned(s1=0.5)])
    assert found[1] == found[2] < found[0]


def test_what_cannot_be_placed() -> None:
    history = [
        Trial({}, TrialState.RUNNING),
        Trial({}, TrialState.FAILED, None, {1.0: 9.0}),
        pruned(s1=math.nan),
        complete(math.nan),
        complete(2.0),
    ]
    assert np.isnan(joint_ranks(history)).tolist() == [True] * 4 + [False]
    assert np.isnan(joint_ranks([])).tolist() == []


def test_only_the_order_of_reports_and_of_values_counts() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(40, 3))

    def history(transformed) -> list[Trial]:
        rows = transformed(draws).tolist()
        return [
            complete(c, s1=a, s2=b)
            if i % 3 == 0
            else pruned(s1=a, s2=b)
            if i % 3
            else pruned(s1=a)
            for i, (a, b, c) in enumerate(rows)
        ]

    assert joint_ranks(history(lambda x: x)).tolist() == joint_ranks(history(np.exp)).tolist()


def test_without_pruned_trials_it_is_the_list_of_final_values() -> None:
    failed = Trial({}, TrialState.FAILED)
    history = [complete(3.0), failed, complete(1.0), Trial({}, TrialState.RUNNING), complete(2.0)]
    for rule in ("worst", "ignore"):
        (expected,) = trial_lists(history, failed=rule, max_length=128)
        found, _ = joint_list(history, failed=rule, max_length=128)
        assert found.trials.tolist() == expected.trials.tolist()
        assert found.ranks.tolist() == expected.ranks.tolist()


# --------------------------------------------------------------------------------------- values


def test_values_lie_between_those_around_them_if_any_trial_is_complete() -> None:
    history = [complete(1.0, s1=0.1), complete(2.0, s1=0.2)]
    history += [pruned(s1=report) for report in (0.15, 0.0, 9.0)]
    assert imputed_values(history, joint_ranks(history)).tolist() == [1.0, 2.0, 1.5, 1.0, 2.0]
    assert np.isnan(imputed_values(history[2:], joint_ranks(history[2:]))).all()


@pytest.mark.parametrize("extreme", [math.inf, -math.inf, 1.7e308, -1.7e308])
def test_extreme_values_are_survived(extreme) -> None:
    history = [complete(extreme, s1=0.1), complete(2.0, s1=0.2), pruned(s1=0.15)]
    history += [complete(-extreme, s1=0.3), pruned(s1=0.25)]
    found = imputed_values(history, joint_ranks(history))
    assert np.isfinite(found[[2, 4]]).all() and found[0] == extreme


# --------------------------------------------------------------------------------- who reads them


def with_reports(history: list[Trial], n_pruned: int) -> list[Trial]:
    """Return the trials with a report each, of which the last ones went no further."""
    reported = [replace(trial, rungs={1.0: trial.value}) for trial in history]
    n = len(history) - n_pruned
    stopped = [replace(trial, state=TrialState.PRUNED, value=None) for trial in reported[n:]]
    return [*reported[:n], *stopped]


@pytest.mark.parametrize("n_pruned", [1, 10, 20])
def test_the_universal_prior_reads_pruned_trials(n_pruned: int) -> None:
    """Reports that tell the final value are worth nearly as much as final values."""
    history = with_reports(history_of(20), n_pruned)
    (suggestion,) = Recommender(PLANE, SETTINGS, seed=0).suggest(history, index=21)
    assert suggestion.source == "universal-prior"
    assert sphere(suggestion.configuration) > -0.15


def test_what_pruned_trials_reported_changes_its_suggestion() -> None:
    def suggested(sign: float) -> dict[str, float]:
        history = with_reports(history_of(12), 6)
        history[6:] = [replace(t, rungs={1.0: sign * t.rungs[1.0]}) for t in history[6:]]
        (suggestion,) = Recommender(PLANE, SETTINGS, seed=0).suggest(history, index=13)
        return suggestion.configuration

    assert suggested(1.0) != suggested(-1.0)


def test_a_study_with_the_default_pruner_of_optuna_takes_turns(caplog) -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
        return reported(trial, (x - 0.4) ** 2 + (y + 0.7) ** 2, n_steps=3)

    sampler = DRESampler(seed=1, settings=Settings(preset=QUICK))
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study.optimize(objective, n_trials=24)
    states = [trial.state for trial in study.trials]
    assert states.count(optuna.trial.TrialState.PRUNED) >= 1
    asked = {sampler.explain(study, number).source for number in (*range(3, 20), 21, 23)}
    assert asked == {"universal-prior"} and sampler.stats["skipped_turns"] == 0
    texts = [record.getMessage() for record in caplog.records]
    assert sum("The universal prior suggests from trial 3 on" in text for text in texts) == 1
