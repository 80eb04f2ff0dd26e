"""The targets of the universal prior: values and normal scores of their order, in equal parts.

Values tell how flat an optimum is. Normal scores of their order limit the influence of outliers
and of values that span decades. Notation: `N` trials, larger values are better.
"""

from __future__ import annotations

import torch
from torch import Tensor


def blended(order: Tensor, values: Tensor) -> Tensor:
    """Return standardised values plus standardised normal scores of an order, standardised.

    Args:
        order: Numbers whose order counts `[..., N]`, such as the values or their ranks.
        values: Finite values of about 1 `[..., N]`.

    Returns:
        Targets `[..., N]` with mean 0 and variance 1, or zeros where all are the same.
    """
    return standardised(standardised(normal_scores(order))[0] + standardised(values)[0])[0]


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
