"""Bounds on the number of fantasies, and the distance between suggestions of one fit.

A fantasy is a pending trial that a model is fitted to at its predicted outcome. Without a bound,
the time of a suggestion would grow with the number of running trials and the size of a batch.

Notation: see docs/architecture.md. `T` configurations that were just chosen, `U` unfinished
trials.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dre_plugins.recommend.lists import subsample
from dre_plugins.space.base import Features, Mask, Units

# Largest number of fantasies. Of more running trials, such as those of killed workers, the ones
# with the best predictions are taken, and a sample of the others (`lists.subsample`).
MAX_FANTASIES = 64
# Each of the first suggestions of a batch has a fit. Later ones share a fit, this many at a time,
# because the cost of a fit grows with the number of fantasies.
N_TOGETHER = 16
# Suggestions of one fit are at least this far apart, as a share of the distance between neighbours
# among points that are spread over the space.
NEAR = 0.25


def select_fantasies(units: Units, predicted: Callable[[Units], Units]) -> Units:
    """Return the unfinished trials that become fantasies, all of them if they are few.

    `predicted` returns how good coordinates `[U, P]` are expected to be `[U]`, larger is better.
    """
    if len(units) <= MAX_FANTASIES:
        return units
    return units[subsample(predicted(units), MAX_FANTASIES)]


def min_distance(spread: Features) -> float:
    """Return the smallest distance of two suggestions of one fit.

    A pool is densest where a model expects most, so its best candidates lie close together. No two
    configurations of a table are that near. `spread` has the features of points that are spread
    over the space `[K, D]`.
    """
    squares = np.square(spread).sum(1)
    distances = squares[:, None] + squares - 2.0 * spread @ spread.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.sqrt(np.maximum(distances.min(1), 0.0))
    return NEAR * float(np.median(nearest)) if len(spread) > 1 else 0.0


def is_distant(features: Features, taken: Features, reach: float) -> Mask:
    """Say which candidates `[C, D]` are out of `reach` of all that was chosen `[T, D]`, `[C]`."""
    nearest = np.full(len(features), np.inf)
    for row in taken:
        np.minimum(nearest, np.square(features - row).sum(1), out=nearest)
    return np.asarray(nearest > reach**2)
