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
from dataclasses import dataclass, replace

import torch
from torch import Tensor

# Added to the diagonal of covariances; also the smallest posterior variance.
JITTER = 1e-6
MIN_VARIANCE = 1e-6
# Processes with a smaller weight are left out of predictions, which saves time.
MIN_WEIGHT = 0.01
OF_PROCESSES = ("lengthscales", "trends", "amplitudes", "noises", "weights")
# Smallest distance of features from 0 and 1, where warps have no finite slope.
MARGIN = 1e-4


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Hold the hyper-parameters of processes, as logarithms; targets have a variance of 1."""

    lengthscales: Tensor  # lengthscales of the features `[B, H, D]`
    trends: Tensor  # variances of the coefficients of the trend's terms `[B, H, 2 D]`
    amplitudes: Tensor  # variances of the local part `[B, H]`
    noises: Tensor  # variances of the noise `[B, H]`
    weights: Tensor  # prior probabilities of the processes `[B, H]`
    warps: Tensor  # both exponents of each feature's warp `[B, D, 2]`
    mean_variance: float = 0.0  # variance of the constant mean, no logarithm; 0: the mean is 0

    def some(self, kept: Tensor) -> Hypotheses:
        """Return those of some of the processes, by their positions `[H']`."""
        return replace(self, **{name: getattr(self, name)[:, kept] for name in OF_PROCESSES})

    def double(self) -> Hypotheses:
        """Return the same in float64."""
        parts = (*OF_PROCESSES, "warps")
        return replace(self, **{name: getattr(self, name).double() for name in parts})

    def trend(self, inputs: Tensor, others: Tensor) -> Tensor:
        """Return covariances of the trend `[B, H, N, C]`, with the unknown mean.

        Warped features are `[B, N, D]` and `[B, C, D]`.
        """
        rows, columns = terms(inputs)[:, None], terms(others)[:, None]
        return (rows * self.trends.exp()[:, :, None]) @ columns.mT + self.mean_variance

    def variances(self, inputs: Tensor) -> Tensor:
        """Return the variances at warped features `[B, C, D]` before any trial, `[B, H, C]`."""
        trend = self.trends.exp() @ terms(inputs).square().mT
        return self.amplitudes.exp()[..., None] + trend + self.mean_variance


@dataclass(frozen=True, slots=True)
class Processes:
    """Hold processes that are conditioned on trials."""

    hypotheses: Hypotheses
    inputs: Tensor  # warped features of the trials `[B, N, D]`
    local: Tensor  # covariances of their local part `[B, H, N, N]`
    slopes: Tensor  # slopes of these, see `matern`, `[B, H, N, N]`
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
        amplitudes = hypotheses.amplitudes.exp()[..., None, None]
        local, slopes = matern(inputs, inputs, hypotheses.lengthscales)
        local, slopes = amplitudes * local, amplitudes * slopes
        covariance = local + hypotheses.trend(inputs, inputs)
        n = features.shape[1]
        noise = hypotheses.noises.exp()[..., None, None] + JITTER
        eye = torch.eye(n, dtype=torch.float64, device=features.device)
        roots = torch.linalg.cholesky(covariance + noise * eye)
        observed = targets.double()[:, None, :, None].expand(-1, roots.shape[1], -1, -1)
        solved = torch.cholesky_solve(observed, roots)
        fit = (observed * solved).sum((-1, -2))
        volume = roots.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_likelihood = -0.5 * fit - volume - 0.5 * n * math.log(2.0 * math.pi)
        return cls(hypotheses, inputs, local, slopes, roots, solved, log_likelihood)

    def likely(self, weights: Tensor) -> tuple[Processes, Tensor]:
        """Return the processes of one task with a weight of at least `MIN_WEIGHT`.

        Weights are logarithms: of all processes `[1, H]`, and, returned, of those kept `[H', 1]`.
        """
        kept = (weights[0] > math.log(MIN_WEIGHT)).nonzero()[:, 0]
        return self.some(kept), torch.log_softmax(weights[0, kept], 0)[:, None]

    def some(self, kept: Tensor) -> Processes:
        """Return some of the processes, by their positions `[H']`."""
        parts = ("local", "slopes", "roots", "solved", "log_likelihood")
        return replace(
            self,
            hypotheses=self.hypotheses.some(kept),
            **{name: getattr(self, name)[:, kept] for name in parts},
        )

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
        inputs = self.inputs[:, None] / self.hypotheses.lengthscales.exp()[:, :, None]
        weighted = residual * self.slopes
        squares = (weighted.sum(-1, keepdim=True) * inputs.square()).sum(-2)
        by_scale = (inputs * (weighted @ inputs)).sum(-2) - squares
        of_trend = terms(self.inputs)[:, None]
        by_trend = self.hypotheses.trends.exp() * (of_trend * (residual @ of_trend)).sum(-2)
        by_amplitude = (residual * self.local).sum((-1, -2))
        trace = residual.diagonal(dim1=-2, dim2=-1).sum(-1)
        by_noise = self.hypotheses.noises.exp() * trace
        return by_scale, -0.5 * by_trend, -0.5 * by_amplitude, -0.5 * by_noise

    def means(self, features: Tensor) -> Tensor:
        """Return the means of `posterior` alone `[B, H, C]`, in a fraction of its time."""
        return (self._across(self._warped(features)) @ self.solved)[..., 0]

    def posterior(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and variances `[B, H, C]` of noise-free values, of features `[B, C, D]`."""
        inputs = self._warped(features)
        across = self._across(inputs)
        mean = (across @ self.solved)[..., 0]
        seen = torch.linalg.solve_triangular(self.roots, across.mT, upper=False)
        variance = self.hypotheses.variances(inputs) - seen.square().sum(-2)
        return mean, variance.clamp_min(MIN_VARIANCE)

    def _warped(self, features: Tensor) -> Tensor:
        return warped(features.double(), self.hypotheses.warps)

    def _across(self, inputs: Tensor) -> Tensor:
        """Return the covariances of candidates, as warped features, and trials `[B, H, C, N]`."""
        pair = inputs, self.inputs, self.hypotheses.lengthscales
        in_training = self.roots.requires_grad
        covariance = matern(*pair)[0] if in_training else _matern_in_place(*pair)
        amplitudes = self.hypotheses.amplitudes.exp()[..., None, None]
        return torch.addcmul(self.hypotheses.trend(inputs, self.inputs), amplitudes, covariance)


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


