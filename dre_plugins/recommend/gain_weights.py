"""What share of an expected improvement counts, by feasibility and cost of the configuration.

The processes of the universal prior predict both. For constraints they are conditioned on how far
each trial violates one, not only on whether it does: with 2 of 20 trials feasible, the other 18
tell how far away the boundary is. For costs they are conditioned on logarithms. The expected
improvement of a candidate with cost c is divided by 1 + c / m, where m is the mean cost of the
trials so far. Far below m the divisor is close to 1, so that no candidate is chosen for a low cost
alone; far above m it is proportional to the cost.

Notation: see docs/architecture.md; `H` processes of the universal prior's mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import expit, log_ndtr

from dre_plugins.recommend.evidence import Constraint, Evidence
from dre_plugins.recommend.universal_prior import Conditioned, network_for, process_features
from dre_plugins.space.base import Array, Units
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.universal.derivatives import logsumexp_and_shares
from dre_plugins.universal.targets import standardised

# Fewer costs than these predict nothing.
MIN_COSTS = 3
# The scale of margins becomes logarithmic at their standard deviation divided by this.
SHARPNESS = 10.0
# Violations are clipped at this multiple of their typical size; infinite ones, too.
OUTLYING = 1000.0
# To bound the time: most trials read for all constraints together, and fewest for each
# (lab/2026-11-24-many-constraints.md).
MAX_ENTRIES = 384
MIN_LENGTH = 32


@dataclass(frozen=True, slots=True)
class GainWeights:
    """Weigh improvements by the probability to meet all constraints over the divisor of costs."""

    space: SearchSpace
    constraints: Sequence[ConstraintModel]  # of those that any trial violates
    costs: CostModel | None  # None: too few are known, or all are the same

    @classmethod
    def of(cls, evidence: Evidence) -> GainWeights:
        """Return the weights that follow from the evidence."""
        space, costs, violated = evidence.space, None, evidence.violated_constraints
        units, observed = evidence.costs
        if len(observed) >= MIN_COSTS and observed.min() < observed.max():
            costs = CostModel(space, units, observed)
        longest = min(evidence.max_history, max(MIN_LENGTH, MAX_ENTRIES // max(len(violated), 1)))
        nearest = (constraint.nearest(longest) for constraint in violated)
        models = [ConstraintModel(space, evidence.units, part) for part in nearest]
        return cls(space, models, costs)

    @property
    def models(self) -> list[ConstraintModel | CostModel]:
        """Return the models whose weights are multiplied; without any, all weights are 1."""
        return [*self.constraints, *([] if self.costs is None else [self.costs])]

    def logs_at(self, units: Units) -> Array:
        """Return the logarithms of weights `[C]` at canonical coordinates `[C, P]`."""
        logs = np.zeros(len(units))
        if self.models:
            features = process_features(self.space, units)
            for model in self.models:
                logs += model.log_weights(features)
        return logs

    def with_derivatives(self, features: Array) -> tuple[Array, Array]:
        """Return the logarithms of weights `[C]`, and their derivatives by features `[C, D]`.

        Features are those of `process_features`.
        """
        total, by_feature = np.zeros(len(features)), np.zeros_like(features)
        for model in self.models:
            logs, derivatives = model.with_derivatives(features)
            total += logs
            by_feature += derivatives
        return total, by_feature

    def expected_cost(self, units: Units) -> float | None:
        """Return what the configuration at coordinates `[P]` is expected to cost, if known.

        What no float can hold is unknown, too, as explanations are stored as JSON.
        """
        if self.costs is None:
            return None
        expected = float(self.costs.expected(self.space.canonical(units[None]))[0])
        return expected if math.isfinite(expected) else None


class CostModel:
    """Predict costs by the universal prior, conditioned on logarithms of observed costs.

    From 10 random trials of XGBoost, predicted and true costs of other configurations have a rank
    correlation of .76 on average; with ridge regression it is .59, with nearest neighbours .41
    (lab/2026-11-24-trial-cost.md). Costs `[N]` are finite, above 0 and not all the same; units are
    canonical `[N, P]`.
    """

    def __init__(self, space: SearchSpace, units: Units, costs: Array) -> None:
        self._space = space
        self._log_typical = math.log(costs.mean())
        targets, self._mean, self._deviation = standardised(torch.from_numpy(np.log(costs)))
        features = process_features(space, units)
        processes, log_weights = network_for(space)(features[None], targets[None])
        self._model = Conditioned(targets, processes, log_weights[0, :, None])

    def expected(self, units: Units) -> Array:
        """Return what configurations are expected to cost `[C]`; canonical units `[C, P]`."""
        return self._logs(process_features(self._space, units)).exp().numpy()

    def log_weights(self, features: torch.Tensor) -> Array:
        """Return minus the logarithms of the divisors 1 + c / m `[C]`, of features `[C, D]`."""
        # ln(1 + c / m), which is finite whatever is predicted far from all trials.
        return -np.logaddexp(0.0, self._logs(features).numpy() - self._log_typical)

    def with_derivatives(self, features: Array) -> tuple[Array, Array]:
        """Return `log_weights` of features `[C, D]`, and its derivatives `[C, D]`."""
        means, variances, derivatives = self._model.differentiable(features)
        shares, deviation = self._model.log_weights.exp().numpy(), self._deviation.numpy()
        logs = self._mean.numpy() + deviation * (shares * means).sum(0) - self._log_typical
        by_mean = -expit(logs) * deviation * shares
        return -np.logaddexp(0.0, logs), derivatives(by_mean, np.zeros_like(variances))

    def _logs(self, features: torch.Tensor) -> torch.Tensor:
        return self._mean + self._deviation * self._model.expected(features)


class ConstraintModel:
    """Predict the probability that a configuration meets a constraint, which any trial violates.

    Units are the canonical ones of all trials `[N, P]`.
    """

    def __init__(self, space: SearchSpace, units: Units, constraint: Constraint) -> None:
        targets, self._boundary = targets_of(constraint)
        features = process_features(space, units[constraint.trials])
        processes, weights = network_for(space)(features[None], targets[None])
        self._model = Conditioned(targets, *processes.likely(weights))

    def log_weights(self, features: torch.Tensor) -> Array:
        """Return the logarithm of the probability `[C]`, of features `[C, D]`."""
        return self._model.log_mean(
            features,
            lambda means, variances: log_ndtr((means - self._boundary) / np.sqrt(variances)),
        )

    def with_derivatives(self, features: Array) -> tuple[Array, Array]:
        """Return `log_weights` of features `[C, D]`, and its derivatives `[C, D]`."""
        means, variances, derivatives = self._model.differentiable(features)
        deviations = np.sqrt(variances)
        margins = (means - self._boundary) / deviations
        logs = log_ndtr(margins)
        # The slope of ln Φ is φ / Φ.
        slopes = np.exp(-0.5 * np.square(margins) - logs) / math.sqrt(2.0 * math.pi)
        total, shares = logsumexp_and_shares(logs + self._model.log_weights.numpy())
        by_margin = shares * slopes / deviations
        return total, derivatives(by_margin, -0.5 * margins * by_margin / deviations)


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
