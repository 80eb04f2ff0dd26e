"""The search for the candidate of the largest acquisition: a pool that evolves, and a gradient.

Mutations find the basin of a maximum and seldom its bottom: on a bowl of seven parameters the best
value after 20 trials is half as far from the optimum with steps along the gradient
(docs/decisions/refinement.md).

Notation: see docs/architecture.md. Predictions `[J, C]` of a model have a column for each
candidate; the acquisition values `[C]` are a function of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from scipy.optimize import minimize

from dre_plugins.engine.runtime import one_blas_thread
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.schedule import Request
from dre_plugins.space.base import Array, Features, Mask, Units
from dre_plugins.space.candidates import sobol, with_fixed
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import SAME, Seen, first_new

Predict = Callable[[Units], torch.Tensor]
Acquisition = Callable[[torch.Tensor], torch.Tensor]
# From features `[C, D]` to acquisition values `[C]` and their derivatives `[C, D]`.
WithDerivatives = Callable[[Array], tuple[Array, Array]]
Vary = Callable[[Units], Units]

# Search effort of one suggestion: about 20 ms of scoring (docs/decisions/candidate-pool.md).
N_REFERENCE = 512
N_SOBOL = 512
N_ROUNDS = 6
N_CHILDREN = 256
N_PARENTS = 32
# Candidates that are refined together, the best ones of a pool, and steps of L-BFGS-B for all.
N_REFINED = 2
N_STEPS = 8
# Spaces of at most this many configurations are enumerated, like the tables of the paper.
MAX_TABLE = 4096
# A candidate that is nearer than this to a trial in every coordinate is not worth a trial. In 35
# studies, 68 such suggestions improved the best value by a millionth of its range on average,
# those within twice the distance by two ten-thousandths (lab/2026-11-23-branches.md).
MIN_STEP = 5e-4
# In a suggestion that must lie in a branch it is this far: a branch that is behind is explored, as
# refining the best of it would not reach the incumbent (lab/2026-11-29-steps-in-branches.md).
BRANCH_STEP = 0.15
# Suggestions of one fit are at least this far apart, as a share of the distance between neighbours
# among points that are spread over the space.
NEAR = 0.25
# Trials whose distances are computed at once: all of 5000 would take 30 MB in each thread.
BLOCK = 512


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Hold candidates and their predictions."""

    units: Units  # coordinates `[C, P]`
    predictions: torch.Tensor  # predictions of the model `[J, C]`

    def joined(self, units: Units, predict: Predict) -> CandidatePool:
        """Return the pool with further candidates `[C, P]`."""
        predictions = torch.cat([self.predictions, predict(units)], dim=-1)
        return CandidatePool(np.concatenate([self.units, units]), predictions)


