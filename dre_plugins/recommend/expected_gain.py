"""What the next trials of a study are expected to gain, from its history alone.

The universal prior's processes tell the expected improvement of the best candidate. What the next
k trials of recorded studies gained grows with its square root, and nearly with their number
(lab/2026-11-24-stopping.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dre_plugins.recommend.results import valid_positions
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

# The median of so many trials says where a study began.
N_FIRST = 10
# Fitted to recorded studies: the share of ten trials, and the power of their number.
GAIN_OF_TEN = 0.5
BY_NUMBER = 0.9


@dataclass(frozen=True, slots=True)
class ExpectedGain:
    """Hold what is expected of the next trials, in the unit of the metric.

    Args:
        gain: What they gain on the best trial.
        gained: What the best trial has gained on the median of the first ten.
    """

    gain: float
    gained: float


def expected_gain(
    space: SearchSpace,
    history: Sequence[Trial],
    trials: Sequence[Trial] | None = None,
    *,
    n_ahead: int = 10,
) -> ExpectedGain | None:
    """Return what the next trials gain on average; None before ten complete, feasible trials.

    gain = ½ √(EI · gained) (k / 10)^0.9, with EI the largest expected improvement of a candidate.
    Whether candidates meet constraints is left out, so that under constraints it is too much.

    Args:
        space: The search space.
        history: The trials of one objective as they count, see `trials.as_of_now`; larger values
            are better.
        trials: The same trials as they are: those that still run have gained nothing.
        n_ahead: How many next trials, at least 1.
    """
    valid = valid_positions(history, history if trials is None else trials)
    values = [value for place in valid if math.isfinite(value := history[place].value or 0.0)]
    if len(values) < N_FIRST or not space.n_parameters:
        return None
    from dre_plugins.recommend.posterior import best_improvement  # torch: only when it is needed

    gained = max(values) - float(np.median(values[:N_FIRST]))
    improvement = best_improvement(space, history, valid)
    share = GAIN_OF_TEN * (n_ahead / 10) ** BY_NUMBER
    # Not the root of the product: that of two values of 1e-200 is none.
    return ExpectedGain(share * math.sqrt(improvement) * math.sqrt(gained), gained)
