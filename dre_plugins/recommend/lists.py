"""From trials to the lists that the surrogate ranks.

Only the order within a list counts, so values become dense ranks here, in float64 and exactly: any
monotone transformation of the metric gives the same lists, bit for bit, and 1e300 or ±inf are as
good as any other value.
"""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Array, Mask, Positions, Units
from dre_plugins.space.seen import groups

# Number of rungs with a list of their own: those at which most trials were pruned. More lists
# would cost time and add little.
MAX_RUNG_LISTS = 4

# Largest number of fantasies, the pending trials that a model is fitted to at their predicted
# outcomes: without a bound, the time of a suggestion would grow with the number of running trials
# (lab/2026-11-23-costs.md).
MAX_FANTASIES = 64

# Dense rank of all failed trials, below every value.
FAILED_RANK = -1.0

# Pruned trials are compared at this many different steps at most, as each takes time.
MAX_STEPS = 128

# Fewest repetitions of configurations from which noise is estimated.
MIN_REPETITIONS = 3

# Steps at which a trial reported, ascending, and the values there.
Reports: TypeAlias = tuple[list[float], list[float]]


@dataclass(frozen=True, slots=True)
class TrialList:
    """Hold one list: which trials, in which order.

    Ranks are dense: 0, 1, … upwards, larger is better, equal values are equal; `FAILED_RANK` for
    failures.
    """

    trials: Positions  # positions in the history `[N]`
    ranks: Array
    weight: float  # weight in the loss, 1 for the list of final values


def final_value(trial: Trial) -> float | None:
    """Return the value of a trial that ended well, or None."""
    if trial.state is not TrialState.COMPLETE or trial.value is None or math.isnan(trial.value):
        return None
    return trial.value


def final_values(history: Iterable[Trial]) -> Array:
    """Return the values of trials that ended well `[N]`, NaN for others."""
    return np.array([final_value(trial) for trial in history], dtype=np.float64)


def has_failed(trial: Trial) -> bool:
    """Return whether the trial ended without a value, or with NaN as the last report."""
    if trial.state is TrialState.COMPLETE:
        return final_value(trial) is None
    if trial.state is TrialState.PRUNED:
        # One that diverged must not count by what it reported before.
        return not trial.rungs or math.isnan(trial.rungs[max(trial.rungs)])
    return trial.state is TrialState.FAILED


def last_step(trial: Trial) -> float | None:
    """Return the last step of a pruned trial that has not failed; None for other trials."""
    if trial.state is not TrialState.PRUNED or has_failed(trial):
        return None
    return max(trial.rungs)


def reports_of(history: Iterable[Trial]) -> list[Reports]:
    """Return the steps at which each trial reported a value, and these; none if it has failed."""
    reports: list[Reports] = []
    for trial in history:
        rungs = {} if has_failed(trial) else trial.rungs
        steps = sorted(step for step, value in rungs.items() if not math.isnan(value))
        reports.append((steps, [rungs[step] for step in steps]))
    return reports


def reported_at(reports: Iterable[Reports], step: float) -> Array:
    """Return the last values up to a step, of trials that reached it, `[N]`; NaN of others.

    Trials may report at different steps, so that few may have a value at the step itself.
    """
    reported = [
        values[bisect_right(steps, step) - 1] if steps and steps[0] <= step <= steps[-1] else None
        for steps, values in reports
    ]
    return np.array(reported, dtype=np.float64)


