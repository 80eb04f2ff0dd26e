"""The proposals of the universal prior with several objectives: the largest gain of hypervolume.

Each objective has its processes. Samples of their predictions are compared with the Pareto front
along random directions. The hypervolume that points dominate is proportional to the mean, over
directions l that are uniform on the positive part of the sphere, of the largest value, over the
points z, of (min over objectives o of max(z_o - r_o, 0) / l_o)^O, with r the reference point
(Zhang and Golovin, ICML 2020, Lemma 5).

Notation: see docs/architecture.md; `O` objectives, `S` samples, each with a direction; larger is
better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.conditioned import BLOCK, Conditioned, with_broken
from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.gain_weights import GainWeights
from dre_plugins.recommend.lists import FAILED_RANK, dense_ranks, select_fantasies
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import N_PARENTS, CandidatePool, CandidateSearch
from dre_plugins.recommend.sketch import sketched
from dre_plugins.recommend.universal_prior import network_for
from dre_plugins.space.base import Array, Positions, Units
from dre_plugins.space.candidates import sobol, with_fixed

N_SAMPLES = 128
# Below this share of the hypervolume between reference point and ideal point, gains fade out
# instead of being 0, so that candidates without any are ordered, too.
SOFTNESS = 1e-3
# The reference point is beyond the worst value of each objective by this share of its range.
MARGIN = 0.1


class HypervolumeProposer:
    """Propose the candidate of the largest expected gain of hypervolume under the universal prior.

    Hypervolumes are of the targets of the processes, in which each objective has a variance of 1.
    At least one trial of the evidence must be ranked.
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
        observed, _ = evidence.joint_list
        units = evidence.units[observed.trials]
        self._eligible = evidence.may_be_incumbent_in(observed)
        values = evidence.objective_values(observed.trials)
        is_best = np.zeros(len(values), dtype=np.bool_)
        valued = np.flatnonzero(self._eligible & ~np.isnan(values).any(axis=1))
        is_best[valued] = non_dominated(values[valued])
        self._elite = units[np.lexsort([-observed.ranks, ~is_best])[:N_PARENTS]]
        self._reference = search.reference_with(units)
        self._units = with_broken(units, search.rule, self._elite, rng)
        missing = np.full((len(self._units) - len(units), evidence.n_objectives), np.nan)
        self._eligible = np.append(self._eligible, np.zeros(len(missing), dtype=np.bool_))
        features, network = self._features(self._units), network_for(self._space, prior)
        self._objectives = [
            Conditioned.on(network, features, column, _ranks(column))
            for column in np.concatenate([values, missing]).T
        ]
        draws = sobol(3 * evidence.n_objectives, N_SAMPLES, rng)
        errors, shares, along = np.split(_inside(draws), 3, axis=1)
        self._deviates = ndtri(errors)
        # The process of each sample, by objective.
        self._drawn = [
            _drawn(objective, column)
            for objective, column in zip(self._objectives, shares.T, strict=True)
        ]
        self._directions = _unit_vectors(ndtri(0.5 + 0.5 * along))
        # The pool of the last choice, and what is expected of the reference points `[O, 1, K]`;
        # None after fantasies.
        self._pool: tuple[CandidatePool, Array] | None = None

    def fantasize(self, pending: Units) -> None:
        """Condition the processes on pending trials `[U, P]` at their predicted values.

        At most `lists.MAX_FANTASIES` of them are used.
        """
        pending = select_fantasies(pending, lambda units: self._expected(units).sum(axis=1))
        expected = torch.from_numpy(self._expected(pending))
        self._units = np.concatenate([self._units, pending])
        self._eligible = np.append(self._eligible, np.ones(len(pending), dtype=np.bool_))
        features = self._features(self._units)
        self._objectives = [
            objective.with_fantasies(features, targets)
            for objective, targets in zip(self._objectives, expected.T, strict=True)
        ]
        self._pool = None

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected gain of hypervolume."""
        gain = Gain.beyond(self._front(request), self._targets, self._directions)

        def predict(candidates: Units) -> torch.Tensor:
            units = self._space.canonical(candidates)
            parts = self._features(units).split(BLOCK)
            logs = np.concatenate([gain.logs(self._samples(part)) for part in parts])
            return (torch.from_numpy(logs) + self._gain_weights.logs_at(units))[None]

        if self._pool is None or request.taken is None or request.branch is not None:
            pool = self._search.pool(
                predict,
                _acquisition,
                request,
                self._rng,
                elite=self._elite,
                favourites=self._units[:0],
            )
            self._pool = pool, self._expected(self._reference).T[:, None]
        pool, reference = self._pool
        units, _, is_new = self._search.best(pool, predict, _acquisition, request, self._rng)
        rank, spread = self._rank(units, gain, reference)
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            rank,
            spread,
            len(self._reference),
            expected_cost=self._gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    @property
    def _targets(self) -> Array:
        """Return the targets of all trials `[N, O]`."""
        return torch.stack([objective.targets for objective in self._objectives], 1).numpy()

    def _front(self, request: Request) -> Array:
        """Return the targets of the trials on the Pareto front `[F, O]`; none if none may be.

        In a branch these are trials of that branch, if there are any. With given values they are
        the expectations of trials that are moved to these values.
        """
        eligible = self._eligible
        if request.branch is not None:
            within = eligible & is_within(self._units, request.branch)
            eligible = within if within.any() else eligible
        targets = self._targets[eligible]
        if not np.isnan(request.fixed).all():
            moved = with_fixed(self._units[eligible], request.fixed)
            targets = self._expected(self._space.canonical(moved))
        return targets[non_dominated(targets)] if len(targets) else targets

    @torch.inference_mode()
    def _samples(self, features: torch.Tensor) -> Array:
        """Return samples of the targets of candidates `[C, D]`, `[O, S, C]`."""
        samples = []
        for objective, deviates, drawn in zip(
            self._objectives, self._deviates.T, self._drawn, strict=True
        ):
            means, deviations = objective.posterior(features)
            samples.append(means.numpy()[drawn] + deviations.numpy()[drawn] * deviates[:, None])
        return np.stack(samples)

    @torch.inference_mode()
    def _expected(self, units: Units) -> Array:
        """Return the expected targets at canonical coordinates `[C, P]`, `[C, O]`."""
        features = self._features(units)
        expected = [objective.expected(features) for objective in self._objectives]
        return torch.stack(expected, 1).numpy()

    def _rank(self, units: Units, gain: Gain, reference: Array) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[P]`, see `Explanation`.

        Each sample ranks it along its direction, among expectations of the reference `[O, 1, K]`.
        """
        features = self._features(self._space.canonical(units[None]))
        samples = gain.along(self._samples(features))
        others = torch.from_numpy(gain.along(reference))
        ranks = ranks_against(torch.from_numpy(samples), others)
        return float(ranks.mean()), float(ranks.std(correction=0))

    def _features(self, units: Units) -> torch.Tensor:
        features, expected = self._space.features(units), self._expectation.features(units)
        return torch.from_numpy(np.concatenate([sketched(features), expected], axis=1)).double()


