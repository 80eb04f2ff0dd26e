"""What a recommender suggests, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.explanation import Explanation

Units = NDArray[np.float64]

# What a study says once, when a suggestion first comes from there.
ANNOUNCEMENTS = {
    "prior": "The prior suggests trial {}, and what the ensemble starts from afterwards.",
    "model": "The ranking ensemble suggests from trial {} on.",
    "universal-prior": "The universal prior suggests trial {}, and takes turns from then on.",
    "exhausted": "Trial {} repeats a configuration: all of them were tried.",
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Hold a suggested configuration and where it came from.

    Args:
        configuration: Values of active parameters and constants, by name.
        units: Coordinates `[P]`, also of inactive parameters, or those of the given candidate.
        source: "random" (start-up), "prior" (nothing was observed yet), "model" (the ensemble),
            "universal-prior" (with which it takes turns), "contrast" (a space-filling point to
            check the prior by), "exploration" (the ensemble's best far from all trials, because
            the study stagnates), "fallback" (the surrogate failed) or "exhausted" (every
            configuration of a finite space was evaluated).
        predicted_rank: Mean rank against the reference points, 1 = best; None unless a model
            chose.
        spread: Standard error of that rank; None unless a model chose.
        n_reference: Number of reference points; None unless a model chose.
        prior_weight: Share of the ensemble's members that came from the prior; None without an
            ensemble or a prior.
    """

    configuration: dict[str, Any]
    units: Units
    source: str
    predicted_rank: float | None = None
    spread: float | None = None
    n_reference: int | None = None
    prior_weight: float | None = None

    @property
    def explanation(self) -> Explanation:
        """Return where it came from and what was expected of it, in words when printed."""
        return Explanation(
            self.source, self.predicted_rank, self.spread, self.n_reference, self.prior_weight
        )
