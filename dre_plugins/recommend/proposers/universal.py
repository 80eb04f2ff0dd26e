"""The proposals of the universal prior, whose network outputs Gaussian processes.

It is conditioned on the same trials as the ensemble and searches the same candidates. When one
model is confidently wrong, the other one explores elsewhere, so taking turns is better than either
alone (docs/decisions/turns.md). The predictions of a trained prior are an additional feature,
whose lengthscale says how much they tell.

Notation: see docs/architecture.md; `H` processes of the prior's mixture.
"""

import math
from functools import partial

import numpy as np
import torch

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.proposers.processes import ProcessProposer
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.space.base import Units

# Gauss-Hermite quadrature of three nodes: standardised deviations from the mean, and weights.
_NODES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))
_SHARES = (1 / 6, 2 / 3, 1 / 6)


class UniversalProposer(ProcessProposer):
    """Propose the candidate of the largest expected improvement under the universal prior.

    Pruned trials have values by `imputation`.
    """

    FANTASIES_LEAD = False

    def __init__(self, prior: Universal, inputs: ModelInputs, rng: np.random.Generator) -> None:
        ranked, values = inputs.evidence.joint_list
        is_best = inputs.evidence.may_be_incumbent_in(ranked)
        super().__init__(prior, inputs, [(values, ranked.ranks)], is_best, rng)

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected improvement.

        If no trial may be the incumbent, it is the improvement on the worst trial.
        """
        (conditioned,) = self._objectives
        incumbents = self._incumbent_targets(request)
        best = float(incumbents.max() if len(incumbents) else self._targets.min())
        return self._choose(
            request,
            partial(conditioned.log_improvements, best=best),
            self._rank,
            partial(conditioned.log_improvements_with_derivatives, best=best),
        )

    @torch.inference_mode()
    def _rank(self, units: Units) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[1, P]`.

        The rank of the mean value would hide that a candidate is often chosen because few of the
        processes expect a very good value.
        """
        (conditioned,) = self._objectives
        means, deviations = conditioned.posterior(self._features(units))
        nodes = means + deviations * torch.tensor(_NODES, dtype=means.dtype)
        ranks = ranks_against(nodes, conditioned.means(self._features(self._reference)))
        shares = conditioned.log_weights.exp() * torch.tensor(_SHARES, dtype=means.dtype)
        mean = (shares * ranks).sum()
        spread = (shares * (ranks - mean).square()).sum().sqrt()
        return float(mean), float(spread)
