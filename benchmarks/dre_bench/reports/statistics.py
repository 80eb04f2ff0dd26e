"""Statistics of paired benchmark runs: pure functions on arrays.

Axes: samplers come first, then runs (a task and a seed each) or tasks, then trials. Regret is
minimised; 0 is the best. Where tasks are compared, each counts once, with the mean of its seeds:
seeds of one task are no independent evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ALPHA = 0.05
STAGNATION_TRIALS = 20
STAGNATION_REGRET = 0.02
DECIMALS = 9
"""Differences of regret that are 0 to so many decimals are ties."""


@dataclass(frozen=True)
class Comparison:
    """One sampler against another, over tasks.

    Attributes:
        wins: Tasks on which the first one has the lower regret.
        ties: Tasks on which both are the same.
        losses: Tasks on which the second one has the lower regret.
        p: Of the two-sided Wilcoxon signed-rank test; 1 where all tasks are ties.
    """

    wins: int
    ties: int
    losses: int
    p: float


@dataclass(frozen=True)
class CriticalDifference:
    """The analysis of Demšar (2006): Friedman's test, then Nemenyi's.

    Attributes:
        ranks: Mean rank of each sampler over tasks, ``[samplers]``.
        difference: Mean ranks that differ by more than this differ significantly.
        p: Of Nemenyi's test, ``[samplers, samplers]``.
        friedman_p: Of Friedman's test, that all samplers are equal.
        n_tasks: Number of tasks.
    """

    ranks: Floats
    difference: float
    p: Floats
    friedman_p: float
    n_tasks: int


def normalised_regret(values: ArrayLike, best: float, unit: float) -> Floats:
    """Return how far the best value so far is from the best known one.

    Args:
        values: What was reached, larger is better, ``[..., trials]``; NaN gains nothing, and is
            as bad as ``unit`` where nothing was reached yet.
        best: The best value known; its regret is 0.
        unit: A value whose regret is 1.
    """
    so_far = np.fmax.accumulate(np.asarray(values, dtype=np.float64), axis=-1)
    so_far = np.where(np.isnan(so_far), unit, so_far)
    # Where both are the same there is nothing to find.
    return (best - so_far) / (best - unit) if best > unit else np.zeros_like(so_far)


def mean_by_task(runs: Floats, tasks: ArrayLike) -> Floats:
    """Average over the seeds of each task.

    Args:
        runs: ``[samplers, runs, ...]``.
        tasks: The task of each run, 0, 1, …, ``[runs]``.

    Returns:
        ``[samplers, tasks, ...]``.
    """
    groups = np.asarray(tasks)
    return np.stack([runs[:, groups == task].mean(1) for task in np.unique(groups)], axis=1)


def ranks(regret: Floats) -> Floats:
    """Return the places of the samplers, 1 = best; ties share their mean place.

    Args:
        regret: ``[samplers, ...]``.
    """
    return np.asarray(stats.rankdata(regret, axis=0), dtype=np.float64)


def standard_error(runs: Floats, tasks: ArrayLike) -> Floats:
    """Return the standard error of the mean over tasks.

    Args:
        runs: ``[samplers, runs, ...]``.
        tasks: The task of each run, ``[runs]``.

    Returns:
        ``[samplers, ...]``; zeros where there is only one task.
    """
    means = mean_by_task(runs, tasks)
    n_tasks = means.shape[1]
    return np.asarray(means.std(1, ddof=min(1, n_tasks - 1)) / np.sqrt(n_tasks))


def bootstrap_bands(
    runs: Floats,
    tasks: ArrayLike,
    generator: np.random.Generator,
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
) -> tuple[Floats, Floats]:
    """Return confidence bands of the mean over runs; whole tasks are drawn, with replacement.

    Args:
        runs: Ranks or regrets, ``[samplers, runs, trials]``.
        tasks: The task of each run, ``[runs]``.
        generator: Draws the tasks.
        n_resamples: How often.
        confidence: Share of the resampled means that lies within the band.

    Returns:
        Lower and upper ends, each ``[samplers, trials]``.
    """
    _, groups, counts = np.unique(np.asarray(tasks), return_inverse=True, return_counts=True)
    sums = np.stack([runs[:, groups == task].sum(1) for task in range(len(counts))])
    even = np.full(len(counts), 1 / len(counts))
    drawn = generator.multinomial(len(counts), even, size=n_resamples).astype(np.float64)
    means = np.tensordot(drawn, sums, axes=1) / (drawn @ counts)[:, None, None]
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def area_under_curve(regret: Floats) -> Floats:
    """Return the mean regret over all trials: a low one is early and good.

    Args:
        regret: ``[..., trials]``.
    """
    return np.asarray(regret.mean(-1))


def stagnating(
    regret: Floats, *, n_trials: int = STAGNATION_TRIALS, above: float = STAGNATION_REGRET
) -> Floats:
    """Return the share of runs that are stuck: no gain in their last trials, and not good.

    Args:
        regret: Of the best so far, ``[samplers, runs, trials]``.
        n_trials: How many last trials; all of them in a shorter run.
        above: A run that ends with less is no stagnating one.

    Returns:
        ``[samplers]``.
    """
    last, before = regret[..., -1], regret[..., max(-n_trials - 1, -regret.shape[-1])]
    return np.asarray(np.mean((last == before) & (last > above), axis=1))


def quantiles(seconds: Floats, q: Sequence[float] = (0.05, 0.5, 0.95)) -> Floats:
    """Return quantiles over runs and trials, not a number for a sampler without times.

    Args:
        seconds: ``[samplers, runs, trials]``; NaN where they are not known.
        q: Which quantiles.

    Returns:
        ``[samplers, quantiles]``.
    """
    known = [row[~np.isnan(row)] for row in seconds]
    return np.array([np.quantile(row, q) if row.size else [np.nan] * len(q) for row in known])


def compare(regret: Floats, rival: Floats) -> Comparison:
    """Compare two samplers over tasks.

    Args:
        regret: Of the first, ``[tasks]``.
        rival: Of the second, ``[tasks]``.
    """
    difference = np.round(regret - rival, DECIMALS)
    wins, losses = int(np.sum(difference < 0)), int(np.sum(difference > 0))
    ties = len(difference) - wins - losses
    return Comparison(wins, ties, losses, signed_rank_p(difference))


def compare_all(by_task: Floats, rival: int) -> list[Comparison]:
    """Compare every sampler with one; p is adjusted for the number of samplers.

    Args:
        by_task: Regret, ``[samplers, tasks]``.
        rival: Number of the one.

    Returns:
        One for each sampler; that of the rival itself is all ties.
    """
    raw = [compare(regret, by_task[rival]) for regret in by_task]
    others = [i for i in range(len(raw)) if i != rival]
    for i, p in zip(others, holm([raw[i].p for i in others]), strict=True):
        raw[i] = replace(raw[i], p=float(p))
    return raw


def signed_rank_p(difference: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, exact also with ties.

    SciPy's is the same, but takes seconds for 13 tasks with ties and is approximate for more.

    Args:
        difference: ``[tasks]``. Zeros count for the ranks of the others (Pratt, 1959): many ties
            are evidence of no difference.
    """
    is_real = difference != 0
    # Mean ranks are multiples of a half.
    doubled = (2 * stats.rankdata(np.abs(difference))).astype(int)
    chance = np.ones(1)
    for rank in doubled[is_real]:
        # With equal chances this difference is negative or adds its rank to the sum.
        chance = (np.pad(chance, (0, rank)) + np.pad(chance, (rank, 0))) / 2
    reached = int(doubled[difference > 0].sum())
    return float(min(1.0, 2 * min(chance[: reached + 1].sum(), chance[reached:].sum())))


