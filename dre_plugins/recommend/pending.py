"""How many unfinished trials a model is told of, and how suggestions of one fit differ.

A fit grows with every fantasy, that is, with every pending trial whose expected outcome it takes
for granted. So the cost of a suggestion would grow with the number of running trials and with the
size of a batch. Both are bounded here.

Notation: see docs/architecture.md. `T` configurations that were just chosen, `U` unfinished
trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.lists import thin
from dre_plugins.space.base import Units

# Running trials that become fantasies at most. If there are more, for example of workers that were
# killed, those with the best predictions are taken, and a sample of the rest (`lists.thin`).
MAX_FANTASIES = 64
# The first suggestions of a batch have a fit each. Later ones are chosen from one fit, so many at
# a time, because the cost of a fit grows with the number of fantasies.
N_TOGETHER = 16
# Suggestions of one fit are at least this far apart, as a share of the distance between neighbours
# among points that are spread over the space.
NEAR = 0.25


def worth_fantasizing(units: Units, predicted: Callable[[Units], Units]) -> Units:
    """Return the unfinished trials that a model is told of, all of them if they are few.

    `predicted` says how good coordinates `[U, P]` are expected to be `[U]`, larger is better.
    """
    if len(units) <= MAX_FANTASIES:
        return units
    kept: Units = units[thin(predicted(units), MAX_FANTASIES)]
    return kept


def parts_of(count: int) -> Iterator[int]:
    """Return how many suggestions of a batch belong together: `N_TOGETHER`, and what is left."""
    for first in range(0, count, N_TOGETHER):
        yield min(N_TOGETHER, count - first)


def reach_of(spread: NDArray[np.float32]) -> float:
    """Return how near two configurations are that one fit must not choose both of.

    A pool is densest where a model expects most, so that its best candidates are one spot. In a
    table no two configurations are that near. `spread` has the features of points that are spread
    over the space `[K, D]`.
    """
    squares = np.square(spread).sum(1)
    distances = squares[:, None] + squares - 2.0 * spread @ spread.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.sqrt(np.maximum(distances.min(1), 0.0))
    return NEAR * float(np.median(nearest)) if len(spread) > 1 else 0.0


def is_apart(
    features: NDArray[np.float32], taken: NDArray[np.float32], reach: float
) -> NDArray[np.bool_]:
    """Say which candidates `[C, D]` are out of `reach` of all that was chosen `[T, D]`, `[C]`."""
    nearest = np.full(len(features), np.inf)
    for row in taken:
        np.minimum(nearest, np.square(features - row).sum(1), out=nearest)
    return np.asarray(nearest > reach**2)
