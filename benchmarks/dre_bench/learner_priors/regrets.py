"""Regrets: what the configurations of different data sets and metrics are compared by.

Regret is the distance to the best value on the data set by one metric, as a share of the distance
from there to the median of the space-filling points. It is cut off at `WORST`, so that one failure
does not decide a mean.
"""

from __future__ import annotations

import numpy as np

from dre_bench.learner_evaluations.plan import POSITIONS, SOBOL
from dre_bench.learner_evaluations.tables import Table
from dre_bench.learner_priors.tasks import SIGNS

WORST = 2.0
# Losses closer than this are equal: the evaluations are kept as float32.
SAME = 1e-6


def losses_of(table: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the losses by each metric, smaller is better, NaN where an evaluation failed."""
    return {
        metric: -sign * table.metrics[metric][rows, -1].astype(np.float64)
        for metric, sign in SIGNS.items()
        if metric in table.metrics
    }


def is_of_kind(table: Table, rows: np.ndarray, kind: str) -> np.ndarray:
    """Say which rows are of a kind of position in the plan of the evaluations."""
    return np.array([POSITIONS[position][0] == kind for position in table.position[rows]])


def scale_of(losses: np.ndarray, best: float, is_sobol: np.ndarray) -> float:
    """Return the distance from the best to the median of the space-filling points; 0 if none."""
    spread = losses[is_sobol]
    if not np.isfinite(spread).any():
        return 0.0
    scale = float(np.nanmedian(spread)) - best
    return scale if scale > SAME else 0.0


def regrets(losses: np.ndarray, best: float, scale: float) -> np.ndarray:
    """Return the regret of losses; that of failed evaluations is the worst."""
    return np.nan_to_num((losses - best) / scale, nan=WORST).clip(0.0, WORST)


def regrets_by_metric(table: Table, rows: np.ndarray) -> np.ndarray | None:
    """Return the regret of each row by each metric that tells anything `[N, M]`; None if none."""
    is_sobol = is_of_kind(table, rows, SOBOL)
    found = []
    for losses in losses_of(table, rows).values():
        if not np.isfinite(losses).any():
            continue
        best = float(np.nanmin(losses))
        scale = scale_of(losses, best, is_sobol)
        if scale:
            found.append(regrets(losses, best, scale))
    return np.stack(found, axis=1) if found else None
