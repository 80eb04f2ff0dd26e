"""A parameter of a learner, and configurations as points of the unit cube."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

Value = float | int | str
Configuration = dict[str, Value]

FLOAT, INTEGER, CATEGORY = "float", "integer", "category"


@dataclass(frozen=True)
class Parameter:
    """A parameter with its range and the value that the library takes by default.

    Attributes:
        name: what the library calls it.
        kind: `float`, `integer` or `category`.
        low: lower end of the range, included; None for a category.
        high: upper end of the range, included; None for a category.
        log: whether the range is searched on a logarithmic scale.
        choices: the choices of a category.
        default: the library's default; None where it depends on the data, and the evaluation
            of the default configuration says what it was.
        parent: the category that decides whether this parameter is active; None: always active.
        parent_values: the choices of `parent` with which it is active.
    """

    name: str
    kind: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[str, ...] = ()
    default: Value | None = None
    parent: str | None = None
    parent_values: tuple[str, ...] = ()

    def is_active(self, configuration: Mapping[str, Value]) -> bool:
        """Say whether the parameter has a meaning beside the values of its parents."""
        return self.parent is None or configuration.get(self.parent) in self.parent_values

    def from_unit(self, unit: float) -> Value:
        """Convert a coordinate in [0, 1] to a value."""
        if self.kind == CATEGORY:
            return self.choices[min(int(unit * len(self.choices)), len(self.choices) - 1)]
        low, high = self._edges()
        if self.log:
            value = math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            value = low + unit * (high - low)
        assert self.low is not None and self.high is not None
        value = min(max(value, self.low), self.high)
        return min(max(round(value), int(self.low)), int(self.high)) if self._whole else value

    def to_unit(self, value: Value) -> float:
        """Convert a value to its coordinate in [0, 1]; a choice to the middle of its interval."""
        if self.kind == CATEGORY:
            return (self.choices.index(str(value)) + 0.5) / len(self.choices)
        low, high = self._edges()
        number = float(value)
        if self.log:
            unit = (math.log(number) - math.log(low)) / (math.log(high) - math.log(low))
        else:
            unit = (number - low) / (high - low)
        return min(max(unit, 0.0), 1.0)

    @property
    def _whole(self) -> bool:
        return self.kind == INTEGER

    def _edges(self) -> tuple[float, float]:
        """Ends of the range; half a step wider for integers, so that all are equally likely."""
        assert self.low is not None and self.high is not None
        margin = 0.5 if self._whole else 0.0
        return self.low - margin, self.high + margin


Space = tuple[Parameter, ...]


def number(
    name: str, low: float, high: float, default: float | None, *, log: bool = True, **parent: Any
) -> Parameter:
    """Make a real parameter."""
    return Parameter(name, FLOAT, float(low), float(high), log, default=default, **parent)


def integer(
    name: str, low: int, high: int, default: int | None, *, log: bool = True, **parent: Any
) -> Parameter:
    """Make a whole-numbered parameter."""
    return Parameter(name, INTEGER, low, high, log, default=default, **parent)


def category(name: str, choices: Sequence[str], default: str | None, **parent: Any) -> Parameter:
    """Make a categorical parameter."""
    return Parameter(name, CATEGORY, choices=tuple(choices), default=default, **parent)


def decode(space: Space, unit: Sequence[float]) -> Configuration:
    """Convert a point `[D]` of the unit cube to a configuration of its active parameters.

    A parent stands before its children in the space.
    """
    configuration: Configuration = {}
    for parameter, coordinate in zip(space, unit, strict=True):
        if parameter.is_active(configuration):
            configuration[parameter.name] = parameter.from_unit(float(coordinate))
    return configuration


def encode(space: Space, configuration: Mapping[str, Value]) -> np.ndarray:
    """Convert a configuration to unit coordinates `[D]`; NaN where a parameter is inactive."""
    return np.array(
        [p.to_unit(configuration[p.name]) if p.name in configuration else math.nan for p in space]
    )


def to_row(space: Space, configuration: Mapping[str, Value]) -> np.ndarray:
    """Convert a configuration to numbers `[D]`: values, indices of choices, NaN if inactive."""
    row = np.full(len(space), math.nan)
    for index, parameter in enumerate(space):
        if parameter.name in configuration:
            value = configuration[parameter.name]
            row[index] = (
                parameter.choices.index(str(value)) if parameter.kind == CATEGORY else float(value)
            )
    return row


def from_row(space: Space, row: Sequence[float]) -> Configuration:
    """Convert raw numbers `[D]` back to a configuration."""
    configuration: Configuration = {}
    for parameter, value in zip(space, row, strict=True):
        if math.isnan(value):
            continue
        if parameter.kind == CATEGORY:
            configuration[parameter.name] = parameter.choices[round(value)]
        else:
            configuration[parameter.name] = (
                round(value) if parameter.kind == INTEGER else float(value)
            )
    return configuration


def to_json(space: Space) -> list[dict[str, Any]]:
    """Describe a space in the types of JSON."""
    return [
        {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(p).items()
        }
        for p in space
    ]


def from_json(entries: Sequence[Mapping[str, Any]]) -> Space:
    """Read a space from what `to_json` wrote."""
    names = {field.name for field in fields(Parameter)}
    return tuple(
        Parameter(
            **{
                key: tuple(value) if isinstance(value, list) else value
                for key, value in entry.items()
                if key in names
            }
        )
        for entry in entries
    )
