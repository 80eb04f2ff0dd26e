"""The proposals of the universal prior, whose network outputs Gaussian processes.

It is conditioned on the same trials as the ensemble and searches the same candidates. When one
model is confidently wrong, the other one explores elsewhere, so taking turns is better than either
alone (docs/decisions/turns.md). The predictions of a trained prior are an additional feature,
whose lengthscale says how much they tell.

Notation: see docs/architecture.md; `H` processes of the prior's mixture.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch

from dre_plugins.engine.acquisition import log_expected_improvement
from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.conditioned import BLOCK, Conditioned, with_broken
from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.gain_weights import GainWeights
from dre_plugins.recommend.lists import FAILED_RANK, select_fantasies
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.proposers.improvement import MixtureImprovement
from dre_plugins.recommend.proposers.refinement import N_REFINED, refined
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import N_PARENTS, CandidatePool, CandidateSearch
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.recommend.universal_prior import network_for
from dre_plugins.space.base import Array, Units
from dre_plugins.space.candidates import with_fixed

# Gauss-Hermite quadrature of three nodes: standardised deviations from the mean, and weights.
_NODES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))
_SHARES = (1 / 6, 2 / 3, 1 / 6)


class UniversalProposer:
    """Propose the candidate of the largest expected improvement under the universal prior.

    At least one trial of the evidence must be ranked. Pruned trials have values by `imputation`.
    """

    def __init__(
        self,
        prior: Universal,
        evidence: Evidence,
        expectation: Expectation,
        search: CandidateSearch,
        gain_weights: GainWeights,
        rng: np.random.Generator,
    ) -> None:
        self._space = evidence.space
        self._search = search
        self._gain_weights = gain_weights
        self._rng = rng
        self._expectation = expectation
        observed, values = evidence.joint_list
        units = evidence.units[observed.trials]
        eligible = evidence.may_be_incumbent_in(observed)
        order = np.lexsort([-observed.ranks, ~eligible])
        self._elite = units[order[:N_PARENTS]]
        self._reference = search.reference_with(units)
        self._eligible = torch.from_numpy(eligible)
        self._units = with_broken(units, search.rule, self._elite, rng)
        n_broken = len(self._units) - len(units)
        self._conditioned = Conditioned.on(
            network_for(self._space, prior),
            self._features(self._units),
            np.append(values, np.full(n_broken, np.nan)),
            np.append(observed.ranks, np.full(n_broken, FAILED_RANK)),
        )
        # The pool of the last choice and the means of the reference points; None after fantasies.
        self._pool: tuple[CandidatePool, torch.Tensor] | None = None

    def fantasize(self, pending: Units) -> None:
        """Condition the processes on pending trials `[U, P]` at their predicted values.

        At most `lists.MAX_FANTASIES` of them are used.
        """
        pending = select_fantasies(pending, lambda units: self._expected(units).numpy())
        expected = self._expected(pending)
        self._units = np.concatenate([self._units, pending])
        features = self._features(self._units)
        self._conditioned = self._conditioned.with_fantasies(features, expected)
        self._pool = None

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected improvement."""
        branch = request.branch
        best = self._incumbent_target(request)
        predict = partial(self._predictions, best=best)
        if self._pool is None or request.taken is None or branch is not None:
            pool = self._search.pool(
                predict,
                _acquisition,
                request,
                self._rng,
                elite=self._elite,
                favourites=self._units[:0],
            )
            pool = self._with_refined(pool, best, request.fixed)
            self._pool = pool, self._conditioned.means(self._features(self._reference))
        pool, reference = self._pool
        units, predictions, is_new = self._search.best(
            pool, predict, _acquisition, request, self._rng
        )
        rank, spread = self._rank(predictions[:-1], reference)
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            rank,
            spread,
            len(self._reference),
            expected_cost=self._gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    def _with_refined(self, pool: CandidatePool, best: float, fixed: Units) -> CandidatePool:
        """Return the pool with its best candidates refined along the gradient added.

        It is unchanged in a table, and where the processes read further features than the space's.
        """
        features = self._space.n_features
        if self._search.table is not None or self._expectation.priors or features > MAX_FEATURES:
            return pool
        values = _acquisition(pool.predictions).numpy()
        start = pool.units[np.argsort(-values, kind="stable")[:N_REFINED]]

        conditioned = self._conditioned
        improvement = MixtureImprovement(conditioned.processes, conditioned.log_weights, best)

        def of_features(features: Array) -> tuple[Array, Array]:
            values, derivatives = improvement(features)
            logs, by_feature = self._gain_weights.with_derivatives(features)
            return values + logs, derivatives + by_feature

        units = refined(self._space, start, fixed, of_features)
        units = self._search.rule.reached(start, units)
        predictions = torch.cat([pool.predictions, self._predictions(units, best)], dim=-1)
        return CandidatePool(np.concatenate([pool.units, units]), predictions)

    def _rank(self, predictions: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate with an uncertain value.

        The rank of the mean value would hide that a candidate is often chosen because few of the
        processes expect a very good value. Predictions are `[2 H, 1]`, means of the reference
        points `[H, K]`.
        """
        means, deviations = predictions.chunk(2)
        nodes = means + deviations * torch.tensor(_NODES, dtype=means.dtype)
        ranks = ranks_against(nodes, reference)
        shares = self._conditioned.log_weights.exp() * torch.tensor(_SHARES, dtype=means.dtype)
        mean = (shares * ranks).sum()
        spread = (shares * (ranks - mean).square()).sum().sqrt()
        return float(mean), float(spread)

    @torch.inference_mode()
    def _predictions(self, candidates: Units, best: float) -> torch.Tensor:
        """Return means, deviations and, last, the logarithms of improvements on `best`.

        They are `[2 H + 1, C]`. The improvements are expected, and weighted (see `gain_weights`).
        """
        units = self._space.canonical(candidates)
        parts = []
        for part in self._features(units).split(BLOCK):
            means, deviations = self._conditioned.posterior(part)
            gain = self._log_improvement(means, deviations, best)
            parts.append(torch.cat([means, deviations, gain[None]]))
        predictions = torch.cat(parts, -1)
        predictions[-1] += self._gain_weights.logs_at(units)
        return predictions

    def _expected(self, units: Units) -> torch.Tensor:
        """Return the mean of the mixture `[C]`."""
        return self._conditioned.expected(self._features(units))

    def _log_improvement(
        self, means: torch.Tensor, deviations: torch.Tensor, best: float
    ) -> torch.Tensor:
        """Return the logarithm of the improvement on `best` that the mixture expects `[C]`."""
        of_processes = log_expected_improvement(means, deviations, best)
        return torch.logsumexp(self._conditioned.log_weights + of_processes, 0)

    def _incumbent_target(self, request: Request) -> float:
        """Return the target of the incumbent, of that in the branch if there is one.

        With given values it is the best expectation of trials that are moved to these values. If
        no trial may be the incumbent, it is the target of the worst trial.
        """
        eligible, branch = self._eligible, request.branch
        if branch is not None:
            within = eligible & torch.from_numpy(is_within(self._units[: len(eligible)], branch))
            eligible = within if within.any() else eligible
        targets = self._conditioned.targets[: len(eligible)][eligible]
        if not len(targets):
            return float(self._conditioned.targets.min())
        if not np.isnan(request.fixed).all():
            moved = with_fixed(self._units[: len(eligible)][eligible.numpy()], request.fixed)
            targets = self._expected(self._space.canonical(moved))
        return float(targets.max())

    def _features(self, units: Units) -> torch.Tensor:
        features, expected = self._space.features(units), self._expectation.features(units)
        return torch.from_numpy(np.concatenate([sketched(features), expected], axis=1)).double()


def _acquisition(predictions: torch.Tensor) -> torch.Tensor:
    """Return the acquisition values of `UniversalProposer` `[C]`, a part of the predictions."""
    return predictions[-1]
