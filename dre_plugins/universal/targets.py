"""What values look like to the universal prior: half themselves, half their order.

Values tell how flat an optimum is; normal scores of their order keep outliers and decades from
hiding all else. Notation: `N` trials, `Q` queries, larger values are better.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Scale:
    """Hold how values of one or more tasks are read, to read those of other configurations.

    Args:
        values: Values of the trials in increasing order `[..., N]`.
        scores: Their standardised normal scores `[..., N]`.
        moments: Mean and deviation of the values, and of what they become, each `[..., 1]`.
    """

    values: Tensor
    scores: Tensor
    moments: tuple[Tensor, Tensor, Tensor, Tensor]

    def targets(self, queries: Tensor) -> Tensor:
        """Return what values of other configurations are on this scale `[..., Q]`.

        Their scores lie between those of the trials around them, and end with the trials'.
        """
        mean, deviation, centre, spread = self.moments
        last = self.values.shape[-1] - 1
        above = torch.searchsorted(self.values, queries.contiguous()).clamp(min(1, last), last)
        low, high = (self.values.gather(-1, at) for at in (above - min(1, last), above))
        worse, better = (self.scores.gather(-1, at) for at in (above - min(1, last), above))
        tiny = torch.finfo(queries.dtype).tiny
        share = ((queries - low) / (high - low).clamp_min(tiny)).clamp(0.0, 1.0)
        scores = worse + share * (better - worse)
        return (scores + (queries - mean) / deviation - centre) / spread


def blended(order: Tensor, values: Tensor) -> tuple[Tensor, Scale]:
    """Return standardised values plus standardised normal scores of an order, standardised.

    Args:
        order: Numbers whose order counts `[..., N]`, such as the values or their ranks.
        values: Finite values of about 1 `[..., N]`.

    Returns:
        Targets `[..., N]` with mean 0 and variance 1, or zeros where all are the same, and how
        to read values of other configurations, if order and values agree.
    """
    scores, _, _ = standardised(normal_scores(order))
    plain, mean, deviation = standardised(values)
    targets, centre, spread = standardised(scores + plain)
    sorted_values, places = values.sort(dim=-1)
    scale = Scale(sorted_values, scores.gather(-1, places), (mean, deviation, centre, spread))
    return targets, scale


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