@dataclass(frozen=True)
class CandidateSearch:
    """Search a space, or a table of candidates."""

    rule: Rule  # which configurations of the search space may be tried
    # canonical coordinates of all configurations that may be chosen `[C, P]`; None: any
    candidates: Units | None
    seed: int  # of the reference points: the same for all suggestions of a study

    @property
    def space(self) -> SearchSpace:
        """Return the search space."""
        return self.rule.space

    @cached_property
    def table(self) -> Units | None:
        """Return all candidates `[C, P]` if they are given or few enough, otherwise None."""
        if self.candidates is not None:
            return self.candidates
        return self.rule.assignments(MAX_TABLE)

    @cached_property
    def reference(self) -> Units:
        """Return the points `[K, P]` that ranks are taken against: the table, or spread ones."""
        if self.table is not None:
            return self.table
        return self.space.canonical(_points(self.space.n_parameters, N_REFERENCE, self.seed))

    @property
    def some_reference(self) -> Units:
        """Return the reference points `[K, P]`; of a large table, some of its rows."""
        return self.reference[:: -(-len(self.reference) // N_REFERENCE)]

    def reference_with(self, observed: Units) -> Units:
        """Return the reference points, with observed configurations `[N, P]` among them, `[K, P]`.

        As a study closes in on an optimum, so do its trials, and ranks among them still tell
        candidates near the optimum apart. In a table the reference is complete already.
        """
        if self.table is not None:
            return self.reference
        return np.concatenate([self.reference, observed])

    def pool(
        self,
        predict: Predict,
        acquisition: Acquisition,
        request: Request,
        rng: np.random.Generator,
        *,
        elite: Units,
        favourites: Units,
    ) -> CandidatePool:
        """Return the candidates: the table, or a pool that evolves.

        An optimum may lie at the bounds of several parameters, where no Sobol point is. Children
        of the best candidates and of the best observed configurations get there.

        Args:
            predict: Predictions of the model for coordinates `[C, P]`.
            acquisition: Acquisition values `[C]` of predictions.
            request: Given coordinates, and the branch to search, if any.
            rng: Source of all draws.
            elite: The best observed configurations `[E, P]`; the first pool contains the children
                of those in the branch.
            favourites: Further configurations of the first pool `[F, P]`.
        """
        fixed, branch = request.fixed, request.branch
        if self.table is not None:
            units = with_fixed(self.table, fixed)
            units = units if np.isnan(fixed).all() else self.rule.kept(units)
            within = None if branch is None else is_within(units, branch)
            units = units if within is None or not within.any() else units[within]
            return CandidatePool(units, predict(units))
        if branch is not None:
            fixed = np.where(np.isnan(fixed), branch, fixed)
            elite = elite[is_within(elite, branch)]
        spread, _ = self._spread(elite, rng, fixed)
        first = np.concatenate([spread, self.rule.kept(with_fixed(favourites, fixed))])

        def children(parents: Units) -> Units:
            return self.rule.children(parents, N_CHILDREN, rng, fixed)

        return evolved(first, predict, acquisition, N_ROUNDS, N_PARENTS, children)

    def far(self, elite: Units, observed: Units, rng: np.random.Generator) -> Units:
        """Return candidates `[C, P]` that are far from all trials `[N, P]`, for an exploration."""
        pool, n_spread = self._spread(elite, rng, np.full(self.space.n_parameters, np.nan))
        features = torch.from_numpy(self.space.features(self.space.canonical(pool)))
        trials = torch.from_numpy(self.space.features(observed))
        far: Units = pool[far_half(features, n_spread, trials).numpy()]
        return far

    def best(
        self,
        pool: CandidatePool,
        predict: Predict,
        acquisition: Acquisition,
        request: Request,
        rng: np.random.Generator,
    ) -> tuple[Units, torch.Tensor, bool]:
        """Return the new candidate of the largest acquisition, or an old one if none is new.

        A candidate that differs from a trial by less than `MIN_STEP` in every coordinate (in a
        branch `BRANCH_STEP`), or that is near an earlier choice of the same fit (see `NEAR`), is
        chosen only if no other one is new. Returns coordinates `[P]`, predictions `[J, 1]`, and
        whether the choice is new.
        """
        units, predictions = pool.units, pool.predictions
        taken, seen, values = request.taken, request.seen, acquisition(predictions)
        steps = (MIN_STEP,) if request.branch is None else (BRANCH_STEP, MIN_STEP)
        if taken is not None and len(taken):
            features = self.space.features(self.space.canonical(units))
            apart = np.flatnonzero(
                is_distant(features, self.space.features(taken), self._min_distance)
            )
            new = self._first_new(units[apart], values[apart], seen, steps)
            if new is not None:
                return units[apart[new]], predictions[:, apart[[new]]], True
        new = self._first_new(units, values, seen, steps)
        if new is None and self.candidates is None:
            # A search easily misses the last configurations of a finite space.
            remaining = self.rule.unseen(request.fixed, seen, rng, MAX_TABLE)
            if len(remaining):
                units, predictions = remaining, predict(remaining)
                values = acquisition(predictions)
                new = self._first_new(units, values, seen, steps)
        best = int(values.argmax()) if new is None else new
        return units[best], predictions[:, [best]], new is not None

    @cached_property
    def _min_distance(self) -> float:
        spread = self.table
        if spread is None:
            spread = self.space.canonical(_points(self.space.n_parameters, N_REFERENCE, 0))
        return min_distance(self.space.features(spread[:N_REFERENCE]))

    def _first_new(
        self, pool: Units, values: torch.Tensor, seen: Seen, steps: Sequence[float]
    ) -> int | None:
        """Return the best candidate that is a step from all trials; None if none is new at all.

        If none is, the next one of the steps counts.
        """
        order = np.argsort(-values.numpy(), kind="stable")
        for step in (*(steps if self.table is None else ()), SAME):
            new = first_new(self.space, pool[order], seen, step)
            if new is not None:
                return int(order[new])
        return None

    def _spread(self, elite: Units, rng: np.random.Generator, fixed: Units) -> tuple[Units, int]:
        """Return spread points, then children of the elite, `[C, P]`, and how many are spread."""
        units = spread = self.rule.spread(N_SOBOL, rng, fixed)
        if len(elite):
            units = np.concatenate([spread, self.rule.children(elite, N_CHILDREN, rng, fixed)])
        return units, len(spread)


# Kept, as every suggestion of a study asks for the same, which takes a millisecond to draw.
@lru_cache(maxsize=8)
def _points(n_parameters: int, n: int, seed: int) -> Units:
    return sobol(n_parameters, n, np.random.default_rng(seed))


def evolved(
    units: Units,
    predict: Predict,
    acquisition: Acquisition,
    n_rounds: int,
    n_parents: int,
    vary: Vary,
) -> CandidatePool:
    """Return a pool that the children of its best candidates have joined, round after round.

    `vary` returns the children of parents `[n_parents, P]`; the rest is as in
    `CandidateSearch.pool`.
    """
    pool = CandidatePool(units, predict(units))
    for _ in range(n_rounds):
        order = np.argsort(-acquisition(pool.predictions).numpy(), kind="stable")
        children = vary(pool.units[order[:n_parents]])
        if not len(children):  # a rule may leave none
            continue
        pool = pool.joined(children, predict)
    return pool


def along_gradient(
    space: SearchSpace, units: Units, fixed: Units, acquisition: WithDerivatives
) -> Units:
    """Return candidates moved to where an acquisition is larger `[C, P]`.

    Only continuous parameters that are active and not among the fixed coordinates `[P]` move,
    within their bounds. Of features `[C, D]` the acquisition returns its values `[C]` and their
    derivatives `[C, D]`.
    """
    place_of = {
        column: place for column, place in space.continuous.items() if np.isnan(fixed[column])
    }
    if not place_of or not len(units):
        return units
    columns, places = [*place_of], [*place_of.values()]
    canonical = space.canonical(units)
    is_active = ~np.isnan(canonical[:, columns])
    features = space.features(canonical).astype(np.float64)
    # The features of the bounds, which are 0 and 1 but in a space with wider spans.
    corners = np.array([[0.0], [1.0]]).repeat(space.n_parameters, axis=1)
    low, high = space.features(corners)[:, places].astype(np.float64)
    start = np.where(is_active, low + canonical[:, columns] * (high - low), 0.5)

    def loss(flat: Array) -> tuple[float, Array]:
        features[:, places] = np.where(is_active, flat.reshape(start.shape), features[:, places])
        values, derivatives = acquisition(features)
        return -values.sum(), -np.where(is_active, derivatives[:, places], 0.0).ravel()

    with one_blas_thread():
        maximum = minimize(
            loss,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[*zip(low, high, strict=True)] * len(start),
            options={"maxiter": N_STEPS},
        )
    moved = units.copy()
    found = (maximum.x.reshape(start.shape) - low) / (high - low)
    moved[:, columns] = np.where(is_active, found, units[:, columns])
    return moved


def min_distance(spread: Features) -> float:
    """Return the smallest distance of two suggestions of one fit.

    A pool is densest where a model expects most, so its best candidates lie close together. No two
    configurations of a table are that near. `spread` has the features of points that are spread
    over the space `[K, D]`.
    """
    squares = np.square(spread).sum(1)
    distances = squares[:, None] + squares - 2.0 * spread @ spread.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.sqrt(np.maximum(distances.min(1), 0.0))
    return NEAR * float(np.median(nearest)) if len(spread) > 1 else 0.0


def is_distant(features: Features, taken: Features, reach: float) -> Mask:
    """Say which candidates `[C, D]` are out of `reach` of all that was chosen `[T, D]`, `[C]`."""
    nearest = np.full(len(features), np.inf)
    for row in taken:
        np.minimum(nearest, np.square(features - row).sum(1), out=nearest)
    return np.asarray(nearest > reach**2)


def far_half(features: torch.Tensor, n_spread: int, observed: torch.Tensor) -> torch.Tensor:
    """Say which candidates `[C, D]` are farther from all trials `[N, D]` than half of the space.

    The first `n_spread` candidates are spread over the space; the limit is the median of their
    distances to the nearest trial. If no candidate is farther, those at the limit are chosen.
    """
    nearest = [torch.cdist(features, part).amin(1) for part in observed.split(BLOCK)]
    distance = torch.stack(nearest).amin(0)
    limit = distance[:n_spread].median()
    is_far = distance > limit
    return is_far if bool(is_far.any()) else distance >= limit
