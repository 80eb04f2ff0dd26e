"""Which configurations are not to be suggested again, and which are new.

Everything is compared in canonical units `[C, P]`, NaN where a parameter is inactive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space.base import Array
from dre_plugins.space.search_space import SearchSpace

Mask = NDArray[np.bool_]

_BLOCK = 256
# Two configurations are the same if all units agree to this many decimals.
_KEY_DECIMALS = 9
# Stands for an inactive parameter where distances are taken: apart from all units.
_INACTIVE = -2.0


class Seen:
    """Hold configurations that are not to be suggested again, and parts of such.

    A part is what agrees with a trial on some parameters, whatever the others are: a trial of a
    define-by-run study that did not ask for them would be the same trial again.

    Args:
        parts: Masks of parameters `[P]`, each with the keys of the units within it.
    """

    def __init__(self, parts: Sequence[tuple[Mask, set[bytes]]] = ()) -> None:
        self._keys: set[bytes] = set()
        self._parts = parts
        self._units: list[Array] = []

    @classmethod
    def of(cls, space: SearchSpace, units: Array, is_whole: Mask) -> Seen:
        """Return what trials have seen.

        Args:
            space: The search space.
            units: Canonical units of their configurations `[N, P]`.
            is_whole: Which trials stand for all configurations that agree with them `[N]`.
        """
        rows = np.flatnonzero(is_whole)
        lacking = np.isnan(units[rows])
        rows = rows[(lacking & space.active(units[rows])).any(axis=1)]
        masks, mask_of = distinct_rows(~np.isnan(units[rows]))
        seen = cls(
            [
                (mask, set(keys(units[rows[mask_of == number]])))
                for number, mask in enumerate(masks)
            ]
        )
        seen.include(units)
        return seen

    def include(self, units: Array) -> None:
        """Add configurations, canonical units `[C, P]`."""
        self._keys.update(keys(units))
        self._units.append(units)

    def has(self, units: Array) -> Mask:
        """Say which configurations `[C, P]` were seen, `[C]`."""
        is_seen = np.array([key in self._keys for key in keys(units)], dtype=np.bool_)
        for mask, part_keys in self._parts:
            rows = np.flatnonzero(~is_seen)
            parts = np.where(mask, units[rows], np.nan)
            is_seen[rows] = [key in part_keys for key in keys(parts)]
        return is_seen

    def is_near(self, units: Array, step: float) -> Mask:
        """Say which configurations `[C, P]` differ from one seen by less than `step`, `[C]`.

        The difference is the largest one of all units; a parameter that only one of them has
        makes two configurations differ.
        """
        from scipy.spatial import KDTree

        if not self._units or not sum(len(part) for part in self._units):
            return np.zeros(len(units), dtype=np.bool_)
        tree = KDTree(np.nan_to_num(np.concatenate(self._units), nan=_INACTIVE))
        points = np.nan_to_num(units, nan=_INACTIVE)
        distance, _ = tree.query(points, p=np.inf, distance_upper_bound=step)
        return np.asarray(distance < step)


def keys(units: Array) -> list[bytes]:
    """Return one hashable key a row of canonical units `[C, P]`, equal iff equal to 9 decimals."""
    rounded = np.round(units, _KEY_DECIMALS) + 0.0  # no negative zeros
    rounded[np.isnan(rounded)] = np.nan  # one bit pattern for all NaN
    data, width = rounded.tobytes(), 8 * units.shape[1]
    return [data[row * width : (row + 1) * width] for row in range(len(units))]


def distinct_rows(masks: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """Return the different rows of masks `[N, P]`, `[K, P]`, and which one each row is, `[N]`."""
    packed = [row.tobytes() for row in masks]
    place_of = {row: place for place, row in enumerate(dict.fromkeys(packed))}
    rows = np.frombuffer(b"".join(place_of), dtype=np.bool_).reshape(len(place_of), masks.shape[1])
    return rows, np.array([place_of[row] for row in packed], dtype=np.intp)


def distinct(units: Array, seen: Seen | None = None) -> Mask:
    """Say which rows of canonical units `[C, P]` are no copies of earlier ones, `[C]`.

    Args:
        units: The rows.
        seen: Configurations that are not to be among them either.
    """
    earlier: set[bytes] = set()
    is_first = np.zeros(len(units), dtype=np.bool_)
    for row, key in enumerate(keys(units)):
        is_first[row] = key not in earlier
        earlier.add(key)
    return is_first if seen is None else is_first & ~seen.has(units)


def first_new(space: SearchSpace, units: Array, seen: Seen, step: float = 0.0) -> int | None:
    """Return the first row of coordinates `[C, P]` that was not seen, if any.

    Args:
        space: The search space.
        units: Coordinates, full or canonical.
        seen: Configurations to pass over.
        step: Those that differ from one seen by less than this are passed over as well.
    """
    for start in range(0, len(units), _BLOCK):
        block = space.canonical(units[start : start + _BLOCK])
        is_old = seen.has(block)
        if step:
            is_old |= seen.is_near(block, step)
        if not is_old.all():
            return start + int(np.argmin(is_old))
    return None
