"""The interface of domains, and the rule by which values are matched.

Units are float64 coordinates in ``[0, 1]`` (see ``docs/architecture.md``); NaN means "no value
here" and passes through every vectorised method.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import eq
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Units: TypeAlias = Array  # coordinates of configurations; any other numbers are an `Array`
Mask: TypeAlias = NDArray[np.bool_]
Positions: TypeAlias = NDArray[np.intp]
Features: TypeAlias = NDArray[np.float32]

# Units of values observed outside the present range are clipped to so many widths of the range.
FARTHEST = 9.0
# Features of such values are clipped to these bounds, unless a space spans them.
UNIT_MIN, UNIT_MAX = -1.0, 2.0
# Slack of comparisons between canonical units: those of one value agree to rounding errors, those
# of two values differ by more.
SLACK = 1e-10


class UnsupportedDomainError(ValueError):
    """A domain that cannot be searched: the message names the value and the remedy."""


@contextmanager
def naming_parameter(name: str) -> Iterator[None]:
    """Prefix the message of an UnsupportedDomainError with the name of the parameter."""
    try:
        yield
    except UnsupportedDomainError as error:
        raise UnsupportedDomainError(f"Parameter {name!r}: {error}") from error


class Domain(ABC):
    """The set of values of one parameter, laid out on the unit interval.

    A domain with finitely many values is a row of bins: ``index`` finds the bin of a unit,
    ``centres`` the canonical unit of a bin. By default all bins have the same width.
    """

    __slots__ = ()

    # Whether a small step in units is a small change of the value.
    is_ordered: ClassVar[bool]

    @property
    @abstractmethod
    def n_values(self) -> int | None:
        """Return the number of distinct values, or None if they cannot be counted."""

    @property
    def is_binned(self) -> bool:
        """Say whether units snap to the centres of bins."""
        return self.n_values is not None

    @property
    def n_features(self) -> int:
        """Return the number of columns that `features` gives."""
        return 1

    @abstractmethod
    def contains(self, value: object) -> bool:
        """Say whether `value` has the right type, is in range and is on the grid."""

    @abstractmethod
    def to_units(self, values: Sequence[Any]) -> Array:
        """Return the canonical units of `values`, `[N]`.

        Numbers out of range extrapolate, clipped to `[-9, 10]`. A ValueError says that a value can
        never belong to the domain.
        """

    @abstractmethod
    def from_units(self, units: Array) -> list[Any]:
        """Return the values at `units` `[N]` (clipped to `[0, 1]`) as plain Python objects.

        A ValueError says that a unit is NaN.
        """

    def from_unit(self, unit: float) -> Any:
        """Return the value at one unit, see `from_units`."""
        return self.from_units(np.array([unit], dtype=np.float64))[0]

    def to_unit(self, value: Any) -> float:
        """Return the canonical unit of one value, see `to_units`."""
        return float(self.to_units([value])[0])

    def all_values(self) -> list[Any]:
        """Return all values of a finite domain, in order."""
        index = np.arange(self.n_values or 0, dtype=np.float64)
        return self.from_units(self.centres(index))

    def index(self, units: Array) -> Array:
        """Return the bin of each unit, `[C]` -> `[C]`, as whole floats so that NaN can pass."""
        n = float(self._n_bins())  # of integers beyond 64 bits NumPy 1 makes objects
        return np.minimum(np.maximum(np.floor(units * n), 0.0), n - 1.0)

    def centres(self, index: Array) -> Array:
        """Return the canonical unit of each bin, `[C]` -> `[C]`."""
        return (index + 0.5) / self._n_bins()

    def looked_up(self, units: Array, table: Array) -> Array:
        """Return the row of each unit's bin, `[C]` -> `[C, …]`; the last row is for NaN."""
        index = self.index(units)
        return table[np.where(np.isnan(index), len(table) - 1, index).astype(np.intp)]

    def snap(self, units: Array) -> Array:
        """Return the canonical units of the values that `from_unit` would give, `[C]` -> `[C]`."""
        if self.is_binned:
            return self.centres(self.index(units))
        return np.minimum(np.maximum(units, 0.0), 1.0)

    def features(self, units: Array) -> Array:
        """Return the features of canonical units, `[C]` -> `[C, n_features]`.

        By default it is one column, with 0 for the lowest value, 1 for the highest and 0.5 for a
        missing one.
        """
        if self.n_values == 1:
            return np.full((len(units), 1), 0.5)
        first, last = 0.0, 1.0
        if self.is_binned:
            first, last = self.centres(np.array([0.0, self._n_bins() - 1.0])).tolist()
        return spanned(units, first, last)[:, None]

    def unit_interval(self, low: Any | None, high: Any | None) -> tuple[float, float]:
        """Return the canonical units between which a value lies within `[low, high]`.

        A ValueError says that values have no order, or that a bound cannot be compared with them.
        """
        raise ValueError(f"{self!r} has no order, so no range; list the values instead.")

    def _n_bins(self) -> int:
        if self.n_values is None:
            raise TypeError(f"{self!r} has no bins.")
        return self.n_values


def spanned(units: Array, first: float, last: float) -> Array:
    """Return units as a feature: 0 at `first`, 1 at `last`, 0.5 where missing, `[C]` -> `[C]`."""
    feature = np.minimum(np.maximum((units - first) / (last - first), UNIT_MIN), UNIT_MAX)
    return np.where(np.isnan(feature), 0.5, feature)


def fill(instance: Any, **fields: Any) -> None:
    """Set fields of a frozen dataclass; for use inside its `__post_init__` only."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


_PLAIN = frozenset({bool, int, str, bytes, type(None)})


def match_key(value: Any) -> Hashable:
    """Return a key that is equal for two values iff they match by type and value.

    `True`, `1` and `1.0` are three values, NaN equals NaN, containers are compared item by item
    and NumPy's scalars count as the Python numbers that they hold.

    >>> match_key(1) == match_key(True), match_key([1, 2]) == match_key([1, 2])
    (False, True)
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, np.generic):
        item = value.item()
        return (kind, item) if isinstance(item, np.generic) else match_key(item)
    if kind is float:
        return kind, (value if value == value else "nan")
    if kind in (list, tuple):
        return kind, tuple(match_key(item) for item in value)
    if kind is dict:
        return kind, frozenset((match_key(key), match_key(item)) for key, item in value.items())
    try:
        hash(value)
    except TypeError:
        return kind, _ByEquality(value)
    return kind, value


def match_keys(values: Sequence[Any]) -> list[Hashable]:
    """Return the `match_key` of each value."""
    kinds = [*map(type, values)]
    is_plain = _PLAIN.union({float}).issuperset(kinds)
    if is_plain and all(map(eq, values, values)):  # only NaN is not equal to itself
        return [*zip(kinds, values, strict=True)]
    return [match_key(value) for value in values]


def distinct_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return every value once, in order of first appearance; `1` and `True` are two values."""
    first: dict[Hashable, Any] = {}
    for value in values:
        first.setdefault(match_key(value), value)
    return tuple(first.values())


class _ByEquality:
    """Wrap an unhashable object, which may be an array, as a dictionary key."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ByEquality):
            return NotImplemented
        ours, theirs = self.value, other.value
        # Arrays of different shapes cannot be compared by `==`.
        is_alike = getattr(ours, "shape", None) == getattr(theirs, "shape", None)
        return ours is theirs or (is_alike and bool(np.all(ours == theirs)))
