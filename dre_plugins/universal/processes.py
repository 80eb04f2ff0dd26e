"""Mixtures of Gaussian processes with different hyper-parameters.

Each process is the sum of a local part and a trend, observed with noise. The local part has a
Matérn 5/2 covariance with an amplitude and a lengthscale for every feature. The trend is a sum of
linear and quadratic terms of single features, whose coefficients are normally distributed. All
processes share one monotone warp of each feature (Kumaraswamy's distribution function, as in
Snoek et al., 2014) and a constant mean that is 0 or unknown. Everything is computed in float64,
because squared distances of near trials are differences of large numbers.

Notation: `B` tasks, `H` processes of each, `N` trials, `C` candidates, `D` features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

# Added to the diagonal of covariances; also the smallest posterior variance.
JITTER = 1e-6
MIN_VARIANCE = 1e-6
# Processes with a smaller weight are left out of predictions, which saves time.
MIN_WEIGHT = 0.01
OF_PROCESSES = ("lengthscales", "trends", "amplitudes", "noises", "weights")
OF_TASKS = ("warps", "mean_variance")
# Smallest distance of features from 0 and 1, where warps have no finite slope.
MARGIN = 1e-4
# Candidates predicted at once: their covariances with 128 trials fit into a core's cache.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class Matern:
    """Hold what Matérn 5/2 covariances and their slopes are computed from, `[B, H, N, C]` each.

    Intermediate results of functions here are overwritten, which takes half of the time.
    """

    distances: Tensor  # in lengthscales, times the root of 5
    decays: Tensor  # exponentials of minus the distances

    @classmethod
    def between(cls, inputs: Tensor, others: Tensor, lengthscales: Tensor) -> Matern:
        """Return those of inputs `[B, N, D]` and `[B, C, D]`, lengthscales as logarithms."""
        inverse = math.sqrt(5.0) * (-lengthscales).exp()[:, :, None]
        return cls.of(_rows(inputs[:, None] * inverse), _columns(others[:, None] * inverse))

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor) -> Matern:
        """Return those of `_rows` and `_columns`, whose products are squared distances."""
        # Not 0, where the root has no finite slope.
        distances = (rows @ columns).clamp_min_(5e-12).sqrt_()
        return cls(distances, distances.neg().exp_())

    def covariances(self) -> Tensor:
        """Return covariances, 1 for no distance."""
        polynomial = self.distances.div(3.0).add_(1.0).mul_(self.distances).add_(1.0)
        return polynomial.mul_(self.decays)

    def slopes(self) -> Tensor:
        """Return slopes.

        A slope times the squared difference along a feature, in lengthscales, is the derivative of
        the covariance by the logarithm of that lengthscale.
        """
        return self.distances.add(1.0).mul_(self.decays).mul_(5.0 / 3.0)


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Hold the hyper-parameters of processes, as logarithms; targets have a variance of 1."""

    lengthscales: Tensor  # lengthscales of the features `[B, H, D]`
    trends: Tensor  # variances of the coefficients of the trend's terms `[B, H, 2 D]`
    amplitudes: Tensor  # variances of the local part `[B, H]`
    noises: Tensor  # variances of the noise `[B, H]`
    weights: Tensor  # prior probabilities of the processes `[B, H]`
    warps: Tensor  # both exponents of each feature's warp `[B, D, 2]`
    mean_variance: Tensor  # variance of the constant mean `[B, 1]`, no logarithm; 0: it is 0

    def double(self) -> Hypotheses:
        """Return the same in float64."""
        parts = {name: getattr(self, name).double() for name in (*OF_PROCESSES, *OF_TASKS)}
        return Hypotheses(**parts)

    def trend(self, inputs: Tensor, others: Tensor) -> Tensor:
        """Return covariances of the trend `[B, H, N, C]`, with the unknown mean.

        Warped features are `[B, N, D]` and `[B, C, D]`.
        """
        rows, columns = terms(inputs)[:, None], terms(others)[:, None]
        trend = (rows * self.trends.exp()[:, :, None]) @ columns.mT
        return trend.add_(self.mean_variance[..., None, None])

    def covariances(self, local: Matern, inputs: Tensor, others: Tensor) -> Tensor:
        """Return the covariances of the local part and the trend `[B, H, N, C]`."""
        amplitudes = self.amplitudes.exp()[..., None, None]
        return self.trend(inputs, others).addcmul_(amplitudes, local.covariances())

    def variances(self, inputs: Tensor) -> Tensor:
        """Return the variances at warped features `[B, C, D]` before any trial, `[B, H, C]`."""
        trend = self.trends.exp() @ terms(inputs).square().mT
        return self.amplitudes.exp()[..., None] + trend + self.mean_variance[..., None]


