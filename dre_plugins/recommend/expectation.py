"""What trained priors expect of configurations, and how far they are trusted.

A prior may come from other learners, other metrics or a mistake. Its predictions, made before
anything was observed, are compared with the observed values, by every pair of trials.

Notation: see docs/architecture.md; `A` priors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.members import Members, Mixture
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.space.base import Array, Units

# Trust is Φ((agreement - EXPECTED) / error + BENEFIT): .93 for a prior whose agreement with the
# trials (Kendall's tau) is EXPECTED, and less the more standard errors it lies below
# (docs/decisions/trust.md has what good and bad priors get).
EXPECTED = 0.2
BENEFIT = 1.5

# Added to the sum of the weights of pairs, so that agreement counts little if the prior predicts
# almost the same rank for all trials.
LEAST_WEIGHT = 0.5


@dataclass(frozen=True, eq=False)
class Expectation:
    """Rank configurations by priors alone."""

    # meta-trained scorers: one for all objectives together, or one for each, None where an
    # objective has none; empty without any
    priors: Sequence[AlignedPrior | None]
    reference: Units  # canonical coordinates that ranks are taken against `[K, P]`
    settings: RecommenderSettings
    evidence: Evidence  # the trials that decide how far priors are trusted

    @cached_property
    def _mixtures(self) -> list[Mixture]:
        device, n_threads = self.settings.device, self.settings.n_threads
        fitting = get_preset(self.settings.preset).from_prior
        of_priors = [
            Members(prior.ensemble.to(device, n_threads), prior.encode, fitting)
            for prior in self.priors
            if prior is not None
        ]
        return [Mixture([members], self.reference) for members in of_priors]

    def shares(self, units: Units) -> Array:
        """Return ranks as a share of the reference, 0 = best, `[N, P]` -> `[A, N]`."""
        if not len(units):
            return np.empty((len(self._mixtures), 0))
        ranks = [mixture.mean_ranks(units) for mixture in self._mixtures]
        return np.reshape(ranks, (len(self._mixtures), len(units))) / len(self.reference)

    def features(self, units: Units) -> Array:
        """Return logarithms of ranks, see `log_ranks`, `[N, P]` -> `[N, A]`."""
        n_reference = len(self.reference)
        return log_ranks(n_reference * self.shares(units).T, n_reference)

    @cached_property
    def trusts(self) -> dict[int, float]:
        """Return how far priors are trusted, each by its objective, by places in `priors`."""
        evidence = self.evidence
        by_objective = [evidence.lists] if len(self.priors) == 1 else evidence.objective_lists
        places = [place for place, prior in enumerate(self.priors) if prior is not None]
        trusts = {}
        for place, shares in zip(places, self.shares(evidence.units), strict=True):
            lists = by_objective[place]
            trusts[place] = trust(shares[lists[0].trials], lists[0].ranks) if lists else 1.0
        return trusts

    @property
    def trust(self) -> float:
        """Return how far the priors are trusted on average, from 0 to 1."""
        return sum(self.trusts.values()) / len(self.trusts) if self.trusts else 0.0

    @property
    def n_members(self) -> int:
        """Return how many members an ensemble has: as many as the smallest of the priors has."""
        numbers = [prior.ensemble.settings.n_members for prior in self.priors if prior is not None]
        return min(numbers) if numbers else get_preset(self.settings.preset).scorer.n_members

    @property
    def n_trusted(self) -> int:
        """Return how many members of an ensemble come from the priors."""
        return round(self.trust * self.n_members) if self.priors else 0

    @property
    def prior_weight(self) -> float | None:
        """Return the share of members that come from the priors; None without priors."""
        return self.n_trusted / self.n_members if self.priors else None


def log_ranks(ranks: Array, n_reference: int) -> Array:
    """Return logarithms of ranks among a reference, on a scale from 0 = best to 1.

    On the logarithmic scale the configurations that are ranked best, among which the search
    decides, differ as much as all others (docs/decisions/prior-turns.md).
    """
    return np.asarray(np.log1p(ranks) / np.log1p(n_reference))


def agreement(expected: Array, ranks: Array) -> tuple[float, float]:
    """Return the prior's concordance with the observed order of trials, and its standard error.

    `expected` is the prior's rank of each trial as a share of the reference `[N]`, 0 = best;
    observed `ranks` `[N]` are larger is better. The concordance is from −1 to 1, in which a pair
    counts by how far apart the prior put it; the error is that for independent orders. Without
    comparable pairs they are 0 and infinity.
    """
    distance = expected[None, :] - expected[:, None]
    weight = np.abs(distance)
    comparable = ranks[:, None] != ranks[None, :]
    if not comparable.any():
        return 0.0, math.inf
    weight = np.where(comparable, weight, 0.0)
    # Not the sign of a difference, which is NaN for two infinities, the values of failures.
    observed = np.where(ranks[:, None] > ranks[None, :], 1.0, -1.0)
    agreeing = float((weight * np.sign(distance) * observed).sum()) / 2.0
    concordance = agreeing / (float(weight.sum()) / 2.0 + LEAST_WEIGHT)
    # Kendall's null variance, for the effective number of trials by the weights of pairs. If the
    # prior predicts the same rank for all trials, all of them count.
    share = weight.sum(1)
    n = float(len(ranks))
    if share.any():
        n = float(share.sum() ** 2 / (share**2).sum())
    n = max(n, 2.0)
    return concordance, math.sqrt(2.0 * (2.0 * n + 5.0) / (9.0 * n * (n - 1.0)))


def trust(expected: Array, ranks: Array) -> float:
    """Return how far to trust the prior, from 0 (not at all) to 1, see `agreement`."""
    concordance, error = agreement(expected, ranks)
    if math.isinf(error):
        return 1.0
    return 0.5 * math.erfc(-((concordance - EXPECTED) / error + BENEFIT) / math.sqrt(2.0))
