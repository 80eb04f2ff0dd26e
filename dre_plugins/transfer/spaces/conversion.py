"""How the units of one domain become those of another one: by value, never by position.

Everything is laid out once for a pair of domains, so that thousands of units are a few NumPy
operations. NaN means "no value here": it passes, and a value that the other domain cannot place
becomes NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, Normal, Ordinal
from dre_plugins.space.base import UNIT_MAX, UNIT_MIN, Array, is_real, match_key
from dre_plugins.space.conditions import listed_values
from dre_plugins.transfer.spaces.prefixes import Change

Number: TypeAlias = Float | Integer | Normal

# Numbers are the same value if they agree to this share: a scale may have rounded one of them.
_SAME_NUMBER = 1e-9
# Values that a difference names at most.
_MOST_LISTED = 5


def conversion(source: Domain, target: Domain, change: Change | None = None) -> Change | None:
    """Return how units of `source` become units of `target`; None without a value in common.

    Two domains of numbers always have one, since numbers beyond a range extrapolate.

    Args:
        change: What numbers of the source are in the target, see `prefixes`.
    """
    if change is None and source == target:
        return np.asarray
    if isinstance(source, Number):
        places = number_places(target)
        return None if places is None else partial(_by_number, source, places, change)
    values = listed_values(source)
    table = placed(values if change is None else change(_numbers(values)).tolist(), target)
    return None if np.isnan(table).all() else partial(_by_table, source, table)


def placed(values: Sequence[Any], target: Domain) -> Array:
    """Return the units of `values` in `target`, `[N]`; NaN where it has no place for one.

    A listed value is looked for by type and value, then leniently (`1`, `1.0` and `"1"` agree, and
    so do "Adam" and "adam") if that is unambiguous on both sides, then as a number.
    """
    units = np.full(len(values), np.nan)
    places = number_places(target)
    if places is not None and target.is_ordered:
        units = places(_numbers(values))
    if isinstance(target, Number):
        return units
    listed = listed_values(target)
    exact = {match_key(value): index for index, value in enumerate(listed)}
    plain = {_plain(value): index for index, value in enumerate(listed)}
    often = Counter(_plain(value) for value in values)
    often_listed = Counter(_plain(value) for value in listed)
    for row, value in enumerate(values):
        key = _plain(value)
        index = exact.get(match_key(value))
        if index is None and often[key] == often_listed[key] == 1:
            index = plain[key]
        if index is not None:
            units[row] = target.centres(np.array([float(index)]))[0]
    return units


def number_places(domain: Domain) -> Change | None:
    """Return how numbers become units of `domain`, NaN where it has no place; None if it has none.

    Args:
        domain: What the numbers are to be placed in.
    """
    if isinstance(domain, Number):
        return domain.number_units
    numbers = _numbers(listed_values(domain))
    if np.isnan(numbers).all():
        return None
    if isinstance(domain, Ordinal) and len(numbers) > 1:
        if all(low < high for low, high in pairwise(numbers.tolist())):
            return partial(_between, numbers, domain.spacing, 1.0)
        if all(low > high for low, high in pairwise(numbers.tolist())):
            return partial(_between, -numbers, "equal", -1.0)
    return partial(_exactly, numbers)


def _by_number(source: Number, places: Change, change: Change | None, units: Array) -> Array:
    numbers = source.numbers(units)
    if change is None:
        return places(numbers)
    changed = change(numbers)
    return np.where(np.isnan(changed), np.nan, places(np.nan_to_num(changed)))


def _by_table(source: Domain, table: Array, units: Array) -> Array:
    """Look the unit of each listed value up; `table` `[n]` has one for each bin."""
    index = source.index(units)
    rows = np.where(np.isnan(index), len(table), index).astype(np.intp)
    return np.append(table, np.nan)[rows]


def _between(listed: Array, spacing: str, sign: float, numbers: Array) -> Array:
    """Interpolate between the numbers of an ordinal domain, and go on beyond the ends.

    Args:
        listed: The numbers times `sign`, increasing `[n]`.
        spacing: "log" interpolates between logarithms.
        sign: −1 for a domain whose numbers decrease.
        numbers: What to place `[N]`.
    """
    points, places = listed, sign * numbers
    if spacing == "log":
        points, places = (np.log(np.maximum(x, np.finfo(float).tiny)) for x in (points, places))
    n = len(points)
    below = np.clip(np.searchsorted(points, places, side="right") - 1, 0, n - 2)
    share = (places - points[below]) / (points[below + 1] - points[below])
    units = (below + share + 0.5) / n
    return np.minimum(np.maximum(units, UNIT_MIN), UNIT_MAX)


def _exactly(listed: Array, numbers: Array) -> Array:
    """Find numbers among listed ones `[n]`, of which some may be NaN."""
    units = np.full(numbers.shape, np.nan)
    for index in np.flatnonzero(~np.isnan(listed))[::-1]:  # the first one has the last word
        reach = _SAME_NUMBER * max(1.0, abs(listed[index]))
        units[np.abs(numbers - listed[index]) <= reach] = (index + 0.5) / len(listed)
    return units


def _numbers(values: Sequence[Any]) -> Array:
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    """Return a number, or a string that reads as one, as a float; NaN for anything else."""
    if not is_real(value) and not isinstance(value, str):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _plain(value: Any) -> Hashable:
    """Return what is left of a value without its type, and of a string without its case."""
    number = _number(value)
    if not math.isnan(number):
        return f"{number + 0.0:.12g}"
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return str(value).strip().casefold()


# ---- in words


def difference(source: Domain, target: Domain) -> str:
    """Return how two domains of a parameter differ, in words; empty if they hold the same."""
    if source == target:
        return ""
    fixed = [
        f"fixed at {domain.value!r} in the {where}"
        for where, domain in (("source", source), ("target", target))
        if isinstance(domain, Constant)
    ]
    if fixed:
        return ", ".join(fixed)
    remarks = []
    if _kind(source) != _kind(target):
        remarks.append(f"{_kind(target)} in the target, {_kind(source)} in the source")
    if not isinstance(source, Number):
        remarks += _only("source", source, target)
        remarks += [] if isinstance(target, Number) else _only("target", target, source)
    elif isinstance(target, Number):
        remarks += [
            f"{theirs} in the target, {ours} in the source"
            for (value, ours), (other, theirs) in zip(
                _traits(source), _traits(target), strict=True
            )
            if value != other
        ]
        if _kind(source) == _kind(target) and source.step != target.step:
            remarks.append(f"step {target.step} in the target, {source.step} in the source")
    return "; ".join(remarks)


def _kind(domain: Domain) -> str:
    if isinstance(domain, Number):
        return "int" if isinstance(domain, Integer) else "float"
    return "categorical" if isinstance(domain, Categorical) else "ordinal"


def _traits(domain: Number) -> Iterator[tuple[object, str]]:
    """Yield the scale and the range of numbers, each to compare and to read."""
    scale = "normal" if isinstance(domain, Normal) else domain.scale
    yield scale, f"{scale} scale"
    low, high = float(domain.from_unit(0.0)), float(domain.from_unit(1.0))
    yield (low, high), f"{low:g}…{high:g}"


def _only(where: str, here: Domain, there: Domain) -> list[str]:
    """Name the values that only one of two domains has, at most a few of them."""
    values = listed_values(here)
    missing = [v for v, unit in zip(values, placed(values, there), strict=True) if unit != unit]
    if not missing:
        return []
    more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
    return [f"only in the {where}: {missing[:_MOST_LISTED]!r}{more}"]
