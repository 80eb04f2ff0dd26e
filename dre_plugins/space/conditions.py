"""When a parameter is active, stated by the user or learnt from configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, lgamma, log
from typing import Any, TypeAlias

import numpy as np

from dre_plugins.space.base import (
    SLACK,
    Array,
    Domain,
    Mask,
    Positions,
    fill,
    match_key,
    match_keys,
)
from dre_plugins.space.discrete import Constant
from dre_plugins.space.numeric import Number

# A parent with more values than this is not listed value by value.
_MAX_LISTED = 64
# An explanation counts as chance if more than this share of random patterns of presence had one.
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


# ---- compiled to comparisons of units


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


# ---- learnt from configurations


def infer_conditions(
    domains: Mapping[str, Domain],
    configurations: Sequence[Mapping[str, Any]],
    since: Mapping[str, int] | None = None,
) -> tuple[tuple[AnyCondition, ...], frozenset[str]]:
    """Learn which parameters' values decide whether another one is present.

    Define-by-run frameworks do not state conditions, but trials show them: a parent explains a
    child if it is present wherever the child is, and no value, or range of numbers, is seen both
    with and without the child. Among several parents, one is preferred whose pattern is unlikely
    by chance, then the one that is present most often, then the first defined. If no parent
    explains the child alone, several conditions may, which must all hold; each of them excludes
    more configurations without the child than expected by chance.

    Args:
        domains: All parameters, in order of definition.
        configurations: Observed configurations, without inactive parameters.
        since: Position, by name of a parameter, from which on its absence shows that it was
            inactive; by default 0.

    Returns:
        Conditions of the parameters whose absence is explained, and the names of the others that
        are absent somewhere. With values of a parent that were never seen, the child is active, so
        that the search may try it.
    """
    names = [name for name, domain in domains.items() if not isinstance(domain, Constant)]
    present = {name: np.array([name in c for c in configurations], dtype=bool) for name in names}
    conditions: list[AnyCondition] = []
    optional: list[str] = []

    @cache
    def parent(name: str) -> _Parent:
        return _Parent.of(name, domains[name], configurations)

    for child in names:
        with_child, lacking = present[child], ~present[child]
        if with_child.all():
            continue
        inactive = lacking.copy()
        inactive[: (since or {}).get(child, 0)] = False
        # Parents are present wherever the child is, and elsewhere: so conditions form no cycle.
        parents = [
            parent(name)
            for name, there in present.items()
            if with_child.any() and there[with_child].all() and (there & inactive).any()
        ]
        explanation = _explanation(child, parents, with_child, inactive)
        if explanation is not None:
            explanations, unexplained = [explanation], np.zeros_like(lacking)
        else:
            explanations, unexplained = _conjunction(child, parents, with_child, inactive)
        conditions += explanations
        if (unexplained | (lacking & ~inactive)).any():
            optional.append(child)
    return tuple(conditions), frozenset(optional)


@dataclass(frozen=True, slots=True)
class _Parent:
    """A parameter that may explain the absence of another one."""

    name: str
    domain: Domain
    values: list[Any]  # distinct values, numbers in ascending order
    places: Positions  # position in `values` for each configuration `[N]`, -1 where absent

    @classmethod
    def of(cls, name: str, domain: Domain, configurations: Sequence[Mapping[str, Any]]) -> _Parent:
        rows = [row for row, configuration in enumerate(configurations) if name in configuration]
        observed = [configurations[row][name] for row in rows]
        is_number = isinstance(domain, Number)
        keys: Sequence[Any] = observed if is_number else match_keys(observed)
        value_of = dict(zip(keys, observed, strict=True))
        ordered = sorted(value_of) if is_number else [*value_of]
        place_of = {key: place for place, key in enumerate(ordered)}
        places = np.full(len(configurations), -1, dtype=np.intp)
        places[rows] = [place_of[key] for key in keys]
        return cls(name, domain, [value_of[key] for key in ordered], places)


def _explanation(
    child: str, parents: Sequence[_Parent], present: Mask, inactive: Mask
) -> AnyCondition | None:
    """Return the best condition that explains by itself where the child is inactive, if any.

    It separates the parent's values with the child from those without.
    """
    candidates = []
    for order, parent in enumerate(parents):
        with_child, without = parent.places[present], parent.places[inactive]
        without = without[without >= 0]
        n_with, n_without = len(with_child), len(without)
        # The number of patterns of presence, or a bound far beyond 20 * 2**groups.
        patterns = comb(n_with + n_without, min(n_with, n_without, _MAX_LISTED))
        for condition, excluded, n_ways in _necessary(child, parent, with_child, without):
            if not excluded.all():
                continue
            by_chance = n_ways / patterns > _SOUND
            # Any two numbers of a continuum differ, which explains nothing.
            if not (by_chance and parent.domain.n_values is None):
                n_present = int((parent.places >= 0).sum())
                candidates.append(((by_chance, -n_present, order), condition))
            break
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def _conjunction(
    child: str, parents: Sequence[_Parent], present: Mask, inactive: Mask
) -> tuple[list[AnyCondition], Mask]:
    """Return conditions that must all hold, and where they fail to explain inactivity `[N]`.

    Each condition holds for all configurations with the child. Of the configurations without it
    that earlier conditions have left, it excludes more than expected by chance: with `n` left, `e`
    of them excluded and `m` with the child, a random pattern of presence does so with probability
    `C(m + n - e, m) / C(m + n, m)`.
    """
    conditions: list[AnyCondition] = []
    unexplained = inactive.copy()
    while unexplained.any():
        steps = []
        for order, parent in enumerate(parents):
            there = unexplained & (parent.places >= 0)
            with_child, without = parent.places[present], parent.places[there]
            for condition, excluded, n_ways in _necessary(child, parent, with_child, without):
                n, n_excluded = len(without), int(excluded.sum())
                chance = log(n_ways * len(parents))
                chance += _log_comb(len(with_child) + n - n_excluded, len(with_child))
                chance -= _log_comb(len(with_child) + n, len(with_child))
                if chance < log(_SOUND):
                    after = np.zeros_like(there)  # without its parent the child is inactive
                    after[there] = ~excluded
                    steps.append((-n_excluded, order, condition, after))
        if not steps:
            break
        _, _, condition, unexplained = min(steps, key=lambda step: step[:2])
        conditions.append(condition)
    return conditions, unexplained


def _necessary(
    child: str, parent: _Parent, with_child: Positions, without: Positions
) -> Iterator[tuple[AnyCondition, Mask, int]]:
    """Yield conditions that hold wherever the child is present.

    With each come the configurations without the child that it excludes `[W]`, and the number of
    conditions among which it was chosen. The arguments are positions of the parent's values.
    """
    domain, values = parent.domain, parent.values
    if isinstance(domain, Number):
        first, last = with_child.min(), with_child.max()
        below, above = without < first, without > last
        if below.any():
            low = _between(values[without[below].max()], values[first])
            yield RangeCondition(child, parent.name, low=low), below, 2
        if above.any():
            high = _between(values[last], values[without[above].min()])
            yield RangeCondition(child, parent.name, high=high), above, 2
    if domain.n_values is not None and domain.n_values <= _MAX_LISTED:
        refused = np.setdiff1d(without, with_child)
        keys = {match_key(values[place]) for place in refused.tolist()}
        allowed = tuple(value for value in domain.all_values() if match_key(value) not in keys)
        if len(refused) and allowed:
            n_groups = len(np.union1d(without, with_child))
            yield Condition(child, parent.name, allowed), np.isin(without, refused), 2**n_groups


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _between(low: Any, high: Any) -> float:
    return float(low) / 2 + float(high) / 2
