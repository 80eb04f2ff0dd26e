"""The members of an ensemble, some of a trained prior beside freshly drawn ones; trust in priors.

Ranks of different members are comparable, whatever they were trained on, so the ranks of a mixture
are those of its groups of members, stacked. Each group reads features of its own.

A prior may come from other learners, other metrics or a mistake. Its predictions, made before
anything was observed, are compared with the observed values, by every pair of trials. As many
members come from priors as these are trusted.

Notation: see docs/architecture.md; `O` objectives, `A` priors.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from dre_plugins.engine.ranks import ranks_among, sorted_reference
from dre_plugins.engine.settings import FittingSettings, get_preset
from dre_plugins.engine.surrogate import DeepRankingEnsemble, RankingLists, fit_together
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.lists import TrialList, with_fantasies
from dre_plugins.recommend.pareto import scalarised
from dre_plugins.recommend.prior import AlignedPrior, Encode
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.space.base import Array, Positions, Units

# Trust is Φ((agreement - EXPECTED) / error + BENEFIT): .93 for a prior whose agreement with the
# trials (Kendall's tau) is EXPECTED, and less the more standard errors it lies below
# (docs/decisions/trust.md has what good and bad priors get).
EXPECTED = 0.2
BENEFIT = 1.5

# Added to the sum of the weights of pairs, so that agreement counts little if the prior predicts
# almost the same rank for all trials.
LEAST_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Members:
    """Hold members that start alike and read the same features."""

    ensemble: DeepRankingEnsemble
    encode: Encode  # canonical coordinates `[C, P]` -> features `[C, D]`
    fitting: FittingSettings

    def with_fantasies(self, positions: Positions, units: Units) -> Members:
        """Return the members unchanged, as the lists that `fit` is given hold the fantasies."""
        return self

    def fit(self, lists: Sequence[TrialList], units: Units, seed: int, share: float) -> Members:
        """Return the members fitted for a share of the steps; without lists they are unchanged.

        Lists hold positions in `units` `[N, P]`.
        """
        if not lists:
            return self
        fitted = self.ensemble.fit(self.padded(lists, units), self.shortened(share), seed=seed)
        return replace(self, ensemble=fitted)

    def padded(self, lists: Sequence[TrialList], units: Units) -> RankingLists:
        """Return the lists as the members read them, padded to one batch `[1, B, N, D]`."""
        features = torch.from_numpy(self.encode(units))
        rows = [torch.from_numpy(ranked.trials) for ranked in lists]
        ranks = [torch.from_numpy(ranked.ranks).float() for ranked in lists]
        are_real = [torch.ones_like(places, dtype=torch.bool) for places in rows]
        batch, values, mask = (
            pad_sequence(parts, batch_first=True)[None]
            for parts in ([features[places] for places in rows], ranks, are_real)
        )
        weights = torch.tensor([ranked.weight for ranked in lists], dtype=torch.float32)
        return RankingLists(batch, values, mask, weights)

    @property
    def kind(self) -> Hashable:
        """Return a key that is equal for members that can be fitted in one batch."""
        if self.ensemble.settings.context is not None:
            return id(self)
        settings = replace(self.ensemble.settings, n_members=1)
        return self.encode, self.fitting, settings, self.ensemble.device

    def shortened(self, share: float) -> FittingSettings:
        """Return how a share of the steps is taken."""
        return replace(self.fitting, n_steps=round(share * self.fitting.n_steps))

    def scores(self, units: Units) -> torch.Tensor:
        """Return the scores of all members `[M, C]` on the CPU; they must be finite."""
        scores = self.ensemble.scores(torch.from_numpy(self.encode(units)))
        if not torch.isfinite(scores).all():
            raise FloatingPointError("scores are not finite")
        return scores.cpu()


class Mixture:
    """Rank configurations by all groups of members, against reference points `[K, P]`."""

    def __init__(self, groups: Sequence[Members | JointMembers], reference: Units) -> None:
        self._groups = tuple(groups)
        self._reference = [sorted_reference(group.scores(reference)) for group in self._groups]

    @property
    def n_reference(self) -> int:
        """Return the number of reference points `K`."""
        return int(self._reference[0].shape[-1])

    def ranks(self, units: Units) -> torch.Tensor:
        """Return ranks `[M, C]` of canonical coordinates `[C, P]` against the reference."""
        return torch.cat(
            [
                ranks_among(group.scores(units), reference)
                for group, reference in zip(self._groups, self._reference, strict=True)
            ]
        )

    def mean_ranks(self, units: Units) -> Array:
        """Return ranks `[C]`, the mean of all members, of canonical coordinates `[C, P]`."""
        return self.ranks(units).mean(0).numpy().astype(np.float64)


@dataclass(frozen=True)
class JointMembers:
    """Hold members that rank by all objectives, each made of one member for every objective."""

    by_objective: tuple[Members, ...]  # members for each objective `[O]`, as many in all of them
    lists: tuple[Sequence[TrialList], ...]  # what those of each objective are fitted to `[O]`
    weights: Array  # weights of the objectives `[O]`
    reference: Units  # points that ranks are taken against `[K, P]`

    def with_fantasies(self, positions: Positions, units: Units) -> JointMembers:
        """Return the members with unfinished trials `[U]` in the lists of each objective."""
        lists = tuple(
            with_fantasies(lists, positions, units, mixture.mean_ranks)
            for mixture, lists in zip(self._mixtures, self.lists, strict=True)
        )
        return replace(self, lists=lists)

    def fit(
        self, lists: Sequence[TrialList], units: Units, seed: int, share: float
    ) -> JointMembers:
        """Return the members fitted, those of each objective to its own lists.

        Members that are alike are fitted in one batch.
        """
        fitted = [*self.by_objective]
        places_of: defaultdict[Hashable, list[int]] = defaultdict(list)
        for place, members in enumerate(self.by_objective):
            places_of[members.kind if self.lists[place] else place].append(place)
        for places in places_of.values():
            alike = [self.by_objective[place] for place in places]
            if len(alike) < 2:
                (place,), (members,) = places, alike
                fitted[place] = members.fit(self.lists[place], units, seed, share)
                continue
            ensembles = fit_together(
                [members.ensemble for members in alike],
                [self.by_objective[place].padded(self.lists[place], units) for place in places],
                alike[0].shortened(share),
            )
            for place, members, ensemble in zip(places, alike, ensembles, strict=True):
                fitted[place] = replace(members, ensemble=ensemble)
        return replace(self, by_objective=tuple(fitted))

    def scores(self, units: Units) -> torch.Tensor:
        """Return the scores of all members `[M, C]`; see `Members.scores`."""
        n = len(self.reference)
        ranks = [mixture.ranks(units).numpy() for mixture in self._mixtures]
        places = 1.0 - np.stack(ranks, axis=-1) / n
        return torch.from_numpy(scalarised(places, self.weights))

    @cached_property
    def _mixtures(self) -> tuple[Mixture, ...]:
        return tuple(Mixture([members], self.reference) for members in self.by_objective)


# ---- what priors expect before anything is observed, and how far they are trusted


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
