"""The gain of hypervolume that the processes of several objectives expect.

Samples of their predictions are compared with the Pareto front along random directions.
Hypervolumes are of the targets of the processes, in which each objective has a variance of 1.
The hypervolume that points dominate is proportional to the mean, over directions l that are
uniform on the positive part of the sphere, of the largest value, over the points z, of
(min over objectives o of max(z_o - r_o, 0) / l_o)^O, with r the reference point (Zhang and
Golovin, ICML 2020, Lemma 5). Samples stand for z, each with a direction.

Notation: see docs/architecture.md; `O` objectives, `S` samples; larger is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.universal_prior import Conditioned
from dre_plugins.space.base import Array, Positions
from dre_plugins.space.candidates import sobol
from dre_plugins.universal.processes import BLOCK

# Samples of each prediction, all of which are compared with the front: time is in proportion.
N_SAMPLES = 128
# Below this share of the hypervolume between reference point and ideal point, gains fade out
# instead of being 0, so that candidates without any are ordered, too.
SOFTNESS = 1e-3
# The reference point is beyond the worst value of each objective by this share of its range
# (lab/2026-11-28-several-objectives.md).
MARGIN = 0.1


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


@dataclass(frozen=True, slots=True)
class Samples:
    """Hold what is drawn of samples of the predictions."""

    directions: Array  # unit vectors `[S, O]`
    deviates: Array  # of standard normal distributions `[O, S]`
    processes: list[Positions]  # of each objective, the processes `[S]`

    @classmethod
    def drawn(cls, objectives: Sequence[Conditioned], rng: np.random.Generator) -> Samples:
        """Return spread draws, in which processes are as frequent as their weights say."""
        draws = _inside(sobol(3 * len(objectives), N_SAMPLES, rng))
        errors, shares, along = np.split(draws, 3, axis=1)
        vectors = ndtri(0.5 + 0.5 * along)
        directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        processes = []
        for objective, column in zip(objectives, shares.T, strict=True):
            ends = objective.log_weights[:, 0].exp().cumsum(0).numpy()
            processes.append(np.searchsorted(ends[:-1], column))
        return cls(directions, ndtri(errors).T, processes)

    def of(self, objectives: Sequence[Conditioned], features: torch.Tensor) -> Array:
        """Return samples `[O, S, C]` of what the objectives predict at features `[C, D]`."""
        samples = []
        for objective, drawn, deviates in zip(
            objectives, self.processes, self.deviates, strict=True
        ):
            means, deviations = (part.numpy()[drawn] for part in objective.posterior(features))
            samples.append(means + deviations * deviates[:, None])
        return np.stack(samples)


@dataclass(frozen=True, slots=True)
class HypervolumeImprovement:
    """Compute the improvement of the hypervolume that the objectives' processes expect."""

    objectives: Sequence[Conditioned]  # the processes of each objective `[O]`
    samples: Samples
    gain: Gain  # beyond the front of the trials that may be incumbents

    def logs(self, features: torch.Tensor) -> Array:
        """Return logarithms of gains `[C]` at features `[C, D]`."""
        parts = features.split(BLOCK)
        logs = [self.gain.logs(self.samples.of(self.objectives, part)) for part in parts]
        return np.concatenate(logs)

    def rank(self, features: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[1, D]`.

        Each sample ranks it along its direction, among expectations of the reference, which has
        features `[K, D]`.
        """
        along = self.gain.along(self.samples.of(self.objectives, features))
        means = np.stack([objective.expected(reference).numpy() for objective in self.objectives])
        of_reference = torch.from_numpy(self.gain.along(means[:, None]))
        ranks = ranks_against(torch.from_numpy(along), of_reference)
        return float(ranks.mean()), float(ranks.std(correction=0))


def _inside(draws: Array) -> Array:
    """Return draws from [0, 1] a little inside, where normal quantiles are finite."""
    rounding = np.finfo(np.float64).eps
    return np.clip(draws, rounding, 1.0 - rounding)