def without_noise(history: Sequence[Trial], repeats: Sequence[Hashable]) -> list[Trial]:
    """Give trials that noise alone may have set apart the same value.

    Repetitions of a configuration get their mean, and configurations whose means differ by less
    than its standard error are tied. Without repetitions nothing is known of the noise, and
    nothing changes. `repeats` are equal for equal configurations `[N]`.
    """
    finals = enumerate(final_values(history).tolist())
    value_of = {i: value for i, value in finals if math.isfinite(value)}
    trials_of: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in value_of:
        trials_of[repeats[i]].append(i)
    n_repetitions = len(value_of) - len(trials_of)
    if n_repetitions < MIN_REPETITIONS:
        return [*history]
    means = [
        (math.fsum(value_of[i] / len(trials) for i in trials), trials)
        for trials in trials_of.values()
    ]
    deviations = [value_of[i] - mean for mean, trials in means for i in trials]
    # Not by squares, which overflow for 1e300 and underflow for 1e-300.
    noise = math.hypot(*deviations) / math.sqrt(n_repetitions)
    levels: dict[int, float] = {}
    level, n_level = -math.inf, 1  # mean value of the first configuration of a tie, and its trials
    for mean, trials in sorted(means):
        # The standard error of the difference of the two means.
        error = noise * math.sqrt(1.0 / len(trials) + 1.0 / n_level)
        if mean - level >= error:
            level, n_level = mean, len(trials)
        levels.update(dict.fromkeys(trials, level))
    return [replace(t, value=levels[i]) if i in levels else t for i, t in enumerate(history)]


def repetition_keys(units: Units) -> list[Hashable]:
    """Return keys that are equal for repetitions of a configuration, by units `[N, P]`.

    Units far outside the present ranges are clipped, so trials there do not count as repetitions.
    """
    is_outside = np.any((units < 0.0) | (units > 1.0), axis=1).tolist()
    return [i if is_outside[i] else key for i, key in enumerate(groups(units))]


def trial_lists(history: Sequence[Trial], *, failed: str, max_length: int) -> list[TrialList]:
    """Arrange a history into lists of at least one trial; none when nothing can be ranked.

    One list has the final values of complete trials. For each step at which trials were pruned,
    latest first, all that reached it form a further list, weighted by their share. Failures are
    tied at the end of the first list, unless they are ignored.
    """
    ended = [i for i, trial in enumerate(history) if trial.state is not TrialState.RUNNING]
    trials = [history[i] for i in ended]
    last = (last_step(trial) for trial in trials)
    steps = _pruning_steps(step for step in last if step is not None)
    reports = reports_of(trials) if steps else []  # which takes time in a long study
    lists = ranked_lists(
        final_values(trials),
        np.array([failed == "worst" and has_failed(trial) for trial in trials], dtype=np.bool_),
        [reported_at(reports, step) for step in steps],
        max_length,
    )
    positions = np.array(ended, dtype=np.intp)
    return [replace(ranked, trials=positions[ranked.trials]) for ranked in lists]


def ranked_lists(
    values: Array, failed: Mask, reported: Sequence[Array], max_length: int
) -> list[TrialList]:
    """Arrange values, failures and reports of trials into lists, see `trial_lists`.

    Args:
        values: Final values `[N]`, NaN where there is none.
        failed: Which trials are tied at the end of the first list `[N]`.
        reported: Values at each step at which trials were pruned, latest first, each `[N]`; NaN
            where nothing was reported.
    """
    contents = [(values, 1.0)] if not np.isnan(values).all() else []
    contents += [
        (values_there, float((~np.isnan(values_there)).mean())) for values_there in reported
    ]
    if not contents and failed.any():
        contents = [(values, 1.0)]
    nothing = np.zeros_like(failed)
    return [
        _ranked(ranked, nothing if place else failed, weight, max_length)
        for place, (ranked, weight) in enumerate(contents)
    ]


def _pruning_steps(last: Iterable[float]) -> list[float]:
    """Return the steps at which most trials were pruned, highest first.

    `last` has the last step of each pruned trial.
    """
    most = Counter(last).most_common(MAX_RUNG_LISTS)
    return sorted((step for step, _ in most), reverse=True)


def dense_ranks(values: Array | Sequence[float]) -> Array:
    """Return 0 for the smallest value, 1 for the next different one, … `[N]`; NaN stays NaN."""
    numbers = np.asarray(values, dtype=np.float64)
    _, ranks = np.unique(numbers, return_inverse=True)
    return np.where(np.isnan(numbers), np.nan, ranks)


