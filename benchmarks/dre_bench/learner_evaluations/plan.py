"""Which configuration a learner is evaluated with at each position on a data set.

A plan depends on the learner, the data set and the evaluations at earlier positions, not on the
speed of the machine. Position 0 is the library's default; the others come in slices, half of them
points of a Sobol sequence (the same ones on all data sets of a learner and task) and half found by
a search.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats.qmc import Sobol

from dre_bench.learner_evaluations.parameters import Configuration, decode
from dre_bench.learner_evaluations.search import next_configuration
from dre_bench.learner_evaluations.spaces import space_of

DEFAULT, SOBOL, SEARCH = "default", "sobol", "search"
SEED = 20261123
# How many Sobol points and how many steps of the search each slice adds.
SLICES = ((16, 0), (0, 16), (16, 16), (16, 16), (16, 16), (11, 11))


def _positions() -> list[tuple[str, int]]:
    """List the kind of each position and its number within the kind."""
    positions = [(DEFAULT, 0)]
    sobol = search = 0
    for points, steps in SLICES:
        positions += [(SOBOL, sobol + index) for index in range(points)]
        positions += [(SEARCH, search + index) for index in range(steps)]
        sobol, search = sobol + points, search + steps
    return positions


POSITIONS = _positions()
# How many positions there are up to the end of each slice.
SLICE_ENDS = [
    1 + sum(points + steps for points, steps in SLICES[: index + 1])
    for index in range(len(SLICES))
]


@lru_cache
def sobol_configurations(learner: str, task: str) -> tuple[Configuration, ...]:
    """Draw the Sobol points of a learner and task."""
    space = space_of(learner, task)
    count = sum(kind == SOBOL for kind, _ in POSITIONS)
    seed = zlib.crc32(f"{learner}/{task}".encode())
    sequence = Sobol(len(space), scramble=True, rng=np.random.default_rng([SEED, seed]))
    points = sequence.random(1 << (count - 1).bit_length())[:count]
    return tuple(decode(space, point) for point in points)


def configuration_at(
    learner: str, dataset: str, history: Sequence[Mapping[str, Any]]
) -> Configuration | None:
    """Say what comes after a history; None stands for the library's default.

    Args:
        learner: a name of `SPACES`.
        dataset: `TASK/NAME`.
        history: the records of all earlier positions, in order.
    """
    kind, number = POSITIONS[len(history)]
    if kind == DEFAULT:
        return None
    task = dataset.split("/")[0]
    if kind == SOBOL:
        return dict(sobol_configurations(learner, task)[number])
    seed = zlib.crc32(f"{learner}/{dataset}".encode())
    generator = np.random.default_rng([SEED, seed, number])
    return next_configuration(space_of(learner, task), task, history, number, generator)
