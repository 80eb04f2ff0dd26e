"""The search for the largest improvement under the universal prior.

Notation: see docs/architecture.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.gain_weights import GainWeights
from dre_plugins.recommend.prior import past_studies_of
from dre_plugins.recommend.proposers.refinement import N_REFINED, refined
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import CandidatePool, CandidateSearch
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space.base import Array, Units

WithDerivatives = Callable[[Array], tuple[Array, Array]]


@dataclass(eq=False)
class ImprovementSearch:
    """Search the candidate of the largest improvement, weighted by feasibility and cost.

    The pool is kept for further choices of the same batch until `forget` is called.
    """

    base: CandidateSearch  # the search by mutations
    evidence: Evidence  # the trials, at least one of which must be ranked
    expectation: Expectation  # what trained priors expect, which are further features
    gain_weights: GainWeights  # the weights of improvements
    rng: np.random.Generator  # source of all draws

    def __post_init__(self) -> None:
        self._pool: CandidatePool | None = None
        ranked, _ = self.evidence.joint_list
        self.observed = self.evidence.units[ranked.trials]  # of the ranked trials `[N, P]`
        self.reference = self.base.reference_with(self.observed)

    def features(self, units: Units) -> torch.Tensor:
        """Return what the processes read of canonical coordinates `[C, P]`, `[C, D]`."""
        features = self.base.space.features(units)
        expected = self.expectation.features(units)
        return torch.from_numpy(np.concatenate([sketched(features), expected], axis=1)).double()

    def forget(self) -> None:
        """Search anew for the next choice."""
        self._pool = None

    def choose(
        self,
        request: Request,
        elite: Units,
        log_improvements: Callable[[torch.Tensor], torch.Tensor],
        rank: Callable[[Units], tuple[float, float]],
        with_derivatives: WithDerivatives | None = None,
    ) -> Choice:
        """Return the candidate of the largest improvement.

        Args:
            request: What is asked for.
            elite: Canonical coordinates of the best trials `[E, P]`.
            log_improvements: Logarithms of improvements `[C]` at features `[C, D]`.
            rank: Mean and standard deviation of the rank among the reference, at canonical
                coordinates `[1, P]`, see `Explanation`.
            with_derivatives: The former with their derivatives `[C, D]`. If they are given, the
                best candidates are refined along the gradient.
        """

        @torch.inference_mode()
        def predict(candidates: Units) -> torch.Tensor:
            units = self.base.space.canonical(candidates)
            logs = log_improvements(self.features(units))
            return (logs + self.gain_weights.logs_at(units))[None]

        if self._pool is None or request.taken is None or request.branch is not None:
            pool = self.base.pool(
                predict, _acquisition, request, self.rng, elite=elite, favourites=elite[:0]
            )
            if with_derivatives is not None and self._can_refine:
                units = self._refined(pool, with_derivatives, request.fixed)
                predictions = torch.cat([pool.predictions, predict(units)], dim=-1)
                pool = CandidatePool(np.concatenate([pool.units, units]), predictions)
            self._pool = pool
        units, _, is_new = self.base.best(self._pool, predict, _acquisition, request, self.rng)
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            *rank(self.base.space.canonical(units[None])),
            len(self.reference),
            past_studies=past_studies_of(self.expectation.priors),
            expected_cost=self.gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    @property
    def _can_refine(self) -> bool:
        """Whether there is a gradient: not in a table, nor if more than the space is read."""
        is_read = self.base.space.n_features <= MAX_FEATURES and not self.expectation.priors
        return self.base.table is None and is_read

    def _refined(
        self, pool: CandidatePool, with_derivatives: WithDerivatives, fixed: Units
    ) -> Units:
        """Return the best candidates of a pool, refined `[C, P]`."""
        values = _acquisition(pool.predictions).numpy()
        start = pool.units[np.argsort(-values, kind="stable")[:N_REFINED]]

        def weighted(features: Array) -> tuple[Array, Array]:
            logs, by_feature = with_derivatives(features)
            weights, weights_by_feature = self.gain_weights.with_derivatives(features)
            return logs + weights, by_feature + weights_by_feature

        units = refined(self.base.space, start, fixed, weighted)
        return self.base.rule.reached(start, units)


def _acquisition(predictions: torch.Tensor) -> torch.Tensor:
    """Return the acquisition values `[C]`, which are the only predictions."""
    return predictions[0]
