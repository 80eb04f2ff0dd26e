"""How the units of one domain become those of another one: by value, never by position.

A conversion is prepared once for a pair of domains, so that thousands of units take a few NumPy
operations. NaN means "no value here" and stays; a value that the other domain lacks becomes NaN.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dre_plugins.checks import is_integer, is_real
from dre_plugins.recommend.trials import number_of
from dre_plugins.space import Constant, Domain, Float, Integer, Normal, Ordinal
from dre_plugins.space.base import UNIT_MAX, UNIT_MIN, Array
from dre_plugins.space.numeric import Number
from dre_plugins.transfer.spaces.aliases import LIMITS, SHARES_OR_COUNTS, roles
from dre_plugins.transfer.spaces.prefixes import Change

# Relative tolerance of equal numbers, as a scale may have rounded one of them.
_SAME_NUMBER = 1e-9
# Values that a text lists at most.
MOST_LISTED = 12
# Words for no limit, as `_plain` spells them.
_NO_LIMIT = frozenset({"none", "null", "unlimited", "inf"})
# The width of a layer in the text of a list of layers.
_WIDTH = re.compile(r"[1-9]\d*")


@dataclass(frozen=True)
class Link:
    """One parameter that both spaces have."""

    source: str  # its name in the source
    target: str  # its name in the target
    how: str  # how they were matched: "mapping", "name" or "alias"
    change: Callable[..., Array]  # units of the source to units of the target, `[N]` -> `[N]`
    note: Callable[[], str]  # says how the two domains differ; empty if they do not
    # further parameters of the source whose units `change` takes before
    extra_sources: tuple[str, ...] = ()


def conversion(source: Domain, target: Domain, change: Change | None) -> Change | None:
    """Return how units of `source` become units of `target`; None without a value in common.

    Two domains of numbers always have one, since numbers beyond a range extrapolate. `change` says
    what numbers of the source are in the target, see `prefixes`.
    """
    if change is None and source == target:
        return np.asarray
    if isinstance(source, Number):
        to_units = number_converter(target)
        return None if to_units is None else partial(_by_number, source, to_units, change)
    values = source.all_values()
    table = value_units(values if change is None else change(_numbers(values)).tolist(), target)
    return None if np.isnan(table).all() else partial(by_table, source, table)


def conversion_by_name(name: str, source: Domain, target: Domain) -> Change | None:
    """Return the `conversion` of a parameter whose name may say that some values are special."""
    if name in LIMITS:
        return _limit_conversion(source, target)
    if name in SHARES_OR_COUNTS and are_share_and_count(source, target):
        # Clipped to a range of counts, each share would be the fewest, each count the most.
        return None
    return conversion(source, target, None)


def are_share_and_count(first: Domain, second: Domain) -> bool:
    """Say whether one domain has shares and the other counts, as `max_features` may be either."""

    def are_of(shares: Sequence[Any], counts: Sequence[Any]) -> bool:
        are_shares = all(isinstance(share, float) and 0.0 <= share <= 1.0 for share in shares)
        return are_shares and all(map(is_integer, counts)) and min(counts) >= 1 < max(counts)

    ours, theirs = landmarks(first), landmarks(second)
    return are_of(ours, theirs) or are_of(theirs, ours)


def _limit_conversion(source: Domain, target: Domain) -> Change | None:
    """Return the `conversion` of limits, of which some words and numbers up to 0 mean "no limit".

    That stays if both domains say it, as by None and -1. Otherwise it becomes the highest limit of
    the two, unless the source has another word, or the target has one or no order.
    """
    ours, theirs = landmarks(source), landmarks(target)
    unlimited = [value for value in theirs if _is_no_limit(value)]
    change = None
    if not unlimited and target.is_ordered and any(map(_is_no_limit, ours)):
        limits = _numbers([value for value in (*ours, *theirs) if not _is_no_limit(value)])
        if not np.isnan(limits).any():
            change = partial(_limited, limits.max())
    found = conversion(source, target, change)
    if found is None or source == target or not (unlimited and any(map(_is_no_limit, ours))):
        return found
    return partial(_kept, source, target.to_unit(unlimited[0]), found)


def _limited(highest: float, numbers: Array) -> Array:
    return np.where(numbers > 0, numbers, highest)


def _kept(source: Domain, unit: float, change: Change, units: Array) -> Array:
    if isinstance(source, Number):
        has_no_limit = source.numbers(units) <= 0
    else:
        listed = np.array([_is_no_limit(value) for value in source.all_values()], np.float64)
        has_no_limit = by_table(source, listed, units) == 1
    return np.where(has_no_limit, unit, change(units))


def _is_no_limit(value: Any) -> bool:
    return _plain(value) in _NO_LIMIT or parsed_number(value) <= 0


def landmarks(domain: Domain) -> list[Any]:
    """Return the lowest and the highest number of a range, or all that is listed."""
    if isinstance(domain, Number):
        return [domain.from_unit(0.0), domain.from_unit(1.0)]
    return domain.all_values()


def value_units(values: Sequence[Any], target: Domain) -> Array:
    """Return the units of `values` in `target`, `[N]`; NaN where it has no place for one.

    A listed value is looked for by type and value, then leniently (`1`, `1.0` and `"1"` agree, and
    so do "Adam" and "adam") if that is unambiguous on both sides, then as a number.
    """
    units = np.full(len(values), np.nan)
    to_units = number_converter(target)
    if to_units is not None and target.is_ordered:
        units = to_units(_numbers(values))
    if isinstance(target, Number):
        return units
    listed = target.all_values()
    plain = {_plain(value): value for value in listed}
    often = Counter(_plain(value) for value in values)
    often_listed = Counter(_plain(value) for value in listed)
    for row, value in enumerate(values):
        key = _plain(value)
        if not target.contains(value) and often[key] == often_listed[key] == 1:
            value = plain[key]
        if target.contains(value):
            units[row] = target.to_unit(value)
    return units


def number_converter(domain: Domain) -> Change | None:
    """Return how numbers become units of a domain, NaN where it has no place; None without any."""
    if isinstance(domain, Number):
        return domain.number_units
    numbers = _numbers(domain.all_values())
    if np.isnan(numbers).all():
        return None
    if isinstance(domain, Ordinal) and len(numbers) > 1:
        if all(low < high for low, high in pairwise(numbers.tolist())):
            return partial(_between, numbers, domain.spacing, 1.0)
        if all(low > high for low, high in pairwise(numbers.tolist())):
            return partial(_between, -numbers, "equal", -1.0)
    return partial(_exactly, numbers)


def _by_number(source: Number, to_units: Change, change: Change | None, units: Array) -> Array:
    numbers = source.numbers(units)
    if change is None:
        return to_units(numbers)
    return np.where(np.isnan(numbers), np.nan, to_units(change(numbers)))


def by_table(source: Domain, table: Array, units: Array) -> Array:
    """Look the unit of each listed value up; `table` `[n]` has one for each bin."""
    return source.looked_up(units, np.append(table, np.nan))


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
        reach = _SAME_NUMBER * abs(listed[index])
        units[np.abs(numbers - listed[index]) <= reach] = (index + 0.5) / len(listed)
    return units


def _numbers(values: Sequence[Any]) -> Array:
    return np.array([parsed_number(value) for value in values], dtype=np.float64)


def parsed_number(value: Any) -> float:
    """Return a number, or a string that reads as one, as a float; NaN for anything else.

    ``64_32`` is a list of layers, although Python reads it as 6432.
    """
    is_text = isinstance(value, str) and "_" not in value
    number = number_of(value) if is_real(value) or is_text else math.nan
    return number if math.isfinite(number) else math.nan


def _plain(value: Any) -> Hashable:
    """Return a value without its type, and a string without its case, for lenient matching."""
    number = parsed_number(value)
    if not math.isnan(number):
        return f"{number + 0.0:.12g}"
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return str(value).strip().casefold()


# ---- hidden layers as a list of widths, as scikit-learn has them, and as their number and width


def shapes(domain: Domain) -> Array | None:
    """Return the number and the mean width of the layers of each choice `[n, 2]`.

    None if the choices are plain numbers, or say nothing of layers.

    >>> from dre_plugins.space import Categorical
    >>> shapes(Categorical(("(100,)", "64, 32"))).tolist()
    [[1.0, 100.0], [2.0, 48.0]]
    """
    if _are_widths(domain):
        return None
    layers = [[*map(float, _WIDTH.findall(str(value)))] for value in domain.all_values()]
    if not all(layers):
        return None
    return np.array([(len(widths), np.mean(widths)) for widths in layers])


def layer_links(ours: Mapping[str, Domain], theirs: Mapping[str, Domain]) -> list[Link]:
    """Return the links of layers: a list in one space, their number and width in the other."""
    source, target = roles(ours), roles(theirs)
    if "layer width" not in source or "layer width" not in target:
        return []
    width, wanted = source["layer width"], theirs[target["layer width"]]
    given, asked = ours[width], shapes(wanted)
    listed = shapes(given)
    link = partial(Link, width, how="alias", note=partial(str, "a list of layers there or here"))
    if listed is not None and _are_widths(wanted):
        return [
            link(target[role], change=partial(by_table, given, table))
            for role, numbers in zip(("layers", "layer width"), listed.T, strict=True)
            if role in target
            and np.isfinite(table := value_units(numbers.tolist(), theirs[target[role]])).any()
        ]
    depth = ours.get(source.get("layers", ""))
    if asked is None or not isinstance(given, Number) or not isinstance(depth, Number):
        return []
    change = partial(_nearest, depth, given, asked, wanted)
    return [link(target["layer width"], change=change, extra_sources=(source["layers"],))]


def _are_widths(domain: Domain) -> bool:
    """Say whether all values are numbers; lists of layers beside a word match by their text."""
    values = [] if isinstance(domain, Number) else domain.all_values()
    return not any(np.isnan(parsed_number(value)) for value in values)


def _nearest(
    depth: Number, width: Number, asked: Array, wanted: Domain, depths: Array, widths: Array
) -> Array:
    """Return the unit of the list that is nearest; a layer more is as far as twice the width."""
    numbers, sizes = depth.numbers(depths), width.numbers(widths)
    far = np.abs(numbers[:, None] - asked[:, 0]) + np.abs(np.log2(sizes[:, None] / asked[:, 1]))
    is_known = ~np.isnan(far).any(axis=1)
    units = np.full(len(far), np.nan)
    units[is_known] = wanted.centres(far[is_known].argmin(axis=1).astype(np.float64))
    return units


# ---- differences


def difference(source: Domain, target: Domain) -> str:
    """Return two domains of a parameter in words; empty if they hold the same."""
    if _hold_the_same(source, target):
        return ""
    ours, theirs = (f"{type(d).__name__.lower()} {format_domain(d)}" for d in (source, target))
    return f"{theirs} in the past, {ours} in this study"


def _hold_the_same(source: Domain, target: Domain) -> bool:
    if source == target:
        return True
    if isinstance(source, Number) and isinstance(target, Number):
        return _layout(source) == _layout(target)
    if type(source) is not type(target) or isinstance(source, Constant):
        return False
    pairs = (source, target), (target, source)
    return not any(np.isnan(value_units(a.all_values(), b)).any() for a, b in pairs)


def _layout(domain: Number) -> tuple[object, ...]:
    bounds = float(domain.from_unit(0.0)), float(domain.from_unit(1.0))
    return isinstance(domain, Integer), domain.scale, bounds, domain.step


def format_domain(domain: Domain) -> str:
    """Return the values of a domain as a short text, such as "1e-05 … 1, log"."""
    if isinstance(domain, (Float, Integer)):
        scale = "" if domain.scale == "linear" else f", {domain.scale}"
        step = "" if domain.step in (None, 1) else f", step {domain.step:g}"
        return f"{domain.low:g} … {domain.high:g}{scale}{step}"
    if isinstance(domain, Normal):
        return f"{domain.mean:g} ± {domain.sd:g}"
    if isinstance(domain, Constant):
        return repr(domain.value)
    return format_values(domain.all_values(), " < " if domain.is_ordered else ", ")


def format_values(values: Sequence[Any], separator: str = ", ") -> str:
    """Return values as a text, the first ones of many and how many more there are."""
    texts, n_more = [str(value) for value in values[:MOST_LISTED]], len(values) - MOST_LISTED
    return separator.join([*texts, f"… {n_more} more"] if n_more > 0 else texts)
