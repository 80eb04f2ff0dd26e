"""The ensemble of a suggestion: members that come from a prior beside freshly drawn ones.

Ranks of different members are comparable, whatever they were trained on, so the ranks of a mixture
are those of its groups of members, stacked. Each group reads features of its own.

Notation: see docs/architecture.md; `O` objectives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from dre_plugins.engine.ranks import ranks_among, sorted_reference
from dre_plugins.engine.settings import FittingSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble, RankingLists, fit_together
from dre_plugins.recommend.lists import TrialList, with_fantasies
from dre_plugins.recommend.pareto import scalarised
from dre_plugins.recommend.prior import Encode
from dre_plugins.space.base import Array, Positions, Units


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