@dataclass(frozen=True, slots=True)
class Processes:
    """Hold processes that are conditioned on trials."""

    hypotheses: Hypotheses
    inputs: Tensor  # warped features of the trials `[B, N, D]`
    local: Matern  # covariances of their local part, without amplitudes `[B, H, N, N]`
    roots: Tensor  # Cholesky factors of the covariances with noise `[B, H, N, N]`
    solved: Tensor  # targets multiplied by the inverse covariances `[B, H, N, 1]`
    log_likelihood: Tensor  # log marginal likelihood of the targets under each process `[B, H]`

    @classmethod
    def conditioned(cls, hypotheses: Hypotheses, features: Tensor, targets: Tensor) -> Processes:
        """Return the processes of some hypotheses, conditioned on trials.

        The trials have features `[B, N, D]` from 0 to 1, and targets `[B, N]` of a mean of about 0
        and a variance of about 1.
        """
        hypotheses = hypotheses.double()
        inputs = warped(features.double(), hypotheses.warps)
        local = Matern.between(inputs, inputs, hypotheses.lengthscales)
        n = features.shape[1]
        noise = hypotheses.noises.exp()[..., None, None] + JITTER
        eye = torch.eye(n, dtype=torch.float64, device=features.device)
        covariances = hypotheses.covariances(local, inputs, inputs)
        roots = torch.linalg.cholesky(torch.addcmul(covariances, noise, eye))
        observed = targets.double()[:, None, :, None].expand(-1, roots.shape[1], -1, -1)
        solved = torch.cholesky_solve(observed, roots)
        fit = (observed * solved).sum((-1, -2))
        volume = roots.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_likelihood = -0.5 * fit - volume - 0.5 * n * math.log(2.0 * math.pi)
        return cls(hypotheses, inputs, local, roots, solved, log_likelihood)

    def likely(self, weights: Tensor, task: int = 0) -> tuple[Processes, Tensor]:
        """Return the processes of one task with a weight of at least `MIN_WEIGHT`.

        Weights are logarithms: of all processes `[B, H]`, and, returned, of those kept `[H', 1]`.
        """
        kept = (weights[task] > math.log(MIN_WEIGHT)).nonzero()[:, 0]
        of_task = {name: getattr(self.hypotheses, name)[[task]] for name in OF_TASKS}
        of_processes = _some(self.hypotheses, OF_PROCESSES, task, kept)
        processes = Processes(
            hypotheses=Hypotheses(**of_processes, **of_task),
            inputs=self.inputs[[task]],
            local=Matern(**_some(self.local, ("distances", "decays"), task, kept)),
            **_some(self, ("roots", "solved", "log_likelihood"), task, kept),
        )
        return processes, torch.log_softmax(weights[task, kept], 0)[:, None]

    @property
    def mixture_log_likelihood(self) -> Tensor:
        """Return the log marginal likelihood of the targets under the mixture `[B]`."""
        believed = torch.log_softmax(self.hypotheses.weights, -1)
        return torch.logsumexp(believed + self.log_likelihood, -1)

    def gradient(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradient of `log_likelihood`.

        It is by lengthscales `[B, H, D]`, by trends `[B, H, 2 D]`, by amplitudes and by noises
        `[B, H]`. With K the covariance, a = K⁻¹ z and G = K⁻¹ − a aᵀ, it is −½ Σ Gᵢⱼ Kᵢⱼ′ over all
        pairs of trials, where K′ is the derivative of K. For a lengthscale K′ is the slope times
        (xᵢ − xⱼ)², which is multiplied out, so that one matrix product serves all lengthscales.
        """
        residual = torch.cholesky_inverse(self.roots) - self.solved @ self.solved.mT
        hypotheses, n_trials = self.hypotheses, self.roots.shape[-1]
        inputs = self.inputs[:, None] / hypotheses.lengthscales.exp()[:, :, None]
        amplitudes = hypotheses.amplitudes.exp()[..., None, None]
        weighted = self.local.slopes().mul_(amplitudes).mul_(residual)
        squares = (weighted.sum(-1, keepdim=True) * inputs.square()).sum(-2)
        by_scale = (inputs * (weighted @ inputs)).sum(-2) - squares
        of_trend = terms(self.inputs)[:, None]
        by_trend = hypotheses.trends.exp() * (of_trend * (residual @ of_trend)).sum(-2)
        trace = residual.diagonal(dim1=-2, dim2=-1).sum(-1)
        by_noise = hypotheses.noises.exp() * trace
        # Σ Gᵢⱼ Kᵢⱼ = N − aᵀ K a is the sum over all parts of K.
        fit = (self.roots.mT @ self.solved).square().sum((-1, -2))
        by_mean = hypotheses.mean_variance * residual.sum((-1, -2))
        others = by_trend.sum(-1) + by_noise + JITTER * trace + by_mean
        by_amplitude = n_trials - fit - others
        return by_scale, -0.5 * by_trend, -0.5 * by_amplitude, -0.5 * by_noise

    def posterior(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and variances `[B, H, C]` of noise-free values, of features `[B, C, D]`."""
        inputs = warped(features.double(), self.hypotheses.warps)
        local = Matern.between(inputs, self.inputs, self.hypotheses.lengthscales)
        across = self.hypotheses.covariances(local, inputs, self.inputs)
        mean = (across @ self.solved)[..., 0]
        seen = torch.linalg.solve_triangular(self.roots, across.mT, upper=False)
        variance = self.hypotheses.variances(inputs) - seen.square().sum(-2)
        return mean, variance.clamp_min(MIN_VARIANCE)


class PosteriorMeans:
    """Predict the means of `Processes.posterior`, of one task, in a fraction of its time.

    What does not depend on the candidates is computed once. The trend's part of a mean is linear
    in the terms of a candidate.
    """

    def __init__(self, processes: Processes) -> None:
        hypotheses, solved = processes.hypotheses, processes.solved[0]
        self._warps = hypotheses.warps
        self._inverse = math.sqrt(5.0) * (-hypotheses.lengthscales[0]).exp()[:, None]
        self._columns = _columns(processes.inputs * self._inverse)  # [H, D + 2, N]
        self._local = hypotheses.amplitudes[0].exp()[:, None, None] * solved  # [H, N, 1]
        of_terms = terms(processes.inputs).mT @ solved
        self._trend = hypotheses.trends[0].exp()[..., None] * of_terms  # [H, 2 D, 1]
        self._level = hypotheses.mean_variance * solved.sum(-2, keepdim=True)

    def __call__(self, features: Tensor) -> Tensor:
        """Return the means at features `[C, D]`, `[H, C]`."""
        return torch.cat([self._of_block(part) for part in features.split(BLOCK)], -1)

    def _of_block(self, features: Tensor) -> Tensor:
        inputs = warped(features[None], self._warps)
        local = Matern.of(_rows(inputs * self._inverse), self._columns).covariances()
        means = (local @ self._local).add_(terms(inputs) @ self._trend).add_(self._level)
        return means[..., 0]


def _rows(scaled: Tensor) -> Tensor:
    squares = scaled.square().sum(-1, keepdim=True)
    return torch.cat([scaled, squares, torch.ones_like(squares)], -1)


def _columns(scaled: Tensor) -> Tensor:
    squares = scaled.square().sum(-1, keepdim=True)
    return torch.cat([-2.0 * scaled, torch.ones_like(squares), squares], -1).mT


def terms(inputs: Tensor) -> Tensor:
    """Return the linear, then the quadratic terms `[B, N, 2 D]` of warped features `[B, N, D]`.

    They are Legendre's polynomials, of mean 0 and variance 1 on [0, 1]. Features beyond (of ranges
    that were narrowed) count as the bounds, as terms would be far larger there.
    """
    centred = 2.0 * inputs.clamp(0.0, 1.0) - 1.0
    quadratic = 1.5 * centred.square() - 0.5
    return torch.cat([math.sqrt(3.0) * centred, math.sqrt(5.0) * quadratic], -1)


def warped(features: Tensor, warps: Tensor) -> Tensor:
    """Return warped features `[B, N, D]`: each has a monotone map of [0, 1] to [0, 1].

    Features beyond (of ranges that were narrowed) keep their distance from these bounds.
    """
    first, second = (exponent[:, None] for exponent in warps.exp().unbind(-1))
    inside: Tensor = features.clamp(MARGIN, 1.0 - MARGIN)
    return 1.0 - (1.0 - inside**first) ** second + (features - features.clamp(0.0, 1.0))


def _some(parts: object, names: Iterable[str], task: int, kept: Tensor) -> dict[str, Tensor]:
    """Return attributes `[B, H, …]`, of one task and some of its processes, as `[1, H', …]`."""
    return {name: getattr(parts, name)[task, kept][None] for name in names}
