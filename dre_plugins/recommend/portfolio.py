"""The portfolio of a learner as the first trials of a study.

Its members complement each other: on most data sets at least one of them is good. Every fourth
trial remains a point of the Sobol sequence, in case the names of the parameters mislead
(lab/2026-11-24-portfolio.md).
"""

from __future__ import annotations

import numpy as np

from dre_plugins.space.base import Units

# The last one of this many suggestions is a Sobol point.
SOBOL_EVERY = 4
# Members that differ by less than this in all coordinates count as the same trial.
APART = 0.05


def portfolio_trials(members: Units, tried: Units, numbers: range) -> dict[int, Units]:
    """Return the member for each suggestion, by number; Sobol points have none.

    Members that are near a trial or near an earlier member are left out. The others are assigned
    to suggestions in order, so that workers which ask at the same time get different ones.

    Args:
        members: Coordinates in order `[F, P]`, NaN where a member leaves a parameter open.
        tried: Coordinates of the trials that have begun `[N, P]`, NaN for inactive parameters.
        numbers: Numbers of the suggestions.
    """
    remaining = np.empty((0, members.shape[1]))
    for member in members:
        is_given = ~np.isnan(member)
        others = np.concatenate([tried, remaining])[:, is_given]
        if not (np.abs(others - member[is_given]) < APART).all(axis=1).any():
            remaining = np.concatenate([remaining, member[None]])
    free = [n for n in range(len(tried), numbers.stop) if n % SOBOL_EVERY != SOBOL_EVERY - 1]
    assigned = zip(free, remaining, strict=False)
    return {number: member for number, member in assigned if number in numbers}
