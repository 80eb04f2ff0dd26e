"""A Gaussian process of one list, with which the ensemble takes turns.

Matérn 5/2 with a lengthscale for each feature, log-normal priors that grow with the dimension
(Hvarfner et al., 2024), maximum a posteriori. The gradient is written out, with one product for
all lengthscales instead of a matrix for each, so that a fit takes milliseconds.

Notation: see docs/architecture.md. Everything here is float64: covariances need it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from scipy.optimize import minimize
from torch import Tensor

# Of logarithms, mean and deviation: of a lengthscale of one feature alone, and of the variance of
# the noise where targets have variance 1 (both are BoTorch's).
LENGTHSCALE_PRIOR = (math.sqrt(2.0), math.sqrt(3.0))
NOISE_PRIOR = (-4.0, 1.0)
LENGTHSCALES = (0.025, 1e4)
NOISES = (1e-4, 2.0)
MAX_ITERATIONS = 50
# What is added to the covariance of observations, and left of the variance on top of one.
JITTER = 1e-8
MIN_VARIANCE = 1e-10


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """Hold a process that is conditioned on observations.

    Args:
        lengthscales: Of each feature `[D]`.
        noise: Variance of the noise.
        inputs: Observed features in lengthscales `[N, D]`.
        root: Cholesky factor of the covariance of observations `[N, N]`.
        weights: Targets, solved by that covariance `[N]`.
    """

    lengthscales: Tensor
    noise: float
    inputs: Tensor
    root: Tensor
    weights: Tensor

    @classmethod
    def fit(cls, features: Tensor, targets: Tensor) -> GaussianProcess:
        """Return the process whose lengthscales and noise are most probable.

        Args:
            features: Observed features `[N, D]`, numbers of about 0 to 1.
            targets: What was observed `[N]`, with mean 0 and variance 1.
        """
        features, targets = features.double(), targets.double()
        n_features = features.shape[1]
        mean, deviation = LENGTHSCALE_PRIOR
        means = [mean + 0.5 * math.log(n_features)] * n_features + [NOISE_PRIOR[0]]
        deviations = [deviation] * n_features + [NOISE_PRIOR[1]]
        prior = torch.tensor([means, deviations], dtype=torch.float64)

        def loss(point: Any) -> tuple[float, Any]:
            value, gradient = _loss(features, targets, torch.from_numpy(point), prior)
            return float(value), gradient.numpy()

        limits = [LENGTHSCALES] * n_features + [NOISES]
        found = minimize(
            loss,
            (prior[0] - prior[1].square()).numpy(),  # where the prior is densest
            jac=True,
            method="L-BFGS-B",
            bounds=[(math.log(low), math.log(high)) for low, high in limits],
            options={"maxiter": MAX_ITERATIONS},
        )
        scales = torch.from_numpy(found.x).exp()
        return _conditioned(features, targets, scales[:-1], float(scales[-1]))

    def conditioned(self, features: Tensor, targets: Tensor) -> GaussianProcess:
        """Return the process with the same lengthscales and noise on other observations.

        Args:
            features: See `fit`.
            targets: See `fit`.
        """
        return _conditioned(features.double(), targets.double(), self.lengthscales, self.noise)

    def posterior(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations, each `[C]`, of features `[C, D]`."""
        covariance, _ = _matern(self.inputs, features.double() / self.lengthscales)
        explained = torch.linalg.solve_triangular(self.root, covariance, upper=False)
        variance = (1.0 - explained.square().sum(0)).clamp_min(MIN_VARIANCE)
        return self.weights @ covariance, variance.sqrt()


def _conditioned(
    features: Tensor, targets: Tensor, lengthscales: Tensor, noise: float
) -> GaussianProcess:
    inputs = features / lengthscales
    root = torch.linalg.cholesky(_noisy(_matern(inputs, inputs)[0], noise))
    weights = torch.cholesky_solve(targets[:, None], root)[:, 0]
    return GaussianProcess(lengthscales, noise, inputs, root, weights)


def _loss(
    features: Tensor, targets: Tensor, point: Tensor, prior: Tensor
) -> tuple[Tensor, Tensor]:
    """Return minus the logarithm of the posterior density, up to a constant, and its gradient.

    With K the covariance, a = K⁻¹ z and G = (K⁻¹ − a aᵀ) ∘ slope, the derivative by the logarithm
    of a lengthscale is ½ Σ Gᵢⱼ (xᵢ − xⱼ)² over all pairs; multiplied out, this is one product for
    all lengthscales.

    Args:
        features: `[N, D]`.
        targets: `[N]`.
        point: Logarithms of the lengthscales and of the noise `[D + 1]`.
        prior: Means and deviations of these `[2, D + 1]`.
    """
    scales = point.exp()
    inputs, noise = features / scales[:-1], float(scales[-1])
    covariance, slope = _matern(inputs, inputs)
    root = torch.linalg.cholesky(_noisy(covariance, noise))
    inverse = torch.cholesky_inverse(root)
    weights = inverse @ targets
    residual = inverse - torch.outer(weights, weights)
    weighted = residual * slope
    by_scale = weighted.sum(1) @ inputs.square() - (inputs * (weighted @ inputs)).sum(0)
    by_noise = 0.5 * noise * residual.trace()
    error = (point - prior[0]) / prior[1]
    # A log-normal density is one of the scale, not of its logarithm: hence the sum of the point.
    density = 0.5 * error.square().sum() + point.sum()
    value = 0.5 * (targets @ weights) + root.diagonal().log().sum() + density
    return value, torch.cat([by_scale, by_noise[None]]) + error / prior[1] + 1.0


def _matern(inputs: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return covariances `[N, C]`, and their slopes.

    A slope times the squared difference along a feature is the derivative by the logarithm of its
    lengthscale.
    """
    distance = math.sqrt(5.0) * torch.cdist(inputs, others, compute_mode="use_mm_for_euclid_dist")
    decay = torch.exp(-distance)
    slope = 5.0 / 3.0 * (1.0 + distance) * decay
    return (1.0 + distance + distance.square() / 3.0) * decay, slope


def _noisy(covariance: Tensor, noise: float) -> Tensor:
    return covariance + (noise + JITTER) * torch.eye(len(covariance), dtype=torch.float64)
