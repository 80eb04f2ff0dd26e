"""Constraints: one ranking ensemble each, on how far the constraint is violated.

Notation: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.engine.acquisition import probability_of_improvement
from dre_plugins.recommend.constraints import Constraint
from dre_plugins.recommend.ensemble.mixture import Members, Mixture

Units = NDArray[np.float64]


class Feasibility:
    """Tell how likely a configuration is to meet one constraint.

    Args:
        constraint: What was observed; a violation at least.
        units: Canonical coordinates of the history `[N, P]`.
        parts: Fitted members, see `Mixture`.
        reference: Canonical coordinates of the reference points `[K, P]`.
    """

    def __init__(
        self, constraint: Constraint, units: Units, parts: Sequence[Members], reference: Units
    ) -> None:
        self._mixture = Mixture(parts, reference)
        self._is_met = bool(constraint.is_met.any())
        self._boundary = self._boundary_of(constraint, units)

    def probability(self, units: Units) -> torch.Tensor:
        """Return the probability that the constraint is met `[C]`; canonical units `[C, P]`.

        While nothing met it, the probability of a smaller violation than any so far.
        """
        ranks = self._mixture.ranks(units)
        if not self._is_met:
            return probability_of_improvement(ranks, self._boundary)
        # Each member is compared with its own boundary, so that a shift of all ranks of a member
        # does not count as uncertainty. With one boundary for all members, every candidate near it
        # has a probability of about 0.5 (docs/decisions/constraint-boundary.md).
        return probability_of_improvement(
            ranks - self._boundary[:, None], torch.zeros_like(self._boundary)
        )

    def _boundary_of(self, constraint: Constraint, units: Units) -> torch.Tensor:
        """Return the rank `[M]` that members must give what meets the constraint."""
        met = constraint.is_met
        violations = constraint.violations
        least = constraint.trials[~met][violations[~met].argmin()]
        boundary = self._mixture.ranks(units[[least]])[:, 0]
        if not met.any():
            return boundary
        nearest = constraint.trials[met][violations[met].argmax()]
        # Half-way: optima lie on boundaries, which a search that keeps inside never reaches.
        return 0.5 * (boundary + self._mixture.ranks(units[[nearest]])[:, 0])