def subsample(ranks: Array, max_length: int) -> Positions:
    """Choose entries of a long list: the best half of `max_length`, then evenly spread ranks.

    The cost of a fit stays flat as a study grows, the top keeps its resolution, and the rest still
    shows where not to search. Returns ascending positions, at most `max_length`, of ranks `[N]`.
    """
    if len(ranks) <= max_length:
        return np.arange(len(ranks))
    order = np.argsort(-ranks, kind="stable")
    n_best = max_length // 2
    rest = np.linspace(n_best, len(ranks) - 1, max_length - n_best).round().astype(np.intp)
    return np.sort(order[np.concatenate([np.arange(n_best), rest])])


def select_fantasies(units: Units, predicted: Callable[[Units], Array]) -> Units:
    """Return the unfinished trials that become fantasies `[U, P]`, all of them if they are few.

    Of more, such as those of killed workers, the ones with the best predictions are taken, and a
    sample of the others. `predicted` returns how good coordinates are expected to be `[U]`, larger
    is better.
    """
    if len(units) <= MAX_FANTASIES:
        return units
    return units[subsample(predicted(units), MAX_FANTASIES)]


def rank_fantasies(ranks: Array, predicted: Array, fantasies: Array) -> Array:
    """Return dense ranks `[N + U]` of finished trials, and of unfinished ones by prediction.

    An unfinished trial ranks just above the finished trials that it is expected to beat. Observed
    ranks `[N]` are larger is better. Predicted mean ranks of the same trials `[N]` and of the
    unfinished ones `[U]` are smaller is better.
    """
    n_better = np.searchsorted(np.sort(predicted), fantasies, side="left")
    ascending = np.sort(ranks)
    position = len(ranks) - n_better  # how many finished trials it is expected to beat
    below = ascending[np.clip(position - 1, 0, len(ranks) - 1)]
    placed = np.where(position == 0, ascending[0] - 0.5, below + 0.5)
    return dense_ranks([*ranks, *placed])


def with_fantasies(
    lists: Sequence[TrialList],
    positions: Positions,
    units: Units,
    mean_ranks: Callable[[Units], Array],
) -> list[TrialList]:
    """Return the lists with unfinished trials in the first one, where the surrogate ranks them.

    `positions` are those of the unfinished trials in `units` `[N + U, P]`, as in the lists;
    `mean_ranks` predicts ranks `[C]` of coordinates `[C, P]`, smaller is better.
    """
    fantasies = mean_ranks(units[positions])
    if not lists:
        return [TrialList(positions, dense_ranks(-fantasies), 1.0)]
    main = lists[0]
    ranks = rank_fantasies(main.ranks, mean_ranks(units[main.trials]), fantasies)
    return [TrialList(np.concatenate([main.trials, positions]), ranks, main.weight), *lists[1:]]


def _ranked(values: Array, failed: Mask, weight: float, max_length: int) -> TrialList:
    ranked = np.flatnonzero(~np.isnan(values))
    failures = np.flatnonzero(failed)
    ranks = np.concatenate([dense_ranks(values[ranked]), np.full(len(failures), FAILED_RANK)])
    kept = subsample(ranks, max_length)
    return TrialList(np.concatenate([ranked, failures])[kept], ranks[kept], weight)


# ---- one list of all trials
#
# The ensemble learns from a list for each step at which trials were pruned. The universal prior
# reads one list of numbers, so pruned trials need places and values on the scale of final ones.


def joint_ranks(history: Sequence[Trial]) -> Array:
    """Return dense ranks of complete and pruned trials, larger is better, `[N]`.

    Complete trials are ordered by their final values. Then pruned trials are inserted, those with
    the latest last step first. Each is compared at its last step with the trials inserted so far
    that reached it; if it beats n of them, it comes just above the n worst. Trials that are
    inserted in the same place are ordered by their values at that step. Other trials are NaN.

    A trial that went further than every complete one is compared at the last step of these. If
    there are more than `MAX_STEPS` different steps, each counts as the next lower one of so many.
    """
    order = dense_ranks(final_values(history))
    if not any(trial.state is TrialState.PRUNED for trial in history):
        return order
    reports = reports_of(history)
    last_values = np.array([values[-1] if values else np.nan for _, values in reports])
    compared_at = _steps_to_compare(history, reports)
    for step in np.unique(compared_at[~np.isnan(compared_at)])[::-1]:
        pruned = compared_at == step
        reported = np.where(pruned, last_values, reported_at(reports, float(step)))
        order = _with_pruned(order, reported, pruned)
    return order


