"""How candidates are searched for: pools that evolve towards what a model values.

Notation: see docs/architecture.md. A judgement `[J, C]` is all that a model has to say of
candidates, a column for each, from which their values follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.pending import is_apart, reach_of
from dre_plugins.recommend.stagnation import far_half
from dre_plugins.space.candidates import (
    enumerate_units,
    mutate,
    sobol,
    unseen,
    with_fixed,
)
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen, first_new

Units = NDArray[np.float64]
Judge = Callable[[Units], torch.Tensor]
Value = Callable[[torch.Tensor], torch.Tensor]
Breeder = Callable[[Units], Units]

# Search effort of one suggestion: about 20 ms of scoring (docs/decisions.md, Search).
N_REFERENCE = 512
N_SOBOL = 512
N_ROUNDS = 6
N_CHILDREN = 256
N_PARENTS = 32
# Spaces of at most this many configurations are judged whole: exactly the paper's table.
MAX_TABLE = 4096
# A step that is shorter in every coordinate is not worth a trial. In 35 studies, 68 suggestions as
# near as that to an earlier trial improved the best value by a millionth of its range on average,
# those within twice the distance by two ten-thousandths (lab/2026-11-23-branches.md).
MIN_STEP = 5e-4


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold a chosen candidate.

    Args:
        units: Coordinates `[P]`, NaN or anything for inactive parameters.
        predicted_rank: Mean rank against the reference, 1 = best.
        spread: Its standard error, see `RankingModel.predicted`.
        is_new: Whether the configuration was never evaluated.
        source: What chose it, see `Suggestion`.
    """

    units: Units
    predicted_rank: float
    spread: float
    is_new: bool
    source: str


