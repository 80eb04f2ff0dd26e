"""Domains that list their values: `Categorical`, `Ordinal` and `Constant`."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from dre_plugins.space.base import (
    Array,
    Domain,
    UnsupportedDomainError,
    fill,
    match_key,
    match_keys,
)
from dre_plugins.space.ranges import are_finite

# Up to this many choices are one-hot. More choices share this many columns of random signs, which
# are nearly as far from each other as one-hot rows. So one parameter of 400 choices does not make
# models read a sketch of all features, which is worse; with 50 and 120 choices the two are level
# (lab/2026-11-30-candidates-and-choices.md).
MAX_ONE_HOT = 32
_CODE_SEED = 20230501


@dataclass(frozen=True, slots=True)
class _Listed(Domain):
    """A domain that holds its values; equal by type and value of each of them."""

    is_ordered = False
    _values: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _keys: tuple[Hashable, ...] = field(init=False, repr=False)
    _bin_of: dict[Hashable, int] = field(init=False, repr=False, compare=False)

    def _list(self, values: tuple[Any, ...]) -> None:
        keys = tuple(match_key(value) for value in values)
        bin_of = {key: index for index, key in enumerate(keys)}
        if not values:
            raise UnsupportedDomainError("there are no values to choose from; list at least one.")
        if len(bin_of) < len(values):
            first = next(value for i, value in enumerate(values) if bin_of[keys[i]] != i)
            raise UnsupportedDomainError(f"{first!r} is listed twice; list every value once.")
        fill(self, _values=values, _keys=keys, _bin_of=bin_of)

    @property
    def n_values(self) -> int:
        return len(self._keys)

    def contains(self, value: object) -> bool:
        return match_key(value) in self._bin_of

    def to_units(self, values: Sequence[Any]) -> Array:
        bin_of = self._bin_of
        try:
            index = [bin_of[key] for key in match_keys(values)]
        except KeyError:
            unknown = next(value for value in values if not self.contains(value))
            raise ValueError(f"{unknown!r} is not one of {list(self._values)!r}.") from None
        return self.centres(np.array(index, dtype=np.float64))

    def from_units(self, units: Array) -> list[Any]:
        return [self._values[int(index)] for index in self.index(units).tolist()]


@dataclass(frozen=True, slots=True)
class Categorical(_Listed):
    """Values without an order, matched by type and value (`True`, `1` and `1.0` differ).

    Args:
        choices: Any Python values, hashable or not, each listed once.

    Raises:
        UnsupportedDomainError: If there are no choices, or one is listed twice.
    """

    choices: tuple[Any, ...] = field(compare=False)

    def __post_init__(self) -> None:
        fill(self, choices=_as_tuple("choices", self.choices))
        self._list(self.choices)

    @property
    def n_features(self) -> int:
        return min(len(self.choices), MAX_ONE_HOT)

    def features(self, units: Array) -> Array:
        """Return one-hot rows, or sign codes beyond `MAX_ONE_HOT` choices; zeros where missing."""
        return self.looked_up(units, _codes(len(self.choices)))


@lru_cache(maxsize=64)
def _codes(n: int) -> Array:
    """Return one row of features for each of `n` categories and a row of zeros, `[n + 1, ...]`."""
    if n <= MAX_ONE_HOT:
        rows = np.eye(n)
    else:  # rows are drawn in turn, so that a category's code depends on its index only
        signs = np.random.default_rng(_CODE_SEED).random((n, MAX_ONE_HOT)) < 0.5
        rows = np.where(signs, 1.0, -1.0) / math.sqrt(MAX_ONE_HOT)
    codes = np.vstack([rows, np.zeros(rows.shape[1])])
    codes.flags.writeable = False
    return codes


@dataclass(frozen=True, slots=True)
class Ordinal(_Listed):
    """Values in order, which are one feature of the surrogate.

    Random draws of all values are equally likely; the spacing only affects the feature.

    Args:
        values: The values from lowest to highest, each listed once.
        spacing: "equal" by position, "linear" by value, or "log" by the value's logarithm.

    Raises:
        UnsupportedDomainError: If there are no values, one is listed twice, or they are not the
            increasing numbers that the spacing needs.
    """

    is_ordered = True
    values: tuple[Any, ...] = field(compare=False)
    spacing: str = "equal"

    def __post_init__(self) -> None:
        fill(self, values=_as_tuple("values", self.values))
        self._list(self.values)
        if self.spacing not in ("equal", "linear", "log"):
            raise UnsupportedDomainError(
                f"spacing must be 'equal', 'linear' or 'log', got {self.spacing!r}."
            )
        if self.spacing != "equal" and not _increasing_numbers(self.values):
            raise UnsupportedDomainError(
                f"spacing {self.spacing!r} needs finite numbers in increasing order, "
                f"got {list(self.values)!r}; sort them or use spacing='equal'."
            )
        if self.spacing == "log" and self.values[0] <= 0:
            raise UnsupportedDomainError(
                f"spacing 'log' needs positive values, got {self.values[0]!r}; use 'linear'."
            )
        if self.spacing != "equal" and len(self.values) > 1:
            places = self._places().tolist()
            if not 0 < places[-1] - places[0] < math.inf:
                raise UnsupportedDomainError(
                    f"{list(self.values)!r} is too wide or too narrow for floats; use 'equal'."
                )

    def features(self, units: Array) -> Array:
        """Return one column from 0 (first value) to 1 (last value), 0.5 where missing."""
        if self.spacing == "equal" or len(self.values) == 1:
            return Domain.features(self, units)
        places = self._places()
        places = np.append((places - places[0]) / (places[-1] - places[0]), 0.5)
        return self.looked_up(units, places)[:, None]

    def _places(self) -> Array:
        """Return where the values lie on the scale of a spacing that is not equal."""
        numbers = np.array(self.values, dtype=np.float64)
        return np.log(numbers) if self.spacing == "log" else numbers

    def unit_interval(self, low: Any | None, high: Any | None) -> tuple[float, float]:
        reach = 0.25 / len(self.values)
        first = -math.inf if low is None else self.to_unit(low) - reach
        last = math.inf if high is None else self.to_unit(high) + reach
        return first, last


@dataclass(frozen=True, slots=True)
class Constant(_Listed):
    """A value that is part of every configuration and is not searched."""

    value: Any = field(compare=False)

    def __post_init__(self) -> None:
        self._list((self.value,))

    @property
    def n_features(self) -> int:
        return 0

    def features(self, units: Array) -> Array:
        return np.empty((len(units), 0))


def ordered_choices(choices: Iterable[Any], name: str = "") -> Domain:
    """Return `Ordinal` for two or more numbers in increasing order, else `Categorical`.

    The numbers 0, 1, 2, … of a parameter whose name ends in "idx" or "index" are positions in a
    list, such as those of mlforecast, and have no order (lab/2026-11-28-studies-of-pipelines.md).

    >>> ordered_choices([16, 32, 64])
    Ordinal(values=(16, 32, 64), spacing='equal')
    >>> ordered_choices(["adam", "sgd"])
    Categorical(choices=('adam', 'sgd'))
    >>> ordered_choices(range(3), "lags_idx")
    Categorical(choices=(0, 1, 2))
    """
    values = _as_tuple("choices", choices)
    is_ordered = len(values) >= 2 and _increasing_numbers(values)
    if is_ordered and name.lower().endswith(("idx", "index")):
        is_ordered = values != tuple(range(len(values)))
    return Ordinal(values) if is_ordered else Categorical(values)


def _increasing_numbers(values: tuple[Any, ...]) -> bool:
    return are_finite(values) and all(low < high for low, high in pairwise(values))


def _as_tuple(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise UnsupportedDomainError(f"{name} must be a list of values, got {values!r}.")
    return tuple(values)