@dataclass(frozen=True, slots=True)
class Gain:
    """Compute the expected gain of hypervolume beyond a Pareto front."""

    low: Array  # reference point `[O]`
    directions: Array  # `[S, O]`
    best: Array  # what the front reaches in each direction `[S]`
    softness: float  # gain below which gains fade out

    @classmethod
    def beyond(cls, front: Array, targets: Array, directions: Array) -> Gain:
        """Return the gain beyond a front `[F, O]` of trials with targets `[N, O]`."""
        low = targets.min(axis=0) - MARGIN * np.ptp(targets, axis=0)
        free = cls(low, directions, np.zeros(len(directions)), 0.0)
        best = free.reached(front.T[:, None]).max(axis=1, initial=0.0)
        ideal = free.reached(targets.max(axis=0)[:, None, None]).mean()
        return cls(low, directions, best, SOFTNESS * max(float(ideal), np.finfo(float).tiny))

    def along(self, points: Array) -> Array:
        """Return how far points `[O, S or 1, C]` lie along the directions `[S, C]`."""
        scaled = (points - self.low[:, None, None]) / self.directions.T[:, :, None]
        return np.asarray(scaled.min(axis=0))

    def reached(self, points: Array) -> Array:
        """Return the hypervolume of each point `[O, S or 1, C]`, by direction `[S, C]`."""
        return np.asarray(np.maximum(self.along(points), 0.0) ** len(self.low))

    def logs(self, samples: Array) -> Array:
        """Return the logarithms of the mean gain of candidates, of samples `[O, S, C]`, `[C]`."""
        gains = self.reached(samples) - self.best[:, None]
        lacking = np.minimum(gains, 0.0) / self.softness
        soft = np.maximum(gains, 0.0) + self.softness / (1.0 - lacking)
        return np.asarray(np.log(soft.mean(axis=0)))


def _acquisition(predictions: torch.Tensor) -> torch.Tensor:
    """Return the acquisition values of `HypervolumeProposer` `[C]`, its only predictions."""
    return predictions[0]


def _ranks(values: Array) -> Array:
    """Return dense ranks of values `[N]`, NaN as failures."""
    ranks = np.full(len(values), FAILED_RANK)
    is_valued = ~np.isnan(values)
    ranks[is_valued] = dense_ranks(values[is_valued])
    return ranks


def _drawn(objective: Conditioned, shares: Array) -> Positions:
    """Return the process that each share of the total weight `[S]` falls to."""
    ends = objective.log_weights[:, 0].exp().cumsum(0).numpy()
    return np.searchsorted(ends[:-1], shares)


def _inside(draws: Array) -> Array:
    """Return draws from [0, 1] a little inside, where normal quantiles are finite."""
    rounding = np.finfo(np.float64).eps
    return np.clip(draws, rounding, 1.0 - rounding)


def _unit_vectors(vectors: Array) -> Array:
    """Return vectors `[S, O]` with a length of 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
