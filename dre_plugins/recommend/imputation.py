"""Pruned trials placed among complete ones, so that all of them make one order.

The ensemble learns from a list for each step at which trials were pruned. The universal prior
reads one list of numbers, so pruned trials need places and values on the scale of final ones.
"""

from collections.abc import Sequence

import numpy as np

from dre_plugins.recommend.lists import (
    Reports,
    TrialList,
    dense_ranks,
    final_values,
    has_failed,
    ranked_lists,
    reported_at,
    reports_of,
)
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Array, Mask

# Pruned trials are compared at this many different steps at most, as each takes time.
MAX_STEPS = 128


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
