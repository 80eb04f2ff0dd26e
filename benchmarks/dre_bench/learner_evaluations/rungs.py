"""The rungs of a learner: shares of its trees or epochs."""

from __future__ import annotations

SHARES = (1 / 27, 1 / 9, 1 / 3, 1.0)


def rungs_of(most: int) -> list[int]:
    """Give the number of trees or epochs at each rung: at least one, all of them at the last."""
    return [max(1, round(most * share)) for share in SHARES]