def holm(p: ArrayLike) -> Floats:
    """Adjust p-values for testing several hypotheses at once (Holm, 1979).

    Args:
        p: ``[tests]``.

    Returns:
        Adjusted p-values, at most 1, in the same order.
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def pairwise_p(by_task: Floats) -> Floats:
    """Return Holm-adjusted p-values of the Wilcoxon tests of all pairs.

    Args:
        by_task: Regret, ``[samplers, tasks]``.

    Returns:
        ``[samplers, samplers]``, 1 on the diagonal.
    """
    first, second = np.triu_indices(len(by_task), 1)
    pairs = zip(first, second, strict=True)
    adjusted = holm([compare(by_task[i], by_task[j]).p for i, j in pairs])
    table = np.ones((len(by_task), len(by_task)))
    table[first, second] = table[second, first] = adjusted
    return table


def smallest_p(n_tasks: int, n_tests: int = 1) -> float:
    """Return the least p that the Wilcoxon test can give, if one sampler wins every task.

    Args:
        n_tasks: Number of tasks.
        n_tests: Number of tests that Holm adjusts for.
    """
    return min(1.0, n_tests * 2.0 ** (1 - n_tasks))


def critical_difference(by_task: Floats, alpha: float = ALPHA) -> CriticalDifference:
    """Test which samplers differ in rank over tasks.

    Args:
        by_task: Regret, ``[samplers, tasks]``.
        alpha: Level of significance.

    Raises:
        ValueError: If there are fewer than 3 samplers or 2 tasks.
        ModuleNotFoundError: If scikit-posthocs is not installed.
    """
    n_samplers, n_tasks = by_task.shape
    if n_samplers < 3 or n_tasks < 2:
        raise ValueError(
            "a critical-difference analysis needs at least 3 samplers and 2 tasks, "
            f"got {n_samplers} and {n_tasks}."
        )
    import scikit_posthocs  # type: ignore[import-untyped]

    places = ranks(by_task)
    p = scikit_posthocs.posthoc_nemenyi_friedman(by_task.T).to_numpy(dtype=np.float64)
    quantile = stats.studentized_range.ppf(1 - alpha, n_samplers, np.inf) / np.sqrt(2)
    # All tied everywhere: Friedman's statistic is 0/0, and nothing differs.
    is_tied = bool(np.all(places == places[0]))
    friedman_p = 1.0 if is_tied else stats.friedmanchisquare(*by_task).pvalue
    return CriticalDifference(
        ranks=np.asarray(places.mean(1)),
        difference=float(quantile * np.sqrt(n_samplers * (n_samplers + 1) / (6 * n_tasks))),
        p=p,
        friedman_p=float(friedman_p),
        n_tasks=n_tasks,
    )
