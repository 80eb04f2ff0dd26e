"""Checks of arguments that the constructors of several frameworks share."""

import math
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from dre_plugins.checks import is_integer, require
from dre_plugins.recommend.directions import checked_cost
from dre_plugins.recommend.prior import GivenPrior, yields_to_memory
from dre_plugins.recommend.trials import number_of

# `cost="duration"`: what a trial costs is how long it takes.
DURATION = "duration"


def check_past(name: str, past: object, prior: GivenPrior) -> None:
    """Refuse past studies, the argument `name`, and a trained prior together, by a ValueError."""
    if past is not None and not (prior is None or yields_to_memory(prior)):
        raise ValueError(
            f"prior and {name} cannot be combined: leave one of them out, or train a "
            "prior on all of it with Prior.train."
        )


def seed_from(seed: int | None, *, name: str = "seed", n_bits: int = 63) -> int:
    """Return a seed as a plain integer, drawn from the operating system if there is none."""
    if seed is None:
        return secrets.randbits(n_bits)
    require(is_integer(seed) and seed >= 0, name, seed, "a non-negative integer or None")
    return int(seed)


def checked_cost_name(cost: str | None, kind: str, duration: str = DURATION) -> str | None:
    """Return the name of what a trial costs by the argument `cost` of a constructor, or None.

    `kind` is that of the number in the framework, such as "a user attribute", and `duration` the
    framework's name of the duration.
    """
    is_name = cost is None or (isinstance(cost, str) and bool(cost))
    require(is_name, "cost", cost, f"'{DURATION}', the name of {kind}, or None")
    return duration if cost == DURATION else cost


def cost_in(
    report: Mapping[str, Any],
    name: str | None,
    trial_id: object,
    warn_once: Callable[[str, str], None],
) -> float | None:
    """Return what a trial has cost by its last report, under a name; None: no cost is wanted.

    If the report has none, `warn_once` gets a text and its topic.
    """
    cost = None if name is None else cost_from(report.get(name))
    if name is not None and cost is None:
        warn_once(
            f"The cost of trial {trial_id} is unknown: its last report has no number above 0 for "
            f"{name!r}; name another one by cost=. There are "
            f"{[key for key in report if cost_from(report[key])]}.",
            "cost",
        )
    return cost


def cost_from(value: Any) -> float | None:
    """Return a reported number as a cost; None where it is none, or not above 0."""
    number = number_of(value)
    return checked_cost(number if number > 0.0 else math.nan)