@dataclass(frozen=True)
class CandidateSearch:
    """Search a space, or a table of candidates.

    Args:
        space: The search space.
        candidates: Canonical coordinates of all that may be chosen `[C, P]`; None: all there is.
        rng: Source of all draws.
    """

    space: SearchSpace
    candidates: Units | None
    rng: np.random.Generator

    @cached_property
    def table(self) -> Units | None:
        """Return all candidates `[C, P]` where they are given or few, None for too many."""
        if self.candidates is not None:
            return self.candidates
        return enumerate_units(self.space, MAX_TABLE)

    def reference(self, seed: int) -> Units:
        """Return the points `[K, P]` that ranks are taken against: the table, or spread ones.

        Args:
            seed: The same for all suggestions of a study.
        """
        if self.table is not None:
            return self.table
        rng = np.random.default_rng(seed)
        return self.space.canonical(sobol(self.space.n_parameters, N_REFERENCE, rng))

    def resolving(self, reference: Units, observed: Units) -> Units:
        """Return reference points `[K, P]` among which ranks resolve where a study searches.

        Outside a table the observed configurations join: as the study closes in on an optimum, so
        do they.

        Args:
            reference: What `reference` returned.
            observed: Canonical coordinates of the trials that can be ranked `[N, P]`.
        """
        return reference if self.table is not None else np.concatenate([reference, observed])

    def pool(
        self,
        judge: Judge,
        value: Value,
        *,
        elite: Units,
        favourites: Units,
        fixed: Units,
        branch: Units | None = None,
    ) -> tuple[Units, torch.Tensor]:
        """Return candidates `[C, P]` and their judgement `[J, C]`: the table, or what evolves.

        Optima lie on bounds of several parameters at once, where no Sobol point ever is: children
        of the best candidates and of the best observed configurations get there (DESIGN, 4.3).

        Args:
            judge: What a model says of coordinates `[C, P]`.
            value: What candidates are worth `[C]`, by their judgement.
            elite: The best observed configurations `[E, P]`, whose children are in the first pool.
            favourites: What else is in it `[F, P]`.
            fixed: Coordinates that every candidate must have `[P]`, NaN where it is free.
            branch: Coordinates `[P]` that lead into the branch where candidates must lie, NaN
                elsewhere; None where they may lie anywhere.
        """
        if self.table is not None:
            pool = with_fixed(self.table, fixed)
            if branch is not None and is_within(pool, branch).any():
                pool = pool[is_within(pool, branch)]
            return pool, judge(pool)
        if branch is not None:
            fixed = np.where(np.isnan(fixed), branch, fixed)
        first = np.concatenate([self._spread(elite), favourites])

        def children(parents: Units) -> Units:
            return with_fixed(mutate(self.space, parents, N_CHILDREN, self.rng), fixed)

        return bred(with_fixed(first, fixed), judge, value, N_ROUNDS, N_PARENTS, children)

    def far(self, elite: Units, observed: Units) -> Units:
        """Return candidates `[C, P]` that are far from all trials, see `stagnation`.

        Args:
            elite: The best observed configurations `[E, P]`.
        """
        pool = self._spread(elite)
        features = torch.from_numpy(self.space.features(self.space.canonical(pool)))
        trials = torch.from_numpy(self.space.features(observed))
        far: Units = pool[far_half(features, N_SOBOL, trials).numpy()]
        return far

    def best(
        self,
        pool: Units,
        judged: torch.Tensor,
        judge: Judge,
        value: Value,
        *,
        seen: Seen,
        fixed: Units,
        taken: Units | None = None,
    ) -> tuple[Units, torch.Tensor, bool]:
        """Return the candidate of the largest value that is new, or of all if none is.

        One that differs from a trial by less than `MIN_STEP` in every coordinate is taken only
        where nothing else is new.

        Args:
            pool: Coordinates `[C, P]`.
            judged: Their judgement `[J, C]`.
            judge: See `pool`.
            value: See `pool`.
            seen: Configurations that are not new.
            fixed: See `pool`.
            taken: Canonical coordinates of what the same fit has chosen before `[T, P]`, near
                which nothing is chosen unless all else is seen, see `pending`.

        Returns:
            Its coordinates `[P]`, its judgement `[J, 1]`, and whether it is new.
        """
        if taken is not None and len(taken):
            features = self.space.features(self.space.canonical(pool))
            apart = np.flatnonzero(is_apart(features, self.space.features(taken), self._reach))
            best, is_new = self._first(pool[apart], value(judged)[apart], seen)
            if is_new:
                best = int(apart[best])
                return pool[best], judged[:, [best]], True
        best, is_new = self._first(pool, value(judged), seen)
        if not is_new and self.candidates is None:
            # The last configurations of a finite space are easily missed by a search.
            left = unseen(self.space, fixed, seen, self.rng, MAX_TABLE)
            if len(left):
                pool, judged = left, judge(left)
                best, is_new = self._first(pool, value(judged), seen)
        return pool[best], judged[:, [best]], is_new

    @cached_property
    def _reach(self) -> float:
        return reach_of(self.space.features(self.reference(0)[:N_REFERENCE]))

    def _first(self, pool: Units, values: torch.Tensor, seen: Seen) -> tuple[int, bool]:
        order = np.argsort(-values.numpy(), kind="stable")
        new = None
        if self.table is None:
            new = first_new(self.space, pool[order], seen, MIN_STEP)
        if new is None:
            new = first_new(self.space, pool[order], seen)
        return int(order[new or 0]), new is not None

    def _spread(self, elite: Units) -> Units:
        """Return points spread over the space, then children of the elite, `[C, P]`."""
        spread = sobol(self.space.n_parameters, N_SOBOL, self.rng)
        if not len(elite):
            return spread
        return np.concatenate([spread, mutate(self.space, elite, N_CHILDREN, self.rng)])


def bred(
    pool: Units, judge: Judge, value: Value, n_rounds: int, n_parents: int, breed: Breeder
) -> tuple[Units, torch.Tensor]:
    """Return a pool with the children of its best, round after round, and its judgement.

    Args:
        pool: Coordinates to begin with `[C, P]`.
        judge: See `CandidateSearch.pool`.
        value: See `CandidateSearch.pool`.
        n_rounds: How often children join.
        n_parents: How many of the best have children.
        breed: Returns the children of parents `[n_parents, P]`.
    """
    judged = judge(pool)
    for _ in range(n_rounds):
        order = np.argsort(-value(judged).numpy(), kind="stable")
        children = breed(pool[order[:n_parents]])
        pool = np.concatenate([pool, children])
        judged = torch.cat([judged, judge(children)], dim=-1)
    return pool, judged
