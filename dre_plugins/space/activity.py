"""Which parameters are active: conditions, compiled to comparisons of units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dre_plugins.space.base import SLACK, Array, Domain, Mask
from dre_plugins.space.conditions import AnyCondition, Condition, RangeCondition
from dre_plugins.space.discrete import Constant


@dataclass(frozen=True, slots=True)
class ActivityRule:
    """The child is active only if the parent's unit lies in one of the intervals, `[K]` each."""

    child: int
    parent: int
    low: Array
    high: Array


class Activity:
    """Decide which parameters are active; several conditions of one parameter must all hold.

    In `parents_first`, columns of parameters, and in `rules` parents precede their children. A
    ValueError says that a condition names an unknown parameter or value, or that they form a
    cycle.
    """

    def __init__(self, domains: Mapping[str, Domain], conditions: Sequence[AnyCondition]) -> None:
        self._domains = domains
        searched = [name for name in domains if not isinstance(domains[name], Constant)]
        self._column = {name: column for column, name in enumerate(searched)}
        self.parents_first = self._sorted_columns(conditions)
        place = {column: position for position, column in enumerate(self.parents_first)}
        rules = [rule for condition in conditions if (rule := self._rule(condition)) is not None]
        self.rules = sorted(rules, key=lambda rule: place[rule.child])

    def of(self, units: Array) -> Mask:
        """Say which parameters are active, from units whose parents are canonical."""
        active = np.ones(units.shape, dtype=np.bool_)
        for rule in self.rules:  # those of a parent come before those of its children
            place = units[:, rule.parent, None]
            holds = ((place >= rule.low) & (place <= rule.high)).any(axis=1)
            active[:, rule.child] &= holds & active[:, rule.parent]
        return active

    def ancestors(self, column: int) -> set[int]:
        """Return the columns on which the activity of a column depends."""
        found = {column}
        for rule in reversed(self.rules):  # those of a child come before those of its parents
            if rule.child in found:
                found.add(rule.parent)
        return found - {column}

    def _sorted_columns(self, conditions: Sequence[AnyCondition]) -> list[int]:
        """Return the columns sorted so that parents precede their children."""
        parents: dict[str, list[str]] = {name: [] for name in self._column}
        for condition in conditions:
            for name in (condition.child, condition.parent):
                if name not in self._domains:
                    raise ValueError(
                        f"{condition!r} names {name!r}, which is none of {list(self._domains)}."
                    )
            if condition.child not in self._column:
                raise ValueError(
                    f"{condition!r} has a constant child; make it a Categorical with one choice."
                )
            if condition.parent in self._column:
                parents[condition.child].append(condition.parent)
        done: dict[str, None] = {}
        while len(done) < len(parents):
            ready = [n for n in parents if n not in done and done.keys() >= set(parents[n])]
            if not ready:
                cycle = [name for name in parents if name not in done]
                raise ValueError(f"the conditions of {cycle} form a cycle; remove one of them.")
            done.update(dict.fromkeys(ready))
        return [self._column[name] for name in done]

    def _rule(self, condition: AnyCondition) -> ActivityRule | None:
        """Return the rule of a condition; None if it has a constant parent that fulfils it."""
        child, domain = self._column[condition.child], self._domains[condition.parent]
        try:
            if isinstance(domain, Constant):
                never = ActivityRule(child, child, np.empty(0), np.empty(0))
                return None if _is_fulfilled(condition, domain) else never
            parent = self._column[condition.parent]
            if isinstance(condition, RangeCondition):
                low, high = domain.unit_interval(condition.low, condition.high)
                return ActivityRule(child, parent, np.array([low]), np.array([high]))
            if not domain.is_binned:
                raise ValueError("its values cannot be listed; use a RangeCondition.")
            units = domain.to_units(condition.values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{condition!r}, parent {condition.parent!r}: {error}") from error
        return ActivityRule(child, parent, units - SLACK, units + SLACK)


def _is_fulfilled(condition: AnyCondition, parent: Constant) -> bool:
    if isinstance(condition, Condition):
        return any(map(parent.contains, condition.values))
    is_above = condition.low is None or parent.value >= condition.low
    return bool(is_above and (condition.high is None or parent.value <= condition.high))
