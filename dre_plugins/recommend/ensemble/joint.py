"""Members that rank by several objectives: an ensemble for each, one order of both.

Notation: see docs/architecture.md. `O` objectives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.recommend.ensemble.mixture import Members, Mixture, fit_all
from dre_plugins.recommend.lists import TrialList, with_fantasies
from dre_plugins.recommend.pareto import scalarised

Units = NDArray[np.float64]


@dataclass(frozen=True)
class JointPart:
    """Hold members each of which ranks by all objectives, with a member of every part.

    Args:
        parts: Members for each objective `[O]`, as many in all of them.
        lists: What each part is fitted to `[O]`.
        weights: Weights of the objectives `[O]`.
        reference: Canonical coordinates of the points that tell how good a rank is `[K, P]`.
    """

    parts: tuple[Members, ...]
    lists: tuple[Sequence[TrialList], ...]
    weights: NDArray[np.float64]
    reference: Units

    def with_fantasies(self, positions: NDArray[np.intp], units: Units) -> JointPart:
        """Return the members told of unfinished trials, each part where it ranks them itself.

        Args:
            positions: Positions of the unfinished trials in `units` `[U]`.
            units: Canonical coordinates of all trials `[N, P]`.
        """
        lists = tuple(
            with_fantasies(own, positions, _ranking(mixture, units))
            for mixture, own in zip(self._mixtures, self.lists, strict=True)
        )
        return replace(self, lists=lists)

    def fit(self, lists: Sequence[TrialList], units: Units, seed: int, share: float) -> JointPart:
        """Return the members fitted, each part to its own lists instead of `lists`."""
        seeds = [seed] * len(self.parts)
        return replace(self, parts=tuple(fit_all(self.parts, self.lists, units, seeds, share)))

    def scores(self, units: Units) -> torch.Tensor:
        """Return the scores of all members `[M, C]`; see `Part.scores`."""
        n = len(self.reference)
        ranks = [mixture.ranks(units).numpy() for mixture in self._mixtures]
        places = 1.0 - np.stack(ranks, axis=-1) / n
        return torch.from_numpy(scalarised(places, self.weights))

    @cached_property
    def _mixtures(self) -> tuple[Mixture, ...]:
        return tuple(Mixture([part], self.reference) for part in self.parts)


def _ranking(mixture: Mixture, units: Units) -> Callable[[NDArray[np.intp]], NDArray[np.float64]]:
    return lambda positions: mixture.mean_ranks(units[positions])