def imputed_values(history: Sequence[Trial], order: Array) -> Array:
    """Return final values, for pruned trials interpolated between their neighbours, `[N]`.

    A pruned trial that ranks below or above all complete ones gets the value of the worst or the
    best of them. Trials without a rank in `order` are NaN, and so are pruned trials if no trial is
    complete.
    """
    finals = final_values(history)
    is_complete = ~np.isnan(finals)
    is_pruned = ~is_complete & ~np.isnan(order)
    finite = finals[np.isfinite(finals)]
    if not len(finite) or not is_pruned.any():
        return finals
    # On a scale of about 1, as differences of the largest floats overflow.
    low, high = finite.min(), finite.max()
    scale = largest_of(finals)
    ascending = np.flatnonzero(is_complete)[np.argsort(order[is_complete], kind="stable")]
    around = np.clip(finals[ascending], low, high) / scale
    finals[is_pruned] = np.clip(
        scale * np.interp(order[is_pruned], order[ascending], around), low, high
    )
    return finals


def largest_of(values: Array) -> float:
    """Return the largest finite absolute value, to divide by: never 0."""
    sizes = np.abs(values[np.isfinite(values)])
    return float(sizes.max(initial=np.finfo(np.float64).tiny))


def joint_list(
    history: Sequence[Trial], *, failed: str, max_length: int
) -> tuple[TrialList, Array]:
    """Return one list of complete, pruned and failed trials, and its values.

    The values `[N]` are on the scale of final ones, NaN for failures. At least one trial must have
    a rank or count as failed.
    """
    order = joint_ranks(history)
    failures = np.array([failed == "worst" and has_failed(t) for t in history], dtype=np.bool_)
    (ranked,) = ranked_lists(order, failures, [], max_length)
    return ranked, imputed_values(history, order)[ranked.trials]


def _steps_to_compare(history: Sequence[Trial], reports: Sequence[Reports]) -> Array:
    """Return the step at which each pruned trial is compared, NaN for other trials, `[N]`."""
    last = np.array([steps[-1] if steps else np.nan for steps, _ in reports])
    ends = last[~np.isnan(final_values(history)) & ~np.isnan(last)]
    is_pruned = np.array([trial.state is TrialState.PRUNED for trial in history], dtype=np.bool_)
    steps = np.where(is_pruned, np.minimum(last, ends.max() if len(ends) else np.inf), np.nan)
    distinct = np.unique(steps[~np.isnan(steps)])
    if len(distinct) <= MAX_STEPS:
        return steps
    chosen = distinct[np.linspace(0, len(distinct) - 1, MAX_STEPS).astype(np.intp)]
    below = chosen[np.searchsorted(chosen, steps, side="right") - 1]
    return np.where(is_pruned & ~np.isnan(last), below, np.nan)


def _with_pruned(order: Array, reported: Array, pruned: Mask) -> Array:
    """Return the ranks with those of the trials that were pruned at a step, `[N]`.

    The ranks so far, and the values reported at the step, are NaN where there is none.
    """
    is_compared = ~np.isnan(order) & ~np.isnan(reported)
    compared = np.sort(order[is_compared])
    n_beaten = np.searchsorted(np.sort(reported[is_compared]), reported[pruned], side="left")
    # The ranks so far are 0, 1, …, so that new trials fit half-way between them.
    first = compared[0] if len(compared) else 0.0
    steps = np.concatenate([[first - 0.5], compared + 0.5])
    ranks, tie = order.copy(), np.full(len(order), -np.inf)
    ranks[pruned], tie[pruned] = steps[n_beaten], reported[pruned]
    # By place, and within a place by the value at the step.
    return dense_ranks(len(ranks) * dense_ranks(ranks) + dense_ranks(tie))
