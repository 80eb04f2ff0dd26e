"""Tests of paired runs over tasks.

Each task counts once, with the mean of its seeds: seeds of one task are no independent evidence.
Regret is minimised. `by_task` is a frame ``[samplers, tasks]`` throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scikit_posthocs import posthoc_nemenyi_friedman
from scipy import stats
from statsmodels.stats.multitest import multipletests

Floats: TypeAlias = NDArray[np.float64]

ALPHA = 0.05
DECIMALS = 9
"""Differences of regret that are 0 to so many decimals are ties."""


@dataclass(frozen=True)
class CriticalDifference:
    """The analysis of Demšar (2006): Friedman's test, then Nemenyi's.

    Attributes:
        ranks: Mean rank over tasks by sampler.
        difference: Mean ranks that differ by more than this differ significantly.
        p: Of Nemenyi's test, ``[samplers, samplers]``.
        friedman_p: Of Friedman's test, that all samplers are equal.
        n_tasks: Number of tasks.
    """

    ranks: pd.Series
    difference: float
    p: pd.DataFrame
    friedman_p: float
    n_tasks: int


def normalised_regret(values: ArrayLike, best: float, unit: float) -> Floats:
    """Return how far the best value so far is from the best known one.

    Args:
        values: What was reached, larger is better, ``[trials]``; NaN gains nothing, and is as
            bad as ``unit`` where nothing was reached yet.
        best: The best value known; its regret is 0.
        unit: A value whose regret is 1.
    """
    so_far = np.fmax.accumulate(np.asarray(values, dtype=np.float64))
    so_far = np.where(np.isnan(so_far), unit, so_far)
    # Where both are the same there is nothing to find.
    return (best - so_far) / (best - unit) if best > unit else np.zeros_like(so_far)


def bootstrap_bands(
    runs: Floats,
    task_of_run: ArrayLike,
    generator: np.random.Generator,
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
) -> tuple[Floats, Floats]:
    """Return confidence bands of the mean over runs; whole tasks are drawn, with replacement.

    Args:
        runs: ``[samplers, runs, trials]``.
        task_of_run: The task of each run, 0, 1, …, ``[runs]``.
        generator: Draws the tasks.
        n_resamples: How often.
        confidence: Share of the resampled means that lies within the band.

    Returns:
        Lower and upper ends, each ``[samplers, trials]``.
    """
    groups, counts = np.asarray(task_of_run), np.bincount(np.asarray(task_of_run))
    sums = np.stack([runs[:, groups == task].sum(1) for task in range(len(counts))])
    even = np.full(len(counts), 1 / len(counts))
    drawn = generator.multinomial(len(counts), even, size=n_resamples).astype(np.float64)
    means = np.tensordot(drawn, sums, axes=1) / (drawn @ counts)[:, None, None]
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def compare_all(by_task: pd.DataFrame, rival: str) -> pd.DataFrame:
    """Compare every sampler with one; p is adjusted by Holm for the number of samplers.

    Returns:
        Columns wins, ties, losses and p by sampler; the row of the rival itself is all ties.
    """
    difference = (by_task - by_task.loc[rival]).round(DECIMALS)
    found = pd.DataFrame(
        {
            "wins": (difference < 0).sum(axis=1),
            "ties": (difference == 0).sum(axis=1),
            "losses": (difference > 0).sum(axis=1),
            "p": [signed_rank_p(row) for row in difference.to_numpy()],
        }
    )
    others = found.index != rival
    if others.any():
        found.loc[others, "p"] = multipletests(found.loc[others, "p"], method="holm")[1]
    return found


def signed_rank_p(difference: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, exact also with ties.

    `scipy.stats.wilcoxon` is the same, but takes seconds for 13 tasks with ties and is
    approximate for more.

    Args:
        difference: ``[tasks]``. Zeros count for the ranks of the others (Pratt, 1959): many ties
            are evidence of no difference.
    """
    # Mean ranks are multiples of a half.
    doubled = (2 * stats.rankdata(np.abs(difference))).astype(int)
    chance = np.ones(1)
    for rank in doubled[difference != 0]:
        # With equal chances this difference is negative or adds its rank to the sum.
        chance = (np.pad(chance, (0, rank)) + np.pad(chance, (rank, 0))) / 2
    reached = int(doubled[difference > 0].sum())
    return float(min(1.0, 2 * min(chance[: reached + 1].sum(), chance[reached:].sum())))


def critical_difference(by_task: pd.DataFrame) -> CriticalDifference | None:
    """Test which samplers differ in rank; None of fewer than 3 samplers or 2 tasks."""
    n_samplers, n_tasks = by_task.shape
    if n_samplers < 3 or n_tasks < 2:
        return None
    ranks = by_task.rank()
    p = posthoc_nemenyi_friedman(by_task.to_numpy().T).to_numpy()
    quantile = stats.studentized_range.ppf(1 - ALPHA, n_samplers, np.inf) / np.sqrt(2)
    # All tied everywhere: Friedman's statistic is 0/0, and nothing differs.
    is_tied = bool((ranks == ranks.iloc[0]).all(axis=None))
    return CriticalDifference(
        ranks=ranks.mean(axis=1),
        difference=float(quantile * np.sqrt(n_samplers * (n_samplers + 1) / (6 * n_tasks))),
        p=pd.DataFrame(p, by_task.index, by_task.index),
        friedman_p=1.0 if is_tied else float(stats.friedmanchisquare(*by_task.to_numpy()).pvalue),
        n_tasks=n_tasks,
    )
