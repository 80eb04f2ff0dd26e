"""The proposals of the universal prior, whose network outputs Gaussian processes.

It is conditioned on the same trials as the ensemble and searches the same candidates. When one
model is confidently wrong, the other one explores elsewhere, so taking turns is better than either
alone (docs/decisions/turns.md). The predictions of a trained prior are an additional feature,
whose lengthscale says how much they tell.

Notation: see docs/architecture.md; `H` processes of the prior's mixture, `O` objectives.
"""

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.branches import preferring
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.lists import FAILED_RANK, dense_ranks, select_fantasies
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.proposers.hypervolume import Gain, HypervolumeImprovement, Samples
from dre_plugins.recommend.schedule import Choice, Request, stream
from dre_plugins.recommend.search import N_PARENTS, N_REFINED, CandidatePool, along_gradient
from dre_plugins.recommend.sketch import MAX_FEATURES
from dre_plugins.recommend.universal_prior import (
    Conditioned,
    network_for,
    process_features,
    with_broken,
)
from dre_plugins.space.base import Array, Mask, Units
from dre_plugins.space.candidates import with_fixed

# Gauss-Hermite quadrature of three nodes: standardised deviations from the mean, and weights.
_NODES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))
_SHARES = (1 / 6, 2 / 3, 1 / 6)


