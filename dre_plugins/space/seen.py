"""Which configurations are not to be suggested again, and which are new.

Everything is compared in canonical units `[C, P]`, NaN where a parameter is inactive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space.base import Array, Mask, Positions
from dre_plugins.space.search_space import SearchSpace

_BLOCK = 256
# Two configurations are the same if all units differ by less: more than the rounding errors of
# encoding, see `numeric`.
SAME = 1e-9
# Stands for an inactive parameter in distances: far from all units.
_INACTIVE = -100.0


class Seen:
    """Hold configurations that may not be suggested again, and partial ones.

    A partial configuration stands for all that agree with it on some parameters: a trial of a
    define-by-run study that did not ask for the others would be the same again. `parts` has a mask
    of parameters `[P]` and canonical units `[N, P]`, of which the parameters in the mask count.
    """

    def __init__(self, parts: Sequence[tuple[Mask, Array]] = ()) -> None:
        self._parts = [(mask, _Rows(units[:, mask])) for mask, units in parts]
        self._units: list[Array] = []
        self._rows: _Rows | None = None

    @classmethod
    def of(cls, space: SearchSpace, units: Array, is_whole: Mask) -> Seen:
        """Return the configurations of trials with canonical units `[N, P]`.

        Trials in `is_whole` `[N]` stand for all configurations that agree with them.
        """
        rows = np.flatnonzero(is_whole)
        lacking = np.isnan(units[rows])
        rows = rows[(lacking & space.active(units[rows])).any(axis=1)]
        masks, mask_of = distinct_rows(~np.isnan(units[rows]))
        seen = cls([(mask, units[rows[mask_of == number]]) for number, mask in enumerate(masks)])
        seen.include(units)
        return seen

    def include(self, units: Array) -> None:
        """Add configurations, canonical units `[C, P]`."""
        self._units.append(units)
        self._rows = None

    def has(self, units: Array, step: float = SAME) -> Mask:
        """Return which canonical units `[C, P]` are within `step` of one that was seen, `[C]`.

        Within means in every unit; configurations with different active parameters differ.
        """
        if self._rows is None and self._units:
            self._rows = _Rows(np.concatenate(self._units))
        is_seen = np.zeros(len(units), dtype=np.bool_)
        if self._rows is not None:
            is_seen = self._rows.are_near(units, step)
        for mask, part in self._parts:
            is_seen |= part.are_near(units[:, mask], SAME)
        return is_seen


class _Rows:
    """Find which of many rows are near to some, canonical units `[N, P]`."""

    def __init__(self, units: Array) -> None:
        from scipy.spatial import KDTree

        self._tree = KDTree(_points(units)) if len(units) else None

    def are_near(self, units: Array, step: float) -> Mask:
        """Say which rows `[C, P]` differ from one of these by less than `step` in all units."""
        if self._tree is None or not len(units):
            return np.zeros(len(units), dtype=np.bool_)
        distance, _ = self._tree.query(_points(units), p=np.inf, distance_upper_bound=step)
        return np.asarray(distance < step)


def _points(units: Array) -> Array:
    """Return rows without NaN, and of one column at least."""
    return np.pad(np.nan_to_num(units, nan=_INACTIVE), ((0, 0), (0, 1)))


def value_numbers(units: Array) -> NDArray[np.int32]:
    """Return a number for each canonical unit `[C, P]`, equal for the same value of a parameter.

    Units of a parameter that are connected by steps below `SAME` count as one value.
    """
    columns = np.ascontiguousarray(np.nan_to_num(units, nan=_INACTIVE).T)
    order = np.argsort(columns, axis=1)
    steps = np.diff(np.take_along_axis(columns, order, axis=1), axis=1) >= SAME
    values = np.zeros(columns.shape, dtype=np.int32)
    np.put_along_axis(values, order[:, 1:], np.cumsum(steps, axis=1, dtype=np.int32), axis=1)
    return np.ascontiguousarray(values.T)


def groups(units: Array) -> list[bytes]:
    """Return one hashable key a row of canonical units `[C, P]`, equal for the same configuration.

    The keys are valid among the given rows only.
    """
    return [row.tobytes() for row in value_numbers(units)]


def distinct_rows(masks: Mask) -> tuple[Mask, Positions]:
    """Return the different rows of masks `[N, P]`, `[K, P]`, and which one each row is, `[N]`."""
    # Rows are compared as bytes: `np.unique(axis=0)` turns an exception of a signal handler into a
    # TypeError. NumPy drops zeros at the end, after which rows of one length still differ.
    keys = np.array([row.tobytes() for row in masks], dtype=np.bytes_)
    _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
    return masks[first], row_of


def distinct(units: Array, seen: Seen | None = None) -> Mask:
    """Say which rows of canonical units `[C, P]` are neither copies of earlier ones nor seen."""
    earlier: set[bytes] = set()
    is_first = np.zeros(len(units), dtype=np.bool_)
    for row, key in enumerate(groups(units)):
        is_first[row] = key not in earlier
        earlier.add(key)
    return is_first if seen is None else is_first & ~seen.has(units)


def first_new(space: SearchSpace, units: Array, seen: Seen, step: float = SAME) -> int | None:
    """Return the first row of full or canonical coordinates `[C, P]` that was not seen, if any.

    Those that differ from one seen by less than `step` are passed over as well.
    """
    for start in range(0, len(units), _BLOCK):
        block = space.canonical(units[start : start + _BLOCK])
        is_old = seen.has(block, step)
        if not is_old.all():
            return start + int(np.argmin(is_old))
    return None
