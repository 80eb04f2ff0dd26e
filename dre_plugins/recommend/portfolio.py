"""The portfolio of a learner, or of many past studies, as the first trials of a study.

Its members complement each other over data sets: the best of them is good on most, whichever that
is. The fourth trial stays a point of the Sobol sequence, for studies whose names mislead
(lab/2026-11-24-portfolio.md, lab/2026-11-24-memory-many-studies.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dre_plugins.space.base import Units

# Of so many suggestions the last one is no member.
SOBOL_EVERY = 4
# Members whose coordinates differ by less in all parameters are much the same trial.
APART = 0.05


@dataclass(frozen=True, slots=True)
class Member:
    """Hold a configuration that is to be tried."""

    units: Units  # coordinates `[P]`, NaN where nothing is said
    past_study: str | None = None  # in which it was best, if it is of the user's studies


def planned(members: Sequence[Member], tried: Units, numbers: range) -> dict[int, Member]:
    """Return which member each suggestion is to have, by number.

    Those that are near a trial, or near an earlier member, are left out. The next suggestion has
    the first member that is left, and workers that ask at the same time have one each.

    Args:
        members: The portfolio in order.
        tried: Coordinates of the trials that have begun `[N, P]`, NaN for inactive parameters.
        numbers: Numbers of the suggestions.
    """
    left: list[Member] = []
    for member in members:
        known = ~np.isnan(member.units)
        others = np.array([*tried, *(earlier.units for earlier in left)])
        others = others.reshape(-1, len(known))[:, known]
        if not (np.abs(others - member.units[known]) < APART).all(axis=1).any():
            left.append(member)
    free = [number for number in range(len(tried), numbers.stop) if not _is_sobol(number)]
    return {
        number: member for number, member in zip(free, left, strict=False) if number in numbers
    }


def _is_sobol(number: int) -> bool:
    return number % SOBOL_EVERY == SOBOL_EVERY - 1
