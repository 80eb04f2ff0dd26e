"""When a parameter is active, stated by the user or learnt from configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space.base import Domain, fill, match_key
from dre_plugins.space.discrete import Constant
from dre_plugins.space.numeric import Float, Integer, Normal

# A parent with more values than this is not listed value by value.
_MAX_LISTED = 64
# An explanation may be chance if more than this share of random patterns of presence had one as
# well.
_SOUND = 0.05


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
    conditions: list[AnyCondition] = []
    optional: list[str] = []
    for child in names:
        if present[child].all():
            continue
        explanations = []
        for order, parent in enumerate(names):
            if not _may_explain(present[parent], present[child]):
                continue
            bare = present[parent] & ~present[child]
            values = [
                configurations[row][parent] for row in np.flatnonzero(present[child]).tolist()
            ]
            others = [configurations[row][parent] for row in np.flatnonzero(bare).tolist()]
            explanation = _explain(child, parent, domains[parent], values, others)
            if explanation is not None:
                condition, by_chance = explanation
                rank = (by_chance, -int(present[parent].sum()), order)
                explanations.append((rank, condition))
        if explanations:
            conditions.append(min(explanations, key=lambda explanation: explanation[0])[1])
        else:
            optional.append(child)
    return tuple(conditions), frozenset(optional)


def _may_explain(parent: NDArray[np.bool_], child: NDArray[np.bool_]) -> bool:
    """Say whether the parent is there whenever the child is, and also without it.

    A parent is therefore present more often than its child, so that no cycle can arise.
    """
    return bool(child.any() and parent[child].all() and (parent & ~child).any())


def _explain(
    child: str, parent: str, domain: Domain, values: Sequence[Any], others: Sequence[Any]
) -> tuple[AnyCondition, bool] | None:
    """Return a condition that tells `values` from `others`, and whether chance alone might."""
    patterns = comb(len(values) + len(others), len(values))
    if isinstance(domain, (Float, Integer, Normal)):
        threshold = _threshold(child, parent, values, others)
        if threshold is not None:
            by_chance = 2 / patterns > _SOUND  # a cut from above or from below
            # Any two numbers of a continuum can be told apart, which says nothing.
            return None if by_chance and domain.n_values is None else (threshold, by_chance)
    if domain.n_values is None or domain.n_values > _MAX_LISTED:
        return None
    seen = {match_key(value) for value in values}
    refused = {match_key(value) for value in others}
    allowed = tuple(v for v in listed_values(domain) if match_key(v) not in refused)
    if seen & refused or not allowed:
        return None
    groups = len(seen) + len(refused)
    return Condition(child, parent, allowed), 2**groups / patterns > _SOUND


def _threshold(
    child: str, parent: str, values: Sequence[Any], others: Sequence[Any]
) -> RangeCondition | None:
    if max(others) < min(values):
        return RangeCondition(child, parent, low=_between(max(others), min(values)))
    if max(values) < min(others):
        return RangeCondition(child, parent, high=_between(max(values), min(others)))
    return None


def _between(low: Any, high: Any) -> float:
    return float(low) / 2 + float(high) / 2


def listed_values(domain: Domain) -> list[Any]:
    """Return all values of a finite domain, in order."""
    n = domain.n_values or 0
    return [domain.from_unit(unit) for unit in domain.centres(np.arange(n, dtype=np.float64))]
