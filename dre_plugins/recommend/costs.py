"""What configurations are expected to cost, and how much of a gain that leaves.

A candidate of cost c counts by its expected improvement divided by 1 + c / m, where m is the mean
cost of the trials so far: it takes the place of c / m others, and of itself. What is cheaper than
most gains nothing by being cheaper still, so that no promise is neglected for a low cost alone,
and what is dearer has to promise as many times more.

Notation: see docs/architecture.md; `H` processes of the universal prior's mixture.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from dre_plugins.recommend.ensemble.width import read_by_processes
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.space.base import Units
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.universal.file import ready

# Fewer costs than these predict nothing.
MIN_COSTS = 3
# Candidates predicted at once: those of a whole table of the search, with 128 trials 130 MB.
BLOCK = 4096


class CostModel:
    """Predict costs by the universal prior's processes, on the logarithms of those observed.

    Of 10 random trials of XGBoost the prediction ranks other configurations with a correlation of
    .76 on average, a ridge regression with .59 and nearest neighbours with .41
    (lab/2026-11-24-trial-cost.md). Costs `[N]` are finite, above 0 and not all the same; units are
    canonical `[N, P]`.
    """

    def __init__(self, space: SearchSpace, units: Units, costs: Units) -> None:
        self._space = space
        logs = np.log(costs)
        self._mean, self._deviation = float(logs.mean()), float(logs.std())
        self._log_typical = math.log(costs.mean())
        targets = torch.from_numpy((logs - self._mean) / self._deviation)
        features = read_by_processes(space, units)
        self._processes, weights = ready()(features[None], targets[None])
        self._shares = weights[0, :, None].exp()

    @classmethod
    def of(cls, evidence: Evidence) -> CostModel | None:
        """Return a model of what trials cost; None where too few costs are known, or all agree."""
        units, costs = evidence.costs
        if len(costs) < MIN_COSTS or costs.min() == costs.max():
            return None
        return cls(evidence.space, units, costs)

    def expected(self, units: Units) -> Units:
        """Return what configurations are expected to cost `[C]`; canonical units `[C, P]`."""
        costs: Units = self._logs(read_by_processes(self._space, units)).exp().numpy()
        return costs

    def log_factors(self, features: torch.Tensor) -> torch.Tensor:
        """Return by how much expected improvements are divided, in logarithms, `[C]`.

        Features `[C, D]` are those of `read_by_processes`; their gradient is kept.
        """
        logs = self._logs(features) - self._log_typical
        # log(1 + c / m), which is finite whatever is predicted far from all trials.
        factors: torch.Tensor = torch.nn.functional.softplus(logs)
        return factors

    def _logs(self, features: torch.Tensor) -> torch.Tensor:
        means = [self._processes.means(part[None])[0] for part in features.split(BLOCK)]
        mixed: torch.Tensor = (self._shares * torch.cat(means, -1)).sum(0)
        return self._mean + self._deviation * mixed


def expected_cost(costs: CostModel | None, units: Units) -> float | None:
    """Return what one configuration `[1, P]` is expected to cost; None if that is unknown."""
    return None if costs is None else float(costs.expected(units)[0])
