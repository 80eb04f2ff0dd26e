"""Tests of paired runs over tasks.

Each task counts once, with the mean of its seeds: seeds of one task are no independent evidence.
Regret is minimised. `by_task` is a frame ``[samplers, tasks]`` throughout.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

Floats: TypeAlias = NDArray[np.float64]

ALPHA = 0.05
DECIMALS = 9
"""Differences of regret that are 0 to so many decimals are ties."""


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
