"""Which number of a trial is its cost, in any framework."""

from __future__ import annotations

import math
from typing import Any

from dre_plugins.engine.settings import require
from dre_plugins.recommend.directions import checked_cost
from dre_plugins.recommend.trials import number_of

DURATION = "duration"


def checked_cost_name(cost: object, kind: str) -> str | None:
    """Return the argument `cost` of a constructor.

    Args:
        cost: "duration", the name of a number that trials have, or None.
        kind: What that is in the framework, such as "a user attribute".

    Raises:
        ValueError: If it is something else.
    """
    is_name = cost is None or (isinstance(cost, str) and bool(cost))
    require(is_name, "cost", cost, f"'{DURATION}', the name of {kind}, or None")
    return cost if isinstance(cost, str) else None


def cost_of(value: Any) -> float | None:
    """Return a reported number as a cost; None where it is none, or not above 0."""
    number = number_of(value)
    return checked_cost(number if number > 0.0 else math.nan)
