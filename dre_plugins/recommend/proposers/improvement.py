"""The expected improvement of a mixture of processes, with its derivatives."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import erfcx, ndtr

from dre_plugins.engine.acquisition import log_expected_improvement
from dre_plugins.recommend.universal_prior import BLOCK, Conditioned
from dre_plugins.space.base import Array
from dre_plugins.universal.derivatives import mixed


@dataclass(frozen=True, slots=True)
class MixtureImprovement:
    """Compute the logarithm of the improvement that a mixture expects."""

    conditioned: Conditioned  # the mixture, conditioned on the trials of one task
    best: float  # target of the incumbent, on which it improves; larger is better

    def logs(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logarithms `[C]` at features `[C, D]`."""
        parts = []
        for part in features.split(BLOCK):
            means, deviations = self.conditioned.posterior(part)
            of_processes = log_expected_improvement(means, deviations, self.best)
            parts.append(torch.logsumexp(self.conditioned.log_weights + of_processes, 0))
        return torch.cat(parts)

    def with_derivatives(self, features: Array) -> tuple[Array, Array]:
        """Return the logarithms `[C]` at features `[C, D]`, and their derivatives `[C, D]`."""
        means, variances, derivatives = self.conditioned.differentiable(features)
        logs, by_mean, by_variance = log_improvements(means, variances, self.best)
        total, shares = mixed(logs + self.conditioned.log_weights.numpy())
        return total, derivatives(shares * by_mean, shares * by_variance)


def log_improvements(means: Array, variances: Array, best: float) -> tuple[Array, Array, Array]:
    """Return ln(σ (φ(u) + u Φ(u))) with u = (μ − best) / σ, and its derivatives by μ and σ².

    All are `[H, C]`. See `engine.acquisition.log_expected_improvement`.
    """
    deviations = np.sqrt(variances)
    u = (means - best) / deviations
    near, far = np.maximum(u, -1.0), np.minimum(u, -1.0)
    chance = ndtr(near)
    of_near = np.exp(-0.5 * np.square(near)) / math.sqrt(2.0 * math.pi) + near * chance
    scaled = math.sqrt(math.pi / 2.0) * erfcx(-far / math.sqrt(2.0))  # Φ / φ
    of_far = np.where(far > -1e4, 1.0 + far * scaled, 1.0 / np.square(far))
    log_far = np.log(of_far) - 0.5 * np.square(far) - 0.5 * math.log(2.0 * math.pi)
    is_near = u > -1.0
    logs = np.where(is_near, np.log(of_near), log_far) + np.log(deviations)
    by_u = np.where(is_near, chance / of_near, scaled / of_far)
    by_variance = 0.5 * (1.0 - u * by_u) / np.square(deviations)
    return logs, by_u / deviations, by_variance
