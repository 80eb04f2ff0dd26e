"""What a result of Ray Tune says, whatever a trainable has put into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ray.air.constants import TRAINING_ITERATION
from ray.tune.result import TIME_TOTAL_S

from dre_plugins.recommend.trials import number_of


@dataclass(slots=True)
class Running:
    """Hold the number of a trial that has not ended, and which result of it came last."""

    number: int
    delivered: tuple[Any, Any] | None = None


def value_in(
    metric: str | list[str] | None, result: Mapping[str, Any]
) -> float | tuple[float, ...] | None:
    """Return what a result says of the metric, or of several; None if it lacks any."""
    names = [metric] if isinstance(metric, str) else list(metric or ())
    if not names or any(name not in result for name in names):
        return None
    values = tuple(number_of(result[name]) for name in names)
    return values if len(values) > 1 else values[0]


def mean_of_repeats(result: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a result if it is the mean that a `Repeater` hands on, otherwise None.

    The mean is of the repeats that did not fail, also where the last of them did. Every result of
    one trial has an iteration.
    """
    return None if result is None or TRAINING_ITERATION in result else result


def meets(criteria: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Say whether a limit of `RunConfig(stop={…})` has ended a trial, as Ray does."""
    return any(
        name in result and number_of(result[name]) >= number_of(limit)
        for name, limit in criteria.items()
    )


def mark(result: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what tells results of a trial apart, also where it began anew after a pause."""
    return result.get(TRAINING_ITERATION), result.get(TIME_TOTAL_S)


def numbers_of(value: Any) -> float | tuple[float, ...]:
    """Return a value, or the values of several objectives, as `number_of` does."""
    if isinstance(value, (list, tuple)):
        return tuple(number_of(one) for one in value)
    return number_of(value)
