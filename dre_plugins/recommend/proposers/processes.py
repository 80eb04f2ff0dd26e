"""What the proposers of the universal prior have in common: processes, search and explanation.

Notation: see docs/architecture.md; `O` objectives.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import ClassVar

import numpy as np
import torch

from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.lists import FAILED_RANK, select_fantasies
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.proposers.refinement import N_REFINED, refined
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import N_PARENTS, CandidatePool
from dre_plugins.recommend.sketch import MAX_FEATURES
from dre_plugins.recommend.universal_prior import (
    Conditioned,
    network_for,
    process_features,
    with_broken,
)
from dre_plugins.space.base import Array, Mask, Units
from dre_plugins.space.candidates import with_fixed


class ProcessProposer:
    """Hold the processes of each objective, and search the candidate of the largest improvement.

    Improvements are weighted by feasibility and cost. At least one trial must be ranked. The pool
    is kept for further choices of one fit.

    Args:
        prior: The universal prior.
        inputs: The trials and what else models read.
        objectives: For each objective the values and the dense ranks of the ranked trials `[N]`,
            see `Conditioned.on`.
        is_best: Which of the ranked trials are the best ones `[N]`.
        rng: Source of all draws.
    """

    # whether fantasies, too, may be the incumbent
    FANTASIES_LEAD: ClassVar[bool]

    def __init__(
        self,
        prior: Universal,
        inputs: ModelInputs,
        objectives: Sequence[tuple[Array, Array]],
        is_best: Mask,
        rng: np.random.Generator,
    ) -> None:
        self._inputs, self._search, self._rng = inputs, inputs.search, rng
        self._space = inputs.evidence.space
        ranked, _ = inputs.evidence.joint_list
        observed = inputs.evidence.units[ranked.trials]
        self._reference = self._search.reference_with(observed)
        self._elite = observed[np.lexsort([-ranked.ranks, ~is_best])[:N_PARENTS]]
        self._units = with_broken(observed, self._search.rule, self._elite, rng)
        n_broken = len(self._units) - len(observed)
        eligible = inputs.evidence.may_be_incumbent_in(ranked)
        self._eligible = np.append(eligible, np.zeros(n_broken, dtype=np.bool_))
        features, network = self._features(self._units), network_for(self._space, prior)
        self._objectives = [
            Conditioned.on(
                network,
                features,
                np.append(values, np.full(n_broken, np.nan)),
                np.append(ranks, np.full(n_broken, FAILED_RANK)),
            )
            for values, ranks in objectives
        ]
        self._pool: CandidatePool | None = None

    def fantasize(self, pending: Units) -> None:
        """Condition the processes on pending trials `[U, P]` at their predicted values.

        At most `lists.MAX_FANTASIES` of them are used.
        """
        pending = select_fantasies(pending, lambda units: self._expected(units).sum(axis=1))
        expected = torch.from_numpy(self._expected(pending))
        self._units = np.concatenate([self._units, pending])
        self._eligible = np.append(self._eligible, np.full(len(pending), self.FANTASIES_LEAD))
        features = self._features(self._units)
        self._objectives = [
            objective.with_fantasies(features, targets)
            for objective, targets in zip(self._objectives, expected.T, strict=True)
        ]
        if self._inputs.past_gains is not None:
            self._inputs.past_gains.fantasize(pending)
        self._pool = None

    # ---- what the processes know

    def _features(self, units: Units) -> torch.Tensor:
        """Return what the processes read of canonical coordinates `[C, P]`, `[C, D]`."""
        expected = torch.from_numpy(self._inputs.expected_features(units))
        return torch.cat([process_features(self._space, units), expected], dim=1)

    @torch.inference_mode()
    def _expected(self, units: Units) -> Array:
        """Return the expected targets at canonical coordinates `[C, P]`, `[C, O]`."""
        features = self._features(units)
        expected = [objective.expected(features) for objective in self._objectives]
        return torch.stack(expected, 1).numpy()

    @property
    def _targets(self) -> Array:
        """Return the targets of all trials `[N, O]`."""
        return torch.stack([objective.targets for objective in self._objectives], 1).numpy()

    def _incumbent_targets(self, request: Request) -> Array:
        """Return the targets of the trials that may be the incumbent `[I, O]`.

        In a branch these are trials of that branch, if there are any. With given values they are
        the expectations of trials that are moved to these values.
        """
        eligible = self._eligible
        if request.branch is not None:
            within = eligible & is_within(self._units, request.branch)
            eligible = within if within.any() else eligible
        if not np.isnan(request.fixed).all():
            moved = with_fixed(self._units[eligible], request.fixed)
            return self._expected(self._space.canonical(moved))
        targets: Array = self._targets[eligible]
        return targets

    # ---- search

    def _choose(
        self,
        request: Request,
        log_improvements: Callable[[torch.Tensor], Array],
        rank: Callable[[Units], tuple[float, float]],
        with_derivatives: Callable[[Array], tuple[Array, Array]] | None = None,
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
        gain_weights, past_gains = self._inputs.gain_weights, self._inputs.past_gains
        acquisition = itemgetter(0)  # the only row of the predictions

        @torch.inference_mode()
        def predict(candidates: Units) -> torch.Tensor:
            units = self._space.canonical(candidates)
            logs = log_improvements(self._features(units))
            if past_gains is not None:
                logs = past_gains.mean_with(logs, units)
            return torch.from_numpy(logs + gain_weights.logs_at(units))[None]

        if self._pool is None or request.taken is None or request.branch is not None:
            elite = self._elite
            if past_gains is not None:
                elite = np.concatenate([elite, past_gains.favourites])
            pool = self._search.pool(
                predict, acquisition, request, self._rng, elite=elite, favourites=elite[:0]
            )
            if with_derivatives is not None and self._can_refine:
                units = self._refined(pool, with_derivatives, request.fixed)
                predictions = torch.cat([pool.predictions, predict(units)], dim=-1)
                pool = CandidatePool(np.concatenate([pool.units, units]), predictions)
            self._pool = pool
        units, _, is_new = self._search.best(self._pool, predict, acquisition, request, self._rng)
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            *rank(self._space.canonical(units[None])),
            len(self._reference),
            past_studies=None if past_gains is None else past_gains.names,
            expected_cost=gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    @property
    def _can_refine(self) -> bool:
        """Whether there is a gradient: not in a table, nor if more than the space is read."""
        reads_more = self._inputs.priors or self._inputs.reads_past
        is_read = self._space.n_features <= MAX_FEATURES and not reads_more
        return self._search.table is None and is_read

    def _refined(
        self,
        pool: CandidatePool,
        with_derivatives: Callable[[Array], tuple[Array, Array]],
        fixed: Units,
    ) -> Units:
        """Return the best candidates of a pool, refined `[C, P]`."""
        order = np.argsort(-pool.predictions[0].numpy(), kind="stable")
        start = pool.units[order[:N_REFINED]]

        def weighted(features: Array) -> tuple[Array, Array]:
            logs, by_feature = with_derivatives(features)
            weights, weights_by_feature = self._inputs.gain_weights.with_derivatives(features)
            return logs + weights, by_feature + weights_by_feature

        units = refined(self._space, start, fixed, weighted)
        return self._search.rule.reached(start, units)
