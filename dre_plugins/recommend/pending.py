"""How many unfinished trials a model is told of, and how suggestions of one fit differ.

A fit grows with every trial that it believes, so that the cost of a suggestion would grow with
the number of running trials and with the size of a batch. Both are bounded here.

Notation: `C` candidates, `T` configurations that were just chosen, `U` unfinished trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.lists import thin

Units = NDArray[np.float64]

# Unfinished trials that a model is told of. Of more, such as those of workers that were killed,
# those where a search would look again, and a spread of the rest.
N_BELIEVED = 64
# Suggestions of a batch that are followed by a fit each; further ones share a fit, so many at a
# time, because a fit for each would cost more the more there are.
N_TOGETHER = 16


def believed(units: Units, predicted: Callable[[Units], Units]) -> Units:
    """Return the unfinished trials that a model is told of, all of them if they are few.

    Args:
        units: Canonical coordinates `[U, P]`.
        predicted: Coordinates `[U, P]` -> how good they are expected to be `[U]`, larger is
            better.
    """
    if len(units) <= N_BELIEVED:
        return units
    kept: Units = units[thin(predicted(units), N_BELIEVED)]
    return kept


def parts_of(count: int) -> Iterator[int]:
    """Return how many suggestions of a batch belong together: `N_TOGETHER`, and what is left."""
    for first in range(0, count, N_TOGETHER):
        yield min(N_TOGETHER, count - first)


def is_apart(features: NDArray[np.float32], taken: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which candidates are not among the nearest of a configuration that was chosen `[C]`.

    Each choice takes an equal share of the pool out, so that what counts as near follows from how
    densely the pool fills a region, and all choices of one fit together leave half of it.

    Args:
        features: Of the candidates `[C, D]`.
        taken: Of what was chosen `[T, D]`.
    """
    apart = np.ones(len(features), dtype=np.bool_)
    n_near = max(1, len(features) // (2 * N_TOGETHER))
    for row in taken:
        distances = np.square(features - row).sum(1)
        apart[np.argpartition(distances, n_near - 1)[:n_near]] = False
    return apart
