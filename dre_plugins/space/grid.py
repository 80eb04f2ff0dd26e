"""Evenly spaced values, held in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dre_plugins.space.base import Array, is_integer

_PLAIN = frozenset({int, float})


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
