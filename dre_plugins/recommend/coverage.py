"""How often true ranks lie within predicted intervals.

Notation: `N` predictions. Errors are in units of the standard error that was predicted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

# Probabilities of the intervals whose coverage is reported.
INTERVALS = (0.5, 0.8, 0.9)


def half_width(probability: float) -> float:
    """Return half of the width of the interval of a normal distribution, in standard errors."""
    return float(norm.ppf(0.5 + 0.5 * probability))


def covered(errors: NDArray[np.float64], probability: float) -> float:
    """Return the share of errors `[N]` that the interval of a probability holds."""
    return float((np.abs(errors) <= half_width(probability)).mean())
