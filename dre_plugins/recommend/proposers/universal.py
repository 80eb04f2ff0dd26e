"""The proposals of the universal prior, whose network outputs Gaussian processes.

It is conditioned on the same trials as the ensemble and searches the same candidates. When one
model is confidently wrong, the other one explores elsewhere, so taking turns is better than either
alone (docs/decisions/turns.md). The predictions of a trained prior are an additional feature,
whose lengthscale says how much they tell.

Notation: see docs/architecture.md; `H` processes of the prior's mixture.
"""

import math

import numpy as np
import torch

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.lists import FAILED_RANK, select_fantasies
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.proposers.improvement import MixtureImprovement
from dre_plugins.recommend.proposers.improvement_search import ImprovementSearch
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import N_PARENTS
from dre_plugins.recommend.universal_prior import Conditioned, network_for, with_broken
from dre_plugins.space.base import Units
from dre_plugins.space.candidates import with_fixed

# Gauss-Hermite quadrature of three nodes: standardised deviations from the mean, and weights.
_NODES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))
_SHARES = (1 / 6, 2 / 3, 1 / 6)


class UniversalProposer:
    """Propose the candidate of the largest expected improvement under the universal prior.

    At least one trial of the evidence must be ranked. Pruned trials have values by `imputation`.
    """

    def __init__(self, prior: Universal, search: ImprovementSearch) -> None:
        self._search, self._space = search, search.evidence.space
        ranked, values = search.evidence.joint_list
        self._eligible = search.evidence.may_be_incumbent_in(ranked)
        self._elite = search.observed[np.lexsort([-ranked.ranks, ~self._eligible])[:N_PARENTS]]
        self._units = with_broken(search.observed, search.base.rule, self._elite, search.rng)
        n_broken = len(self._units) - len(values)
        self._conditioned = Conditioned.on(
            network_for(self._space, prior),
            search.features(self._units),
            np.append(values, np.full(n_broken, np.nan)),
            np.append(ranked.ranks, np.full(n_broken, FAILED_RANK)),
        )
        self._means: torch.Tensor | None = None  # of the reference points `[H, K]`

    def fantasize(self, pending: Units) -> None:
        """Condition the processes on pending trials `[U, P]` at their predicted values.

        At most `lists.MAX_FANTASIES` of them are used.
        """
        pending = select_fantasies(pending, lambda units: self._expected(units).numpy())
        expected = self._expected(pending)
        self._units = np.concatenate([self._units, pending])
        features = self._search.features(self._units)
        self._conditioned = self._conditioned.with_fantasies(features, expected)
        self._search.forget()
        self._means = None

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected improvement."""
        improvement = MixtureImprovement(self._conditioned, self._incumbent_target(request))
        return self._search.choose(
            request, self._elite, improvement.logs, self._rank, improvement.with_derivatives
        )

    @torch.inference_mode()
    def _rank(self, units: Units) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[1, P]`.

        The rank of the mean value would hide that a candidate is often chosen because few of the
        processes expect a very good value.
        """
        if self._means is None:
            reference = self._search.features(self._search.reference)
            self._means = self._conditioned.means(reference)
        means, deviations = self._conditioned.posterior(self._search.features(units))
        nodes = means + deviations * torch.tensor(_NODES, dtype=means.dtype)
        ranks = ranks_against(nodes, self._means)
        shares = self._conditioned.log_weights.exp() * torch.tensor(_SHARES, dtype=means.dtype)
        mean = (shares * ranks).sum()
        spread = (shares * (ranks - mean).square()).sum().sqrt()
        return float(mean), float(spread)

    def _expected(self, units: Units) -> torch.Tensor:
        """Return the mean of the mixture `[C]`."""
        return self._conditioned.expected(self._search.features(units))

    def _incumbent_target(self, request: Request) -> float:
        """Return the target of the incumbent, of that in the branch if there is one.

        With given values it is the best expectation of trials that are moved to these values. If
        no trial may be the incumbent, it is the target of the worst trial.
        """
        eligible, branch = self._eligible, request.branch
        observed = self._units[: len(eligible)]
        if branch is not None:
            within = eligible & is_within(observed, branch)
            eligible = within if within.any() else eligible
        targets = self._conditioned.targets[: len(eligible)][torch.from_numpy(eligible)]
        if not len(targets):
            return float(self._conditioned.targets.min())
        if not np.isnan(request.fixed).all():
            moved = with_fixed(observed[eligible], request.fixed)
            targets = self._expected(self._space.canonical(moved))
        return float(targets.max())