@dataclass(frozen=True, slots=True)
class Improvement:
    """Compute the improvement of one objective that its processes expect."""

    conditioned: Conditioned
    best: float  # target to improve on

    def logs(self, features: torch.Tensor) -> Array:
        """Return logarithms of improvements `[C]` at features `[C, D]`."""
        return self.conditioned.log_improvements(features, self.best)

    def rank(self, features: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[1, D]`.

        The rank of the mean value would hide that a candidate is often chosen because few of the
        processes expect a very good value. The reference has features `[K, D]`.
        """
        means, deviations = self.conditioned.posterior(features)
        nodes = means + deviations * torch.tensor(_NODES, dtype=means.dtype)
        ranks = ranks_against(nodes, self.conditioned.means(reference))
        shares = self.conditioned.log_weights.exp() * torch.tensor(_SHARES, dtype=means.dtype)
        mean = (shares * ranks).sum()
        spread = (shares * (ranks - mean).square()).sum().sqrt()
        return float(mean), float(spread)


def objectives_of(evidence: Evidence) -> tuple[list[tuple[Array, Array]], Mask]:
    """Return values and dense ranks `[N]` of each objective, and which trials are the best `[N]`.

    The trials are those of the joint list, and the best ones may be the incumbent. With several
    objectives these are the ones on the Pareto front.
    """
    ranked, values = evidence.joint_list
    is_best = evidence.may_be_incumbent_in(ranked)
    if evidence.n_objectives == 1:
        return [(values, ranked.ranks)], is_best
    values = evidence.objective_values(ranked.trials)
    is_best = is_best & ~np.isnan(values).any(axis=1)
    is_best[is_best] = non_dominated(values[is_best])
    ranks = (np.nan_to_num(dense_ranks(column), nan=FAILED_RANK) for column in values.T)
    return [*zip(values.T, ranks, strict=True)], is_best


class UniversalProposer:
    """Propose the candidate of the largest expected improvement under the universal prior.

    Each objective has its processes; of several objectives the hypervolume is improved.
    Improvements are weighted by feasibility and cost. Pruned trials have imputed values.
    At least one trial must be ranked. The pool is kept for further choices of one fit.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch, self._search, self._space = batch, batch.search, batch.space
        self._rng = rng = stream("universal-prior", batch.seed, batch.numbers[0])
        evidence = batch.evidence
        self._is_single = evidence.n_objectives == 1
        ranked, _ = evidence.joint_list
        objectives, is_best = objectives_of(evidence)
        observed = evidence.units[ranked.trials]
        self._reference = self._search.reference_with(observed)
        self._elite = observed[np.lexsort([-ranked.ranks, ~is_best])[:N_PARENTS]]
        self._units = with_broken(observed, batch.rule, self._elite, rng)
        n_broken = len(self._units) - len(observed)
        may_be_incumbent = evidence.may_be_incumbent_in(ranked)
        self._eligible = np.append(may_be_incumbent, np.zeros(n_broken, dtype=np.bool_))
        features = self._features(self._units)
        network = network_for(self._space, batch.universal)
        self._objectives = [
            Conditioned.on(
                network,
                features,
                np.append(values, np.full(n_broken, np.nan)),
                np.append(ranks, np.full(n_broken, FAILED_RANK)),
            )
            for values, ranks in objectives
        ]
        self._samples = None if self._is_single else Samples.drawn(self._objectives, rng)
        self._pool: CandidatePool | None = None

    def fantasize(self, pending: Units) -> None:
        """Condition the processes on pending trials `[U, P]` at their predicted values.

        At most `lists.MAX_FANTASIES` of them are used. With several objectives they, too, may be
        on the Pareto front.
        """
        pending = select_fantasies(pending, lambda units: self._expected(units).sum(axis=1))
        expected = torch.from_numpy(self._expected(pending))
        self._units = np.concatenate([self._units, pending])
        self._eligible = np.append(self._eligible, np.full(len(pending), not self._is_single))
        features = self._features(self._units)
        self._objectives = [
            objective.with_fantasies(features, targets)
            for objective, targets in zip(self._objectives, expected.T, strict=True)
        ]
        if self._batch.past_gains is not None:
            self._batch.past_gains.fantasize(pending)
        self._pool = None

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected improvement."""
        improvement = self._improvement(request)
        gain_weights, past_gains = self._batch.gain_weights, self._batch.past_gains
        acquisition = itemgetter(0)  # the only row of the predictions

        @torch.inference_mode()
        def predict(candidates: Units) -> torch.Tensor:
            units = self._space.canonical(candidates)
            logs = improvement.logs(self._features(units))
            if past_gains is not None:
                logs = past_gains.mean_with(logs, units)
            return torch.from_numpy(logs + gain_weights.logs_at(units))[None]

        if self._pool is None or request.taken is None or request.branch is not None:
            elite = self._elite
            if past_gains is not None:
                elite = np.concatenate([elite, past_gains.favourites])
            self._pool = self._search.pool(
                predict, acquisition, request, self._rng, elite=elite, favourites=elite[:0]
            )
            if isinstance(improvement, Improvement) and self._has_gradient:
                refined = self._refined(self._pool, improvement, request.fixed)
                self._pool = self._pool.joined(refined, predict)
        units, _, is_new = self._search.best(self._pool, predict, acquisition, request, self._rng)
        with torch.inference_mode():
            features = self._features(self._space.canonical(units[None]))
            rank = improvement.rank(features, self._features(self._reference))
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            *rank,
            len(self._reference),
            past_studies=None if past_gains is None else past_gains.names,
            expected_cost=gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    # ---- what the processes know

    def _features(self, units: Units) -> torch.Tensor:
        """Return what the processes read of canonical coordinates `[C, P]`, `[C, D]`."""
        expected = torch.from_numpy(self._batch.expected_features(units))
        return torch.cat([process_features(self._space, units), expected], dim=1)

    @torch.inference_mode()
    def _expected(self, units: Units) -> Array:
        """Return the expected targets at canonical coordinates `[C, P]`, `[C, O]`."""
        features = self._features(units)
        expected = [objective.expected(features) for objective in self._objectives]
        return torch.stack(expected, 1).numpy()

    def _improvement(self, request: Request) -> Improvement | HypervolumeImprovement:
        """Return the improvement on the incumbents; if there are none, on the worst trial."""
        targets = torch.stack([objective.targets for objective in self._objectives], 1).numpy()
        incumbents = self._incumbents(targets, request)
        if self._samples is None:
            best = incumbents.max() if len(incumbents) else targets.min()
            return Improvement(self._objectives[0], float(best))
        front = incumbents[non_dominated(incumbents)]
        gain = Gain.beyond(front, targets, self._samples.directions)
        return HypervolumeImprovement(self._objectives, self._samples, gain)

    def _incumbents(self, targets: Array, request: Request) -> Array:
        """Return the targets `[I, O]` of the trials that may be the incumbent, of all `[N, O]`.

        In a branch these are trials of that branch, if there are any. With given values they are
        the expectations of trials that are moved to these values.
        """
        eligible = preferring(request.branch, self._units, self._eligible)
        if not np.isnan(request.fixed).all():
            moved = with_fixed(self._units[eligible], request.fixed)
            return self._expected(self._space.canonical(moved))
        of_eligible: Array = targets[eligible]
        return of_eligible

    # ---- refinement

    @property
    def _has_gradient(self) -> bool:
        """Whether there is a gradient: not in a table, nor if more than the space is read."""
        reads_more = self._batch.priors or self._batch.reads_past
        is_read = self._space.n_features <= MAX_FEATURES and not reads_more
        return self._search.table is None and is_read

    def _refined(self, pool: CandidatePool, improvement: Improvement, fixed: Units) -> Units:
        """Return the best candidates of a pool, moved along the gradient as far as valid `[C, P]`.

        Fixed coordinates `[P]` stay. The predictions of the pool are acquisition values `[1, C]`.
        """
        conditioned, best = improvement.conditioned, improvement.best
        order = np.argsort(-pool.predictions[0].numpy(), kind="stable")
        start = pool.units[order[:N_REFINED]]

        def weighted(features: Array) -> tuple[Array, Array]:
            logs, by_feature = conditioned.log_improvements_with_derivatives(features, best)
            weights, weights_by_feature = self._batch.gain_weights.with_derivatives(features)
            return logs + weights, by_feature + weights_by_feature

        moved = along_gradient(self._space, start, fixed, weighted)
        return self._batch.rule.reached(start, moved)
