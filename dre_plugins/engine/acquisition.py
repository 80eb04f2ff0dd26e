"""Acquisition functions on ranks (section 3.4 of the paper): larger = evaluate sooner.

Each takes the ranks `[M, C]` of the candidates and the ranks `[M]` of the incumbent, the best
configuration observed so far, and returns `[C]`. Ranks: 1 = best.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

# Rank units. Members that agree exactly still leave a little doubt, so that no acquisition
# divides by zero; a hundredth of a rank changes no order that members disagree about.
MIN_SPREAD = 0.01

# Scale of log-ranks, on which MIN_SPREAD is as negligible as it is for ranks.
LOG_RANK_SCALE = 10.0


def rank_statistics(ranks: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation over members of ranks `[M, C]`, each `[C]`."""
    mean = ranks.mean(0)
    # Not `ranks.std(0)`: along the first axis that takes thirteen times as long.
    return mean, (ranks - mean).square_().mean(0).sqrt_().clamp_min_(MIN_SPREAD)


def _normal_cdf(z: Tensor) -> Tensor:
    return 0.5 * torch.erfc(-z / math.sqrt(2.0))


def normal_density(z: Tensor) -> Tensor:
    """Return the density of the standard normal distribution."""
    return torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def expected_improvement(ranks: Tensor, incumbent: Tensor) -> Tensor:
    """Return the expected number of ranks gained on the incumbent, for normal ranks.

    EI = (r* − μ) Φ(u) + σ φ(u) with u = (r* − μ) / σ, r* the mean rank of the incumbent.
    """
    mean, spread = rank_statistics(ranks)
    gain = incumbent.mean() - mean
    u = gain / spread
    return gain * _normal_cdf(u) + spread * normal_density(u)


def log_rank_expected_improvement(ranks: Tensor, incumbent: Tensor) -> Tensor:
    """Return the expected improvement of the logarithm of the rank.

    An improvement from rank 2 to 1 counts as much as one from 200 to 100. With plain ranks, a
    candidate whose rank may be anywhere between 1 and 150 has a larger expected improvement than
    one that is certain to be slightly better than the incumbent, so that late in a study nothing
    is refined (docs/decisions/log-rank-improvement.md).
    """
    return expected_improvement(LOG_RANK_SCALE * ranks.log(), LOG_RANK_SCALE * incumbent.log())


def probability_of_improvement(ranks: Tensor, incumbent: Tensor) -> Tensor:
    """Return the probability `[C]` that a candidate ranks before the incumbent."""
    mean, spread = rank_statistics(ranks)
    return _normal_cdf((incumbent.mean() - mean) / spread)


def lower_confidence_bound(ranks: Tensor, incumbent: Tensor, beta: float = 0.1) -> Tensor:
    """Return −(μ − β σ) `[C]`: optimism in the face of disagreement, β as published."""
    mean, spread = rank_statistics(ranks)
    return beta * spread - mean


def average_rank(ranks: Tensor, incumbent: Tensor) -> Tensor:
    """Return −μ `[C]`: exploit only."""
    return -ranks.mean(0)


def thompson(ranks: Tensor, incumbent: Tensor) -> Tensor:
    """Return minus the ranks `[C]` of the first member: a draw from the posterior.

    Every suggestion starts from new random weights, so its first member is a new draw.
    """
    return -ranks[0]


Acquisition = Callable[[Tensor, Tensor], Tensor]

ACQUISITIONS: Mapping[str, Acquisition] = {
    "log-rank-ei": log_rank_expected_improvement,
    "ei": expected_improvement,
    "pi": probability_of_improvement,
    "lcb": lower_confidence_bound,
    "average-rank": average_rank,
    "thompson": thompson,
}
