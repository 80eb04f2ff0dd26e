"""Expected costs of configurations, and improvements for their cost.

The expected improvement of a candidate with cost c is divided by 1 + c / m, where m is the mean
cost of the trials so far. Far below m the divisor is close to 1, so that no candidate is chosen
for a low cost alone; far above m it is proportional to the cost.

Notation: see docs/architecture.md; `H` processes of the universal prior's mixture.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from dre_plugins.recommend.ensemble.width import process_features
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.space.base import Units
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.universal.file import load_network
from dre_plugins.universal.targets import standardised

# Fewer costs than these predict nothing.
MIN_COSTS = 3
# Candidates predicted at once: those of a whole table of the search, with 128 trials 130 MB.
BLOCK = 4096


class CostModel:
    """Predict costs by the universal prior, conditioned on logarithms of observed costs.

    From 10 random trials of XGBoost, predicted and true costs of other configurations have a rank
    correlation of .76 on average; with ridge regression it is .59, with nearest neighbours .41
    (lab/2026-11-24-trial-cost.md). Costs `[N]` are finite, above 0 and not all the same; units are
    canonical `[N, P]`.
    """

    def __init__(self, space: SearchSpace, units: Units, costs: Units) -> None:
        self._space = space
        self._log_typical = math.log(costs.mean())
        targets, self._mean, self._deviation = standardised(torch.from_numpy(np.log(costs)))
        features = process_features(space, units)
        self._processes, weights = load_network()(features[None], targets[None])
        self._shares = weights[0, :, None].exp()

    @classmethod
    def of(cls, evidence: Evidence) -> CostModel | None:
        """Return a model of the costs of trials; None if too few are known or all are the same."""
        units, costs = evidence.costs
        if len(costs) < MIN_COSTS or costs.min() == costs.max():
            return None
        return cls(evidence.space, units, costs)

    def expected(self, units: Units) -> Units:
        """Return what configurations are expected to cost `[C]`; canonical units `[C, P]`."""
        return self._logs(process_features(self._space, units)).exp().numpy()

    def log_factors(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of the divisors 1 + c / m of expected improvements `[C]`.

        Features `[C, D]` are those of `process_features`; their gradient is kept.
        """
        logs = self._logs(features) - self._log_typical
        # log(1 + c / m), which is finite whatever is predicted far from all trials.
        return torch.nn.functional.softplus(logs)

    def _logs(self, features: torch.Tensor) -> torch.Tensor:
        means = [self._processes.means(part[None])[0] for part in features.split(BLOCK)]
        mixed: torch.Tensor = (self._shares * torch.cat(means, -1)).sum(0)
        return self._mean + self._deviation * mixed


def expected_cost(costs: CostModel | None, units: Units) -> float | None:
    """Return what one configuration `[1, P]` is expected to cost; None if that is unknown.

    What no float can hold is unknown, too, as explanations are stored as JSON.
    """
    expected = math.inf if costs is None else float(costs.expected(units)[0])
    return expected if math.isfinite(expected) else None
