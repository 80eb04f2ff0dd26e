"""When a parameter is active, stated by the user or learnt from configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space.base import Domain, fill, match_key, match_keys
from dre_plugins.space.discrete import Constant
from dre_plugins.space.numeric import Float, Integer, Normal

# A parent with more values than this is not listed value by value.
_MAX_LISTED = 64
# An explanation may be chance if more than this share of random patterns of presence had one as
# well.
_SOUND = 0.05
_NUMERIC = (Float, Integer, Normal)


@dataclass(frozen=True)
class Condition:
    """`child` is active only while `parent` is active and its value is one of `values`."""

    child: str
    parent: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        fill(self, values=tuple(self.values))
        if not self.values:
            raise ValueError(f"the condition of {self.child!r} lists no value of {self.parent!r}.")


@dataclass(frozen=True)
class RangeCondition:
    """`child` is active only while `parent` is active and within `[low, high]` (None: open)."""

    child: str
    parent: str
    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError(f"the condition of {self.child!r} needs a low or a high.")


AnyCondition: TypeAlias = Condition | RangeCondition


def infer_conditions(
    domains: Mapping[str, Domain], configurations: Sequence[Mapping[str, Any]]
) -> tuple[tuple[AnyCondition, ...], frozenset[str]]:
    """Learn which parameter's value decides whether another one is present.

    Define-by-run frameworks do not state conditions, but their history shows them: a parent
    explains a child if it is present wherever the child is, and the values seen with the child and
    without it can be told apart. Among several, one is preferred that chance would rarely give,
    then the parent that is present most often, then the first defined.

    Args:
        domains: all parameters, in order of definition.
        configurations: what was observed; a parameter that was inactive is absent.

    Returns:
        One condition for each parameter whose absence some parent explains, and the names of those
        whose absence nothing explains. Values that were never seen leave the child active, so that
        the search may find out.
    """
    names = [name for name, domain in domains.items() if not isinstance(domain, Constant)]
    present = {name: np.array([name in c for c in configurations], dtype=bool) for name in names}
    levels: dict[str, _Levels] = {}
    conditions: list[AnyCondition] = []
    optional: list[str] = []
    for child in names:
        if present[child].all():
            continue
        explanations = []
        for order, parent in enumerate(names):
            if not _may_explain(present[parent], present[child]):
                continue
            if parent not in levels:
                levels[parent] = _Levels.of(parent, domains[parent], configurations)
            explanation = _explain(child, parent, domains[parent], levels[parent], present[child])
            if explanation is not None:
                condition, by_chance = explanation
                rank = (by_chance, -int(present[parent].sum()), order)
                explanations.append((rank, condition))
        if explanations:
            conditions.append(min(explanations, key=lambda explanation: explanation[0])[1])
        else:
            optional.append(child)
    return tuple(conditions), frozenset(optional)


@dataclass(frozen=True, slots=True)
class _Levels:
    """The different values of a parent, and which of them each configuration has.

    Args:
        values: one of each, numbers in ascending order.
        places: position in `values` for each configuration `[N]`, -1 where the parent is absent.
    """

    values: list[Any]
    places: NDArray[np.intp]

    @classmethod
    def of(cls, name: str, domain: Domain, configurations: Sequence[Mapping[str, Any]]) -> _Levels:
        rows = [row for row, one in enumerate(configurations) if name in one]
        observed = [configurations[row][name] for row in rows]
        places = np.full(len(configurations), -1, dtype=np.intp)
        if isinstance(domain, _NUMERIC):
            # Objects: integers may exceed 2**53.
            kind = np.float64 if set(map(type, observed)) == {float} else np.object_
            values, places[rows] = np.unique(np.array(observed, dtype=kind), return_inverse=True)
            return cls(values.tolist(), places)
        value_of = dict(zip(match_keys(observed), observed, strict=True))
        place_of = {key: place for place, key in enumerate(value_of)}
        places[rows] = [place_of[key] for key in match_keys(observed)]
        return cls([*value_of.values()], places)


def _may_explain(parent: NDArray[np.bool_], child: NDArray[np.bool_]) -> bool:
    """Say whether the parent is there whenever the child is, and also without it.

    A parent is therefore present more often than its child, so that no cycle can arise.
    """
    return bool(child.any() and parent[child].all() and (parent & ~child).any())


def _explain(
    child: str, parent: str, domain: Domain, levels: _Levels, has_child: NDArray[np.bool_]
) -> tuple[AnyCondition, bool] | None:
    """Return a condition that tells the parent's values with the child from those without.

    And whether chance alone might give one.
    """
    with_child, without = levels.places[has_child], levels.places[~has_child]
    without = without[without >= 0]
    patterns = _at_least(len(with_child), len(without))
    if isinstance(domain, _NUMERIC):
        threshold = _threshold(child, parent, levels.values, with_child, without)
        if threshold is not None:
            by_chance = 2 / patterns > _SOUND  # a cut from above or from below
            # Any two numbers of a continuum can be told apart, which says nothing.
            return None if by_chance and domain.n_values is None else (threshold, by_chance)
    if domain.n_values is None or domain.n_values > _MAX_LISTED:
        return None
    seen = {match_key(levels.values[place]) for place in np.unique(with_child).tolist()}
    refused = {match_key(levels.values[place]) for place in np.unique(without).tolist()}
    allowed = tuple(v for v in listed_values(domain) if match_key(v) not in refused)
    if seen & refused or not allowed:
        return None
    groups = len(seen) + len(refused)
    return Condition(child, parent, allowed), 2**groups / patterns > _SOUND


def _at_least(n_with: int, n_without: int) -> int:
    """Return the number of patterns of presence, or a bound far beyond 20 * 2**groups."""
    return comb(n_with + n_without, min(n_with, n_without, _MAX_LISTED))


def _threshold(
    child: str,
    parent: str,
    values: Sequence[Any],
    with_child: NDArray[np.intp],
    without: NDArray[np.intp],
) -> RangeCondition | None:
    """Return a cut between places in ascending `values`, if there is one."""
    low, high = values[with_child.min()], values[with_child.max()]
    if values[without.max()] < low:
        return RangeCondition(child, parent, low=_between(values[without.max()], low))
    if high < values[without.min()]:
        return RangeCondition(child, parent, high=_between(high, values[without.min()]))
    return None


def _between(low: Any, high: Any) -> float:
    return float(low) / 2 + float(high) / 2


def listed_values(domain: Domain) -> list[Any]:
    """Return all values of a finite domain, in order."""
    n = domain.n_values or 0
    return [domain.from_unit(unit) for unit in domain.centres(np.arange(n, dtype=np.float64))]
