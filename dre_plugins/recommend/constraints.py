"""What trials tell of the constraints of their study.

Notation: see docs/architecture.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.lists import dense_ranks, thin
from dre_plugins.recommend.trials import Trial


@dataclass(frozen=True, slots=True)
class Constraint:
    """Hold what was observed of one constraint.

    Args:
        trials: Positions in the history of the trials that tell `[N]`.
        violations: How far they violate it `[N]`; at most 0 is met.
    """

    trials: NDArray[np.intp]
    violations: NDArray[np.float64]

    @property
    def is_met(self) -> NDArray[np.bool_]:
        """Which of the trials meet it `[N]`."""
        return self.violations <= 0.0

    def nearest(self, max_length: int) -> Constraint:
        """Return what is left of at most `max_length` trials: most of them near the boundary."""
        kept = thin(dense_ranks(-np.abs(self.violations)), max_length)
        return Constraint(self.trials[kept], self.violations[kept])


def constraints_of(history: Sequence[Trial]) -> list[Constraint]:
    """Return what a history tells of each constraint, by name in order of first appearance."""
    names = dict.fromkeys(name for trial in history for name in trial.constraints)
    constraints = []
    for name in names:
        violations = np.array([trial.constraints.get(name, math.nan) for trial in history])
        trials = np.flatnonzero(~np.isnan(violations))
        if len(trials):
            constraints.append(Constraint(trials, violations[trials]))
    return constraints
