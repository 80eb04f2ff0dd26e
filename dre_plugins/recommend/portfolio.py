"""The portfolio of a learner as the first trials of a study.

Its members complement each other over data sets: the best of them is good on most, whichever it is
(lab/2026-11-24-portfolio.md).
"""

from __future__ import annotations

import numpy as np

from dre_plugins.space.base import Units

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
    places = {number: number - len(tried) for number in numbers}
    return {number: left[place] for number, place in places.items() if 0 <= place < len(left)}
