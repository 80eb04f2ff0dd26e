"""The probability that configurations meet the constraints, and what share of a gain counts.

The processes of the universal prior are conditioned on how far each trial violates a constraint,
not only on whether it does: with 2 of 20 trials feasible, the other 18 tell how far away the
boundary is.

Notation: see docs/architecture.md; `H` processes of the prior's mixture.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dre_plugins.recommend.constraints import Constraint
from dre_plugins.recommend.costs import BLOCK, CostModel
from dre_plugins.recommend.ensemble.width import process_features
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.space.base import Units
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.universal.file import load_network
from dre_plugins.universal.processes import Processes
from dre_plugins.universal.targets import standardised

# The scale of margins becomes logarithmic at their standard deviation divided by this.
SHARPNESS = 10.0
# Violations are clipped at this multiple of their typical size; infinite ones, too.
OUTLYING = 1000.0
# To bound the time: most trials read for all constraints together, and fewest for each.
MAX_ENTRIES = 384
MIN_LENGTH = 32


class Feasibility:
    """Predict the probability to meet every violated constraint.

    Args:
        space: The search space.
        units: Canonical coordinates of the trials `[N, P]`.
        constraints: The constraints that any trial violates.
        max_length: Most trials that are read of each, fewer where there are many constraints.
    """

    def __init__(
        self, space: SearchSpace, units: Units, constraints: Sequence[Constraint], max_length: int
    ) -> None:
        self._models: list[tuple[Processes, torch.Tensor, float]] = []
        share = max(MIN_LENGTH, MAX_ENTRIES // max(1, len(constraints)))
        for constraint in constraints:
            nearest = constraint.nearest(min(max_length, share))
            targets, boundary = targets_of(nearest)
            features = process_features(space, units[nearest.trials])
            processes, weights = load_network()(features[None], targets[None])
            self._models.append((*processes.likely(weights), boundary))

    @classmethod
    def of(cls, evidence: Evidence) -> Feasibility | None:
        """Return the feasibility of the evidence; None if no trial violates a constraint."""
        constraints = evidence.violated_constraints
        if not constraints:
            return None
        return cls(evidence.space, evidence.units, constraints, evidence.max_history)

    def log_probability(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logarithm of the probability that all constraints are met `[C]`.

        Features `[C, D]` are those of `process_features`; their gradient is kept.
        """
        parts = []
        for part in features.split(BLOCK):
            total = part.new_zeros(len(part))
            for processes, weights, boundary in self._models:
                means, variances = processes.posterior(part[None])
                margins = (means[0] - boundary) / variances[0].sqrt()
                total = total + torch.logsumexp(weights + torch.special.log_ndtr(margins), 0)
            parts.append(total)
        return torch.cat(parts)


def log_shares(
    features: torch.Tensor, costs: CostModel | None, feasibility: Feasibility | None
) -> torch.Tensor:
    """Return the logarithms of the weights of improvements `[C]`, of features `[C, D]`.

    A weight is the probability to meet all constraints over the divisor of `costs`.
    """
    shares = features.new_zeros(len(features))
    if costs is not None:
        shares = shares - costs.log_factors(features)
    if feasibility is not None:
        shares = shares + feasibility.log_probability(features)
    return shares


def log_shares_at(
    space: SearchSpace, units: Units, costs: CostModel | None, feasibility: Feasibility | None
) -> torch.Tensor:
    """Return `log_shares` of canonical coordinates `[C, P]`."""
    if costs is None and feasibility is None:
        return torch.zeros(len(units), dtype=torch.float64)
    return log_shares(process_features(space, units), costs, feasibility)


def targets_of(constraint: Constraint) -> tuple[torch.Tensor, float]:
    """Return the targets of the processes `[N]`, larger is better, and that of the boundary.

    At least one trial violates the constraint.
    """
    violations = constraint.violations
    sizes = np.abs(violations[np.isfinite(violations) & (violations != 0.0)])
    typical = np.quantile(sizes, 0.5, method="lower") if len(sizes) else 1.0
    with np.errstate(over="ignore"):
        scaled = np.clip(violations / typical, -OUTLYING, OUTLYING)
    met, violated = scaled[constraint.is_met], scaled[~constraint.is_met]
    # If feasible trials report exactly 0, as for a yes or no, the boundary is half-way to the
    # smallest violation.
    limit = 0.5 * violated.min() if len(met) and met.max() == 0.0 else 0.0
    margins = (limit - scaled) / (scaled.std() or 1.0)
    # On a scale that is even around the boundary and logarithmic far from it.
    margins = np.sign(margins) * np.log1p(SHARPNESS * np.abs(margins))
    targets, mean, deviation = standardised(torch.from_numpy(margins))
    return targets, float(-mean / deviation)
