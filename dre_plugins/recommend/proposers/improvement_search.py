"""The search for the largest improvement under the universal prior.

Notation: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.gain_weights import GainWeights
from dre_plugins.recommend.proposers.refinement import N_REFINED, refined
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import CandidatePool, CandidateSearch
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space.base import Array, Units

WithDerivatives = Callable[[Array], tuple[Array, Array]]


class ImprovementSearch:
    """Search the candidate of the largest improvement, weighted by feasibility and cost.

    The pool is kept for further choices of the same batch until `forget` is called.

    Args:
        search: The search by mutations.
        expectation: What trained priors expect, which are further features.
        gain_weights: The weights of improvements.
        observed: Canonical coordinates of the trials `[N, P]`.
        elite: Those of the best trials `[E, P]`.
        rng: Source of all draws.
    """

    def __init__(
        self,
        search: CandidateSearch,
        expectation: Expectation,
        gain_weights: GainWeights,
        observed: Units,
        elite: Units,
        rng: np.random.Generator,
    ) -> None:
        self._search = search
        self._expectation = expectation
        self._gain_weights = gain_weights
        self._elite = elite
        self._rng = rng
        self._pool: CandidatePool | None = None
        self.reference = search.reference_with(observed)

    def features(self, units: Units) -> torch.Tensor:
        """Return what the processes read of canonical coordinates `[C, P]`, `[C, D]`."""
        features = self._search.space.features(units)
        expected = self._expectation.features(units)
        return torch.from_numpy(np.concatenate([sketched(features), expected], axis=1)).double()

    def forget(self) -> None:
        """Search anew for the next choice."""
        self._pool = None

    def choose(
        self,
        request: Request,
        log_improvements: Callable[[torch.Tensor], torch.Tensor],
        rank: Callable[[Units], tuple[float, float]],
        with_derivatives: WithDerivatives | None = None,
    ) -> Choice:
        """Return the candidate of the largest improvement.

        Args:
            request: What is asked for.
            log_improvements: Logarithms of improvements `[C]` at features `[C, D]`.
            rank: Mean and standard deviation of the rank among the reference, at canonical
                coordinates `[1, P]`, see `Explanation`.
            with_derivatives: The former with their derivatives `[C, D]`. If they are given, the
                best candidates are refined along the gradient.
        """

        @torch.inference_mode()
        def predict(candidates: Units) -> torch.Tensor:
            units = self._search.space.canonical(candidates)
            logs = log_improvements(self.features(units))
            return (logs + self._gain_weights.logs_at(units))[None]

        if self._pool is None or request.taken is None or request.branch is not None:
            pool = self._search.pool(
                predict,
                _acquisition,
                request,
                self._rng,
                elite=self._elite,
                favourites=self._elite[:0],
            )
            if with_derivatives is not None and self._can_refine:
                units = self._refined(pool, with_derivatives, request.fixed)
                predictions = torch.cat([pool.predictions, predict(units)], dim=-1)
                pool = CandidatePool(np.concatenate([pool.units, units]), predictions)
            self._pool = pool
        units, _, is_new = self._search.best(self._pool, predict, _acquisition, request, self._rng)
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            *rank(self._search.space.canonical(units[None])),
            len(self.reference),
            expected_cost=self._gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    @property
    def _can_refine(self) -> bool:
        """Whether there is a gradient: not in a table, nor if more than the space is read."""
        is_read = self._search.space.n_features <= MAX_FEATURES and not self._expectation.priors
        return self._search.table is None and is_read

    def _refined(
        self, pool: CandidatePool, with_derivatives: WithDerivatives, fixed: Units
    ) -> Units:
        """Return the best candidates of a pool, refined `[C, P]`."""
        values = _acquisition(pool.predictions).numpy()
        start = pool.units[np.argsort(-values, kind="stable")[:N_REFINED]]

        def weighted(features: Array) -> tuple[Array, Array]:
            logs, by_feature = with_derivatives(features)
            weights, weights_by_feature = self._gain_weights.with_derivatives(features)
            return logs + weights, by_feature + weights_by_feature

        units = refined(self._search.space, start, fixed, weighted)
        return self._search.rule.reached(start, units)


def _acquisition(predictions: torch.Tensor) -> torch.Tensor:
    """Return the acquisition values `[C]`, which are the only predictions."""
    return predictions[0]
