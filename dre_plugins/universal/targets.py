"""The targets of the universal prior: two transformations of the values.

One is the values and the normal scores of their order, in equal parts. Values tell how flat an
optimum is; normal scores limit the influence of outliers and of values that span decades. The
other is the values alone, which suits smooth functions. The one with the larger likelihood
counts (docs/decisions/targets.md). Notation: `N` trials, larger values are better.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dre_plugins.engine.acquisition import normal_density

# Values alone are taken if they make the trials 20 times as likely as the blend does. Most real
# tasks are not smooth, and values alone make their search worse (lab/2026-11-24-one-pick.md).
LOG_ODDS = -math.log(20.0)
# Variance of the constant mean for values alone. With a mean of 0, which is the mean of the trials
# and so too high, the corners of a bowl are tried again and again.
MEAN_VARIANCE = 4.0


@dataclass(frozen=True, slots=True)
class Targets:
    """Hold transformed values, and how their density becomes one of standardised values."""

    values: Tensor  # what the processes are conditioned on `[N]`
    # sum of the logarithms of their slopes by the standardised values (the Jacobian), and the
    # logarithm of the prior odds of this transformation
    log_factor: float = 0.0
    mean_variance: float = 0.0  # variance of the constant mean of the processes


def both_targets(order: Tensor, values: Tensor) -> tuple[Targets, Targets]:
    """Return the blend of values and order, and the values alone.

    A score is the normal quantile of a share of the trials, so that its slope is the density of
    the values by that of the score.

    Args:
        order: Numbers whose order counts `[N]`, such as the values or their ranks.
        values: Finite values of about 1 `[N]`.
    """
    standard, _, _ = standardised(values)
    scores = normal_scores(order)
    spread, _, deviation = standardised(scores)
    blend, _, size = standardised(spread + standard)
    slopes = (1.0 + density(standard) / normal_density(scores) / deviation) / size
    return Targets(blend, float(slopes.log().sum())), Targets(standard, LOG_ODDS, MEAN_VARIANCE)


def density(numbers: Tensor) -> Tensor:
    """Return a kernel estimate of the density of standardised numbers at themselves `[N]`.

    The bandwidth is Silverman's (1986, equation 3.31).
    """
    low, high = torch.quantile(numbers, numbers.new_tensor([0.25, 0.75])).tolist()
    spread = min(1.0, (high - low) / 1.34) or 1.0
    bandwidth = 0.9 * spread * len(numbers) ** -0.2
    kernels = normal_density((numbers[:, None] - numbers) / bandwidth)
    estimate: Tensor = kernels.mean(1) / bandwidth
    return estimate


def normal_scores(numbers: Tensor) -> Tensor:
    """Return normal quantiles of mean ranks `[..., N]`: ties share one."""
    rows, columns = numbers[..., :, None], numbers[..., None, :]
    twice = (rows >= columns).sum(-1) + (rows > columns).sum(-1) + 1
    share = twice.to(numbers.dtype) / (2 * (numbers.shape[-1] + 1))
    scores: Tensor = torch.special.ndtri(share)
    return scores


def standardised(numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return numbers with mean 0 and variance 1, the mean, and the deviation, 1 if it is 0."""
    mean = numbers.mean(-1, keepdim=True)
    deviation = numbers.std(-1, keepdim=True, correction=0)
    # Equal numbers that floats do not hold exactly have a deviation that is only rounding.
    rounding = 4.0 * torch.finfo(numbers.dtype).eps
    is_flat = deviation <= rounding * numbers.abs().amax(-1, keepdim=True)
    deviation = torch.where(is_flat, torch.ones_like(deviation), deviation)
    return torch.where(is_flat, 0.0, (numbers - mean) / deviation), mean, deviation
