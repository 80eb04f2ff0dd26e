"""The parts of a range of numbers: checked bounds, warps, and grids.

A warp is a monotone map of values to a scale on which draws are uniform. A grid holds evenly
spaced values in exact integers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from dre_plugins.checks import is_integer, is_real
from dre_plugins.space.base import Array, UnsupportedDomainError

MAX_FLOAT = sys.float_info.max
# Beyond, the distribution function of the normal distribution cannot tell values apart.
_TAIL = 1e-15
_PLAIN = frozenset({int, float})


class Warp(Protocol):
    def forward(self, values: Array) -> Array: ...

    def inverse(self, positions: Array) -> Array: ...


class Linear:
    def forward(self, values: Array) -> Array:
        return values

    def inverse(self, positions: Array) -> Array:
        return positions


class Log:
    def forward(self, values: Array) -> Array:
        # Values that are not positive lie below every range.
        return np.log(np.maximum(values, np.finfo(float).tiny))

    def inverse(self, positions: Array) -> Array:
        return np.exp(positions)


class ReverseLog:
    def forward(self, values: Array) -> Array:
        # Values of at least 1 lie above every range.
        below = np.minimum(values, 1.0 - np.finfo(float).epsneg)
        return -np.where(below < 0.5, np.log1p(-below), np.log(1.0 - below))

    def inverse(self, positions: Array) -> Array:
        # NumPy's expm1 may be some floats off, which near 1 are far apart.
        return np.where(positions < 0.5, -np.expm1(-positions), 1.0 - np.exp(-positions))


@dataclass(frozen=True, slots=True)
class Gaussian:
    mean: float
    sd: float

    def forward(self, values: Array) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr((values - self.mean) / self.sd), dtype=np.float64)

    def inverse(self, positions: Array) -> Array:
        from scipy.special import ndtri

        inside = np.minimum(np.maximum(positions, _TAIL), 1.0 - _TAIL)
        return self.mean + self.sd * np.asarray(ndtri(inside), dtype=np.float64)


WARPS: dict[str, Warp] = {"linear": Linear(), "log": Log(), "reverse-log": ReverseLog()}


@dataclass(frozen=True, slots=True)
class Grid:
    """The `n` values `(first + k * stride) / divisor`, in exact integers."""

    first: int
    stride: int
    divisor: int
    n: int

    @classmethod
    def of_floats(cls, low: float, high: float, step: float) -> Grid:
        """Return the grid of the decimals that the user wrote: 0.3, not 0.30000000000000004."""
        numbers = [Decimal(repr(number)) for number in (low, high, step)]
        digits = max(0, *(-int(number.as_tuple().exponent) for number in numbers))
        first, last, stride = (int(number.scaleb(digits)) for number in numbers)
        return cls(first, stride, 10**digits, (last - first) // stride + 1)

    @property
    def low(self) -> float:
        return self.first / self.divisor

    @property
    def high(self) -> float:
        return (self.first + (self.n - 1) * self.stride) / self.divisor

    @property
    def step(self) -> float:
        return self.stride / self.divisor

    def steps(self, values: Sequence[Any]) -> Array:
        """Return how many steps each value lies above the first, `[N]`."""
        if self.divisor == 1:  # subtract before rounding to floats: integers may exceed 2**53
            if _PLAIN.issuperset(map(type, values)):
                above = [value - self.first for value in values]
            else:
                above = [(int(v) if is_integer(v) else float(v)) - self.first for v in values]
            return np.array(above, dtype=np.float64) / self.stride
        return (np.array(values, dtype=np.float64) - self.low) / self.step

    def nearest(self, value: Any) -> int:
        """Return the index of the value nearest to `value`, exact and not clipped to the grid."""
        exact = Fraction(int(value) if is_integer(value) else float(value))
        return round((exact * self.divisor - self.first) / self.stride)


def is_finite(value: Any) -> bool:
    """Say whether a value is a number that a float can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    # One comparison refuses NaN, infinities and integers beyond the floats.
    return is_real(value) and bool(abs(value) <= MAX_FLOAT)


def are_finite(values: Sequence[Any]) -> bool:
    """Say whether `is_finite` holds for each value; for plain numbers without a call for each."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return bool(np.isfinite(np.array(values)).all())
    if kinds == {int}:
        return bool(-MAX_FLOAT <= min(values) and max(values) <= MAX_FLOAT)
    return all(map(is_finite, values))


def finite(name: str, value: Any) -> float:
    """Return a finite number as a float."""
    if not is_finite(value):
        raise UnsupportedDomainError(
            f"{name} must be a finite number, got {value!r}; give finite bounds."
        )
    return float(value)


def positive(name: str, value: Any) -> float:
    """Return a positive finite number as a float."""
    if not is_finite(value) or value <= 0:
        raise UnsupportedDomainError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def check_order(low: float, high: float) -> None:
    """Refuse bounds in the wrong order."""
    if low > high:
        raise UnsupportedDomainError(
            f"low must not exceed high, got low={low!r}, high={high!r}; swap them."
        )


def check_scale(scale: object, low: float, scales: tuple[str, ...]) -> Warp:
    if scale not in scales:
        raise UnsupportedDomainError(f"scale must be one of {scales}, got {scale!r}.")
    if scale == "log" and low <= 0:
        raise UnsupportedDomainError(
            f"scale 'log' needs low > 0, got low={low!r}; raise low or use scale='linear'."
        )
    return WARPS[str(scale)]
