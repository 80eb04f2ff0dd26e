"""The portfolio of a learner as the first trials of a study.

Its members complement each other over data sets: the best of them is good on most, whichever that
is. The fourth trial stays a point of the Sobol sequence, for studies whose names mislead
(lab/2026-11-24-portfolio.md).
"""

from __future__ import annotations

import numpy as np

from dre_plugins.space.base import Units

# Of so many suggestions the last one is no member.
SOBOL_EVERY = 4
# Members whose coordinates differ by less in all parameters are much the same trial.
APART = 0.05


def planned(members: Units, tried: Units, numbers: range) -> dict[int, Units]:
    """Return which member each suggestion is to have, by number.

    Those that are near a trial, or near an earlier member, are left out. The next suggestion has
    the first member that is left, and workers that ask at the same time have one each.

    Args:
        members: Coordinates in order `[F, P]`, NaN where nothing is said.
        tried: Coordinates of the trials that have begun `[N, P]`, NaN for inactive parameters.
        numbers: Numbers of the suggestions.
    """
    left = np.empty((0, members.shape[1]))
    for member in members:
        known = ~np.isnan(member)
        others = np.concatenate([tried, left])[:, known]
        if not (np.abs(others - member[known]) < APART).all(axis=1).any():
            left = np.concatenate([left, member[None]])
    free = [number for number in range(len(tried), numbers.stop) if not _is_sobol(number)]
    return {
        number: member for number, member in zip(free, left, strict=False) if number in numbers
    }


def _is_sobol(number: int) -> bool:
    return number % SOBOL_EVERY == SOBOL_EVERY - 1
