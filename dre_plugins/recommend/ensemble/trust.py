"""How far a trained prior is trusted, by its ranks and the observed ones.

A prior may come from other learners, other metrics or a mistake. Its predictions, made before
anything was observed, are compared with the observed values, by every pair of trials.
"""

import math

import numpy as np

from dre_plugins.space.base import Array

# Trust is Φ((agreement - EXPECTED) / error + BENEFIT): .93 for a prior whose agreement with the
# trials (Kendall's tau) is EXPECTED, and less the more standard errors it lies below.
EXPECTED = 0.2
BENEFIT = 1.5

# Added to the sum of the weights of pairs, so that agreement counts little if the prior predicts
# almost the same rank for all trials.
LEAST_WEIGHT = 0.5


def agreement(expected: Array, ranks: Array) -> tuple[float, float]:
    """Return the prior's concordance with the observed order of trials, and its standard error.

    `expected` is the prior's rank of each trial as a share of the reference `[N]`, 0 = best;
    observed `ranks` `[N]` are larger is better. The concordance is from −1 to 1, in which a pair
    counts by how far apart the prior put it; the error is that for independent orders. Without
    comparable pairs they are 0 and infinity.
    """
    distance = expected[None, :] - expected[:, None]
    weight = np.abs(distance)
    comparable = ranks[:, None] != ranks[None, :]
    if not comparable.any():
        return 0.0, math.inf
    weight = np.where(comparable, weight, 0.0)
    # Not the sign of a difference, which is NaN for two infinities, the values of failures.
    observed = np.where(ranks[:, None] > ranks[None, :], 1.0, -1.0)
    agreeing = float((weight * np.sign(distance) * observed).sum()) / 2.0
    concordance = agreeing / (float(weight.sum()) / 2.0 + LEAST_WEIGHT)
    # Kendall's null variance, for the effective number of trials by the weights of pairs. If the
    # prior predicts the same rank for all trials, all of them count.
    share = weight.sum(1)
    n = float(len(ranks))
    if share.any():
        n = float(share.sum() ** 2 / (share**2).sum())
    n = max(n, 2.0)
    return concordance, math.sqrt(2.0 * (2.0 * n + 5.0) / (9.0 * n * (n - 1.0)))


def trust(expected: Array, ranks: Array) -> float:
    """Return how far to trust the prior, from 0 (not at all) to 1, see `agreement`."""
    concordance, error = agreement(expected, ranks)
    if math.isinf(error):
        return 1.0
    return 0.5 * math.erfc(-((concordance - EXPECTED) / error + BENEFIT) / math.sqrt(2.0))