def matern(inputs: Tensor, others: Tensor, lengthscales: Tensor) -> tuple[Tensor, Tensor]:
    """Return covariances `[B, H, N, C]`, and their slopes.

    A slope times the squared difference along a feature, in lengthscales, is the derivative by
    the logarithm of that lengthscale. Inputs are `[B, N, D]` and `[B, C, D]`, lengthscales
    logarithms `[B, H, D]`.
    """
    inverse = (-lengthscales).exp()[:, :, None]
    rows, columns = inputs[:, None] * inverse, others[:, None] * inverse
    squares = rows.square().sum(-1)[..., None] + columns.square().sum(-1)[..., None, :]
    # Not 0, where the root has no finite slope.
    distance = math.sqrt(5.0) * (squares - 2.0 * rows @ columns.mT).clamp_min(1e-12).sqrt()
    decay = torch.exp(-distance)
    near = 1.0 + distance
    return (near + distance.square() / 3.0) * decay, 5.0 / 3.0 * near * decay


def _matern_in_place(inputs: Tensor, others: Tensor, lengthscales: Tensor) -> Tensor:
    """Return the covariances of `matern` in half of its time, for thousands of candidates.

    It has no gradient, as intermediate results are overwritten.
    """
    inverse = math.sqrt(5.0) * (-lengthscales).exp()[:, :, None]
    rows, columns = inputs[:, None] * inverse, others[:, None] * inverse
    rows = torch.cat([rows, _squares(rows), torch.ones_like(rows[..., :1])], -1)
    columns = torch.cat([-2.0 * columns, torch.ones_like(columns[..., :1]), _squares(columns)], -1)
    distance = (rows @ columns.mT).clamp_min_(0.0).sqrt_()
    decay = torch.exp(-distance)
    return decay.mul_(distance.div(3.0).add_(1.0).mul_(distance).add_(1.0))


def _squares(inputs: Tensor) -> Tensor:
    return inputs.square().sum(-1, keepdim=True)
