"""A search space: named domains with conditions, as arrays of units and of features.

Notation: `N` or `C` configurations, `P` parameters (constants excluded), `D` features. The two
coordinate systems are explained in ``docs/architecture.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space import serial
from dre_plugins.space.base import Array, Domain, match_key
from dre_plugins.space.conditions import AnyCondition, Condition, RangeCondition
from dre_plugins.space.discrete import Constant

Mask = NDArray[np.bool_]

# Canonical units of one value agree to rounding errors, those of two values differ by more.
_SAME = 1e-10
# Counting walks through all joint values of the parents; beyond this many, the space is never
# exhausted.
_MAX_PARENT_ROWS = 2**16
_MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class _Rule:
    """The child is active only if the parent's unit lies in one of the intervals, `[K]` each."""

    child: int
    parent: int
    low: Array
    high: Array

    def holds(self, units: Array) -> Mask:
        column = units[:, None]
        return np.asarray(((column >= self.low) & (column <= self.high)).any(axis=1))


class SearchSpace:
    """Named domains, the conditions under which they are active, and their encodings.

    Args:
        domains: one domain a parameter, in an order that is kept.
        conditions: when a parameter is active; several conditions of one parameter must all hold.
        optional: parameters that may be absent from a configuration for no known reason.

    Raises:
        ValueError: a condition names an unknown parameter or value, or conditions form a cycle.

    Examples:
        >>> from dre_plugins.space import Constant, Float
        >>> space = SearchSpace({"momentum": Float(0.0, 1.0), "seed": Constant(7)})
        >>> space.to_configuration(np.array([0.5]))
        {'momentum': 0.5, 'seed': 7}
    """

    def __init__(
        self,
        domains: Mapping[str, Domain],
        conditions: Sequence[AnyCondition] = (),
        optional: Collection[str] = (),
    ) -> None:
        self.domains = dict(domains)
        self.conditions = tuple(conditions)
        self.optional = frozenset(optional)
        for name, domain in self.domains.items():
            if not isinstance(domain, Domain):
                raise ValueError(f"parameter {name!r} must be a Domain, got {domain!r}.")
        self.constants = {
            name: domain.value
            for name, domain in self.domains.items()
            if isinstance(domain, Constant)
        }
        self.names = tuple(name for name in self.domains if name not in self.constants)
        self._column = {name: column for column, name in enumerate(self.names)}
        self._searched = [self.domains[name] for name in self.names]
        unknown = sorted(self.optional - set(self.names))
        if unknown:
            raise ValueError(f"optional names {unknown}, which are no parameters: {self.names}.")
        self._order = self._parents_first()
        self._rules = self._compile()
        conditional = {condition.child for condition in self.conditions}
        self._flagged = [name in conditional or name in self.optional for name in self.names]
        self._slices = self._feature_slices()

    # ---- sizes and names

    @property
    def n_parameters(self) -> int:
        """Return the number of parameters `P`, constants excluded."""
        return len(self.names)

    @cached_property
    def n_features(self) -> int:
        """Return the number of features `D`."""
        return len(self.feature_names)

    @cached_property
    def continuous(self) -> dict[int, int]:
        """Return the feature of each parameter without bins, whose value is the coordinate."""
        return {
            column: place.start
            for column, (domain, place) in enumerate(
                zip(self._searched, self._slices, strict=True)
            )
            if not domain.is_binned
        }

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Return a name for each feature: "lr", "booster=dart", "eta:active"."""
        labels: list[str] = []
        for name, domain, flagged in zip(self.names, self._searched, self._flagged, strict=True):
            labels += [name + label for label in domain.feature_labels]
            labels += [f"{name}:active"] if flagged else []
        return tuple(labels)

    def feature_columns(self, names: Collection[str]) -> list[int]:
        """Return the columns of the features of some parameters, activity flags included."""
        columns: list[int] = []
        for name, place, flagged in zip(self.names, self._slices, self._flagged, strict=True):
            if name in names:
                columns += range(place.start, place.stop + flagged)
        return columns

    @cached_property
    def n_configurations(self) -> int | None:
        """Return the number of distinct configurations, or None if there are too many to count."""
        if any(
            domain.n_values is None or domain.n_values > _MAX_COUNT for domain in self._searched
        ):
            return None
        parents = sorted({rule.parent for rule in self._rules})
        rows = self.assignments(_MAX_PARENT_ROWS, parents)
        if rows is None:
            return None
        sizes = [
            1.0 if column in parents else float(domain.n_values or 1)
            for column, domain in enumerate(self._searched)
        ]
        with np.errstate(over="ignore"):
            total = np.where(self._is_active(rows), np.array(sizes), 1.0).prod(axis=1).sum()
        return int(total) if total <= _MAX_COUNT else None

    @cached_property
    def choices(self) -> tuple[int, ...]:
        """Return the columns of categorical parameters on which others depend."""
        parents = {rule.parent for rule in self._rules if rule.parent != rule.child}
        return tuple(
            column
            for column in sorted(parents)
            if self._searched[column].is_binned and not self._searched[column].is_ordered
        )

    def leading_to(self, column: int, place: float, examples: Array) -> Array:
        """Return coordinates `[P]` of a parameter and of those that make it active, NaN elsewhere.

        Args:
            column: The parameter.
            place: Its coordinate.
            examples: Canonical coordinates `[N, P]`; the first in which the parameter is active
                shows what makes it so. Without any, the first possible one does.
        """
        ancestors = self._ancestors(column)
        examples = examples[~np.isnan(examples[:, column])]
        if not len(examples) and ancestors:
            possible = self.assignments(_MAX_PARENT_ROWS, sorted(ancestors))
            if possible is not None:
                examples = possible[self._is_active(possible)[:, column]]
        led = np.full(self.n_parameters, np.nan)
        if len(examples):
            led[sorted(ancestors)] = examples[0, sorted(ancestors)]
        led[column] = place
        return led

    def _ancestors(self, column: int) -> set[int]:
        """Return the columns on which the activity of a column depends."""
        found: set[int] = set()
        new = {column}
        while new:
            new = {rule.parent for rule in self._rules if rule.child in new} - found - {column}
            found |= new
        return found

    # ---- configurations <-> units

    def to_units(self, configurations: Sequence[Mapping[str, Any]]) -> Array:
        """Return the canonical units of configurations, `[N, P]`.

        A parameter that is absent or inactive is NaN; names that the space does not know are
        ignored.

        Raises:
            ValueError: a value can never belong to its domain.
        """
        units = np.full((len(configurations), self.n_parameters), np.nan)
        for column in self._order:  # what an inactive parameter holds may be anything
            name, active = self.names[column], self._is_active(units)[:, column].tolist()
            rows = [
                row for row, known in enumerate(configurations) if active[row] and name in known
            ]
            values = [configurations[row][name] for row in rows]
            try:
                units[rows, column] = self._searched[column].to_units(values)
            except ValueError as error:
                raise ValueError(f"parameter {name!r}: {error}") from error
        return units

    def to_configuration(self, units: Array, *, include_inactive: bool = False) -> dict[str, Any]:
        """Return the configuration at `units` `[P]`, constants included, in order of definition.

        Args:
            units: full or canonical coordinates; NaN leaves a parameter out.
            include_inactive: also decode inactive parameters whose coordinate is known.
        """
        units = np.asarray(units, dtype=np.float64)
        wanted = ~np.isnan(units)
        if not include_inactive:
            wanted &= self.active(units[None])[0]
        configuration = dict(self.constants)
        for name, domain, unit, is_wanted in zip(
            self.names, self._searched, units.tolist(), wanted, strict=True
        ):
            if is_wanted:
                configuration[name] = domain.from_unit(unit)
        return {name: configuration[name] for name in self.domains if name in configuration}

    # ---- units -> activity, canonical units, features

    def active(self, units: Array) -> Mask:
        """Say which parameters the conditions leave active, `[C, P]` -> `[C, P]`."""
        snapped = np.array(units, dtype=np.float64)
        for column in {rule.parent for rule in self._rules}:
            snapped[:, column] = self._searched[column].snap(snapped[:, column])
        return self._is_active(snapped)

    def canonical(self, units: Array) -> Array:
        """Return units that are equal iff the configurations are, `[C, P]` -> `[C, P]`.

        Every coordinate moves to the centre of its value's bin; inactive parameters become NaN.
        """
        snapped = np.empty(units.shape)
        for column, domain in enumerate(self._searched):
            snapped[:, column] = domain.snap(units[:, column])
        snapped[~self._is_active(snapped)] = np.nan
        return snapped

    def features(self, units: Array) -> NDArray[np.float32]:
        """Return what the surrogate sees, canonical units `[C, P]` -> float32 `[C, D]`.

        A missing parameter reads 0.5 (all zeros for a categorical one) and its flag 0.
        """
        features = np.empty((len(units), self.n_features), dtype=np.float32)
        for column, (domain, place) in enumerate(zip(self._searched, self._slices, strict=True)):
            features[:, place] = domain.features(units[:, column])
            if self._flagged[column]:
                features[:, place.stop] = ~np.isnan(units[:, column])
        return features

    def assignments(self, limit: int, columns: Sequence[int] | None = None) -> Array | None:
        """Return all distinct canonical units, `[C, P]`, or None if there are more than `limit`.

        Args:
            limit: the most rows to return.
            columns: parameters to vary, with every parent of each; the others stay NaN.
        """
        varied = set(range(self.n_parameters) if columns is None else columns)
        rows = np.full((1, self.n_parameters), np.nan)
        for column in self._order:
            if column not in varied:
                continue
            domain = self._searched[column]
            active = self._is_active(rows)[:, column]
            if not active.any():  # of giant domains, the number of values is no machine integer
                continue
            n_values = domain.n_values
            if n_values is None or int(active.sum()) * n_values + int((~active).sum()) > limit:
                return None
            copies = np.where(active, n_values, 1)
            index = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
            rows = np.repeat(rows, copies, axis=0)
            rows[:, column] = np.where(
                np.repeat(active, copies), domain.centres(index.astype(np.float64)), np.nan
            )
        return rows

    # ---- membership

    def contains(self, configuration: Mapping[str, Any]) -> bool:
        """Say whether `check` finds nothing wrong."""
        try:
            self.check(configuration)
        except ValueError:
            return False
        return True

    def check(self, configuration: Mapping[str, Any]) -> None:
        """Check that every active parameter has a value of its domain.

        Inactive parameters, absent constants and names that the space does not know are ignored.

        Raises:
            ValueError: naming the parameter, its value and the remedy.
        """
        for name, value in self.constants.items():
            if name in configuration and match_key(configuration[name]) != match_key(value):
                raise ValueError(
                    f"parameter {name!r} is the constant {value!r}, got {configuration[name]!r}."
                )
        units = self.to_units([configuration])
        active = self._is_active(units)[0]
        for column, (name, domain) in enumerate(zip(self.names, self._searched, strict=True)):
            if not active[column]:
                continue
            if name in configuration:
                if not domain.contains(configuration[name]):
                    raise ValueError(
                        f"parameter {name!r} cannot be {configuration[name]!r}; "
                        f"use a value of {domain!r}."
                    )
            elif name not in self.optional:
                extra = sorted(set(configuration) - set(self.domains))
                hint = f" (unknown names: {extra})" if extra else ""
                raise ValueError(f"parameter {name!r} is missing{hint}; give one of {domain!r}.")

    # ---- identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return (
            list(self.domains.items()) == list(other.domains.items())
            and self.conditions == other.conditions
            and self.optional == other.optional
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [repr(self.domains)]
        parts += [f"conditions={self.conditions!r}"] if self.conditions else []
        parts += [f"optional={sorted(self.optional)!r}"] if self.optional else []
        return f"SearchSpace({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain containers, ready for JSON if all its values are."""
        return {
            "domains": {name: serial.to_dict(domain) for name, domain in self.domains.items()},
            "conditions": [serial.to_dict(condition) for condition in self.conditions],
            "optional": sorted(self.optional),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> SearchSpace:
        """Rebuild a space from `to_dict`.

        Raises:
            ValueError: a kind of domain or condition is unknown.
        """
        return cls(
            {name: serial.domain_from_dict(domain) for name, domain in state["domains"].items()},
            [serial.condition_from_dict(condition) for condition in state["conditions"]],
            state["optional"],
        )

    # ---- conditions

    def _is_active(self, units: Array) -> Mask:
        """Say which parameters are active, from units whose parents are canonical."""
        active = np.ones(units.shape, dtype=np.bool_)
        for rule in self._rules:  # those of a parent come before those of its children
            holds = rule.holds(units[:, rule.parent]) & active[:, rule.parent]
            active[:, rule.child] &= holds
        return active

    def _parents_first(self) -> list[int]:
        """Return the columns sorted so that parents precede their children."""
        parents: dict[str, list[str]] = {name: [] for name in self.names}
        for condition in self.conditions:
            for name in (condition.child, condition.parent):
                if name not in self.domains:
                    raise ValueError(
                        f"{condition!r} names {name!r}, which is none of {list(self.domains)}."
                    )
            if condition.child in self.constants:
                raise ValueError(
                    f"{condition!r} has a constant child; make it a Categorical with one choice."
                )
            if condition.parent not in self.constants:
                parents[condition.child].append(condition.parent)
        done: dict[str, None] = {}
        while len(done) < len(parents):
            ready = [n for n in parents if n not in done and done.keys() >= set(parents[n])]
            if not ready:
                cycle = [name for name in parents if name not in done]
                raise ValueError(f"the conditions of {cycle} form a cycle; remove one of them.")
            done.update(dict.fromkeys(ready))
        return [self._column[name] for name in done]

    def _compile(self) -> list[_Rule]:
        """Return the conditions as rules, those of a parent before those of its children."""
        place = {column: position for position, column in enumerate(self._order)}
        ordered = sorted(self.conditions, key=lambda c: place[self._column[c.child]])
        return [self._rule(condition) for condition in ordered if not self._is_settled(condition)]

    def _is_settled(self, condition: AnyCondition) -> bool:
        """Say whether a constant parent fulfils the condition for good."""
        if condition.parent not in self.constants:
            return False
        value = self.constants[condition.parent]
        if isinstance(condition, Condition):
            return match_key(value) in {match_key(allowed) for allowed in condition.values}
        above = condition.low is None or value >= condition.low
        return bool(above and (condition.high is None or value <= condition.high))

    def _rule(self, condition: AnyCondition) -> _Rule:
        child = self._column[condition.child]
        if condition.parent in self.constants:  # not settled: the parent can never fulfil it
            return _Rule(child, child, np.empty(0), np.empty(0))
        parent = self._column[condition.parent]
        domain = self._searched[parent]
        try:
            if isinstance(condition, RangeCondition):
                low, high = domain.unit_interval(condition.low, condition.high)
                return _Rule(child, parent, np.array([low]), np.array([high]))
            if not domain.is_binned:
                raise ValueError("its values cannot be listed; use a RangeCondition.")
            units = domain.to_units(condition.values)
        except ValueError as error:
            raise ValueError(f"{condition!r}, parent {condition.parent!r}: {error}") from error
        return _Rule(child, parent, units - _SAME, units + _SAME)

    def _feature_slices(self) -> list[slice]:
        """Return the columns of each parameter's features, its flag excluded."""
        slices, start = [], 0
        for domain, flagged in zip(self._searched, self._flagged, strict=True):
            slices.append(slice(start, start + domain.n_features))
            start += domain.n_features + flagged
        return slices
