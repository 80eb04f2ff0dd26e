"""A search space: named domains with conditions, as arrays of units and of features.

Notation: `N` or `C` configurations, `P` parameters (constants excluded), `D` features. The two
coordinate systems are explained in ``docs/architecture.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, compress
from operator import add
from typing import Any

import numpy as np

from dre_plugins.space import serial
from dre_plugins.space.base import Array, Domain, Features, Mask, spanned
from dre_plugins.space.conditions import Activity, AnyCondition
from dre_plugins.space.discrete import Constant

# Counting enumerates all joint values of the parents; with more than this, a space counts as never
# exhausted.
_MAX_PARENT_ROWS = 2**16
_MAX_COUNT = 2**53


class SearchSpace:
    """Named domains, the conditions under which they are active, and their encodings.

    Args:
        domains: One domain for each parameter, in an order that is kept.
        conditions: When a parameter is active; several conditions of one parameter must all hold.
        optional: Parameters that may be absent from a configuration for no known reason.
        spans: Lowest and highest unit, by name of a parameter, which have the features 0 and 1; by
            default those of its range. Values observed out of the range need wider ones.

    Raises:
        ValueError: If a domain is no `Domain`, a condition or `optional` names an unknown
            parameter or value, or conditions form a cycle.

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
        spans: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.domains = dict(domains)
        self.conditions = tuple(conditions)
        self.optional = frozenset(optional)
        self.spans = dict(spans or {})
        for name, domain in self.domains.items():
            if not isinstance(domain, Domain):
                raise ValueError(f"parameter {name!r} must be a Domain, got {domain!r}.")
        self.constants = {
            name: domain.value
            for name, domain in self.domains.items()
            if isinstance(domain, Constant)
        }
        self.names = tuple(name for name in self.domains if name not in self.constants)
        self._searched = [self.domains[name] for name in self.names]
        unknown = sorted(self.optional - set(self.names))
        if unknown:
            raise ValueError(f"optional names {unknown}, which are no parameters: {self.names}.")
        self._activity = Activity(self.domains, self.conditions)
        conditional = {condition.child for condition in self.conditions}
        self._flagged = [name in conditional or name in self.optional for name in self.names]
        widths = [domain.n_features for domain in self._searched]
        starts = accumulate(map(add, widths, self._flagged), initial=0)
        # The columns of each parameter's features, its flag excluded.
        self._slices = [slice(start, start + n) for start, n in zip(starts, widths, strict=False)]

    # ---- sizes and names

    @property
    def n_parameters(self) -> int:
        """Return the number of parameters `P`, constants excluded."""
        return len(self.names)

    @cached_property
    def n_features(self) -> int:
        """Return the number of features `D`."""
        return sum(domain.n_features for domain in self._searched) + sum(self._flagged)

    @cached_property
    def continuous(self) -> dict[int, int]:
        """Return the feature of each parameter without bins, whose value is the coordinate."""
        places = enumerate(zip(self._searched, self._slices, strict=True))
        return {column: place.start for column, (domain, place) in places if not domain.is_binned}

    @cached_property
    def category_features(self) -> tuple[slice, ...]:
        """Return the features of each categorical parameter, activity flags excluded."""
        places = zip(self._searched, self._slices, strict=True)
        return tuple(place for domain, place in places if not domain.is_ordered)

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
        n_values = [domain.n_values for domain in self._searched]
        if any(n is None or n > _MAX_COUNT for n in n_values):
            return None
        parents = sorted({rule.parent for rule in self._activity.rules})
        rows = self.assignments(_MAX_PARENT_ROWS, parents)
        if rows is None:
            return None
        sizes = [1.0 if column in parents else float(n or 1) for column, n in enumerate(n_values)]
        with np.errstate(over="ignore"):
            total = np.where(self._activity.of(rows), np.array(sizes), 1.0).prod(axis=1).sum()
        return int(total) if total <= _MAX_COUNT else None

    @cached_property
    def choices(self) -> tuple[int, ...]:
        """Return the columns of categorical parameters on which others depend."""
        parents = {rule.parent for rule in self._activity.rules if rule.parent != rule.child}
        return tuple(column for column in sorted(parents) if not self._searched[column].is_ordered)

    def leading_to(self, column: int, place: float, examples: Array) -> Array:
        """Return coordinates `[P]` of a parameter and of those that make it active, NaN elsewhere.

        They are taken from the first of the canonical `examples` `[N, P]` in which the parameter
        is active, or, without any, from the first possible configuration.
        """
        ancestors = self._activity.ancestors(column)
        examples = examples[~np.isnan(examples[:, column])]
        if not len(examples) and ancestors:
            possible = self.assignments(_MAX_PARENT_ROWS, sorted(ancestors))
            if possible is not None:
                examples = possible[self._activity.of(possible)[:, column]]
        units = np.full(self.n_parameters, np.nan)
        if len(examples):
            units[sorted(ancestors)] = examples[0, sorted(ancestors)]
        units[column] = place
        return units

    # ---- configurations <-> units

    def to_units(self, configurations: Sequence[Mapping[str, Any]]) -> Array:
        """Return the canonical units of configurations, `[N, P]`.

        A parameter that is absent or inactive is NaN; names that the space does not know are
        ignored.

        Raises:
            ValueError: If a value can never belong to its domain.
        """
        units = np.full((len(configurations), self.n_parameters), np.nan)
        # Values of inactive parameters are not checked.
        for column in self._activity.parents_first:
            name, active = self.names[column], self._activity.of(units)[:, column].tolist()
            rows = [
                row
                for row, configuration in enumerate(configurations)
                if active[row] and name in configuration
            ]
            values = [configurations[row][name] for row in rows]
            try:
                units[rows, column] = self._searched[column].to_units(values)
            except ValueError as error:
                raise ValueError(f"parameter {name!r}: {error}") from error
        return units

    def to_configuration(self, units: Array, *, include_inactive: bool = False) -> dict[str, Any]:
        """Return the configuration at full or canonical units `[P]`, constants included, in order.

        NaN leaves a parameter out; inactive ones are decoded on request, if their unit is known.
        """
        return self.to_configurations(
            np.asarray(units, dtype=np.float64)[None], include_inactive=include_inactive
        )[0]

    def to_configurations(
        self, units: Array, *, include_inactive: bool = False
    ) -> list[dict[str, Any]]:
        """Return the configurations at `units` `[C, P]`, see `to_configuration`."""
        is_decoded = ~np.isnan(units)
        if not include_inactive:
            is_decoded &= self.active(units)
        configurations: list[dict[str, Any]] = [{} for _ in units]
        columns = {name: column for column, name in enumerate(self.names)}
        for name, domain in self.domains.items():
            if name in self.constants:
                for configuration in configurations:
                    configuration[name] = self.constants[name]
                continue
            rows = np.flatnonzero(is_decoded[:, columns[name]])
            values = domain.from_units(units[rows, columns[name]])
            for row, value in zip(rows.tolist(), values, strict=True):
                configurations[row][name] = value
        return configurations

    # ---- units -> activity, canonical units, features

    def active(self, units: Array) -> Mask:
        """Say which parameters the conditions leave active, `[C, P]` -> `[C, P]`."""
        snapped = np.array(units, dtype=np.float64)
        for column in {rule.parent for rule in self._activity.rules}:
            snapped[:, column] = self._searched[column].snap(snapped[:, column])
        return self._activity.of(snapped)

    def canonical(self, units: Array) -> Array:
        """Return units that are equal iff the configurations are, `[C, P]` -> `[C, P]`.

        Every coordinate moves to the centre of its value's bin; inactive parameters become NaN.
        """
        snapped = np.empty(units.shape)
        for column, domain in enumerate(self._searched):
            snapped[:, column] = domain.snap(units[:, column])
        snapped[~self._activity.of(snapped)] = np.nan
        return snapped

    def features(self, units: Array) -> Features:
        """Return the features of canonical units, `[C, P]` -> float32 `[C, D]`.

        A missing parameter has the feature 0.5 (zeros for a categorical one) and the flag 0.
        """
        features = np.empty((len(units), self.n_features), dtype=np.float32)
        for column, (domain, place) in enumerate(zip(self._searched, self._slices, strict=True)):
            features[:, place] = domain.features(units[:, column])
            if span := self.spans.get(self.names[column]):
                features[:, place.start] = spanned(units[:, column], *span)
            if self._flagged[column]:
                features[:, place.stop] = ~np.isnan(units[:, column])
        return features

    def assignments(self, limit: int, columns: Sequence[int] | None = None) -> Array | None:
        """Return all distinct canonical units, `[C, P]`, or None if there are more than `limit`.

        Given `columns`, only these vary, with every parent of each; the others stay NaN.
        """
        varied = set(range(self.n_parameters) if columns is None else columns)
        rows = np.full((1, self.n_parameters), np.nan)
        for column in self._activity.parents_first:
            if column not in varied:
                continue
            domain = self._searched[column]
            active = self._activity.of(rows)[:, column]
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
        """Say whether every active parameter has a value of its domain.

        Inactive parameters, absent constants and names that the space does not know are ignored.
        """
        try:
            units = self.to_units([configuration])
        except ValueError:
            return False
        active = compress(self.names, self._activity.of(units)[0])
        may_lack = self.optional | self.constants.keys()
        return all(
            self.domains[name].contains(configuration[name])
            if name in configuration
            else name in may_lack
            for name in (*active, *self.constants)
        )

    # ---- identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return (
            list(self.domains.items()) == list(other.domains.items())
            and self.conditions == other.conditions
            and self.optional == other.optional
            and self.spans == other.spans
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [repr(self.domains)]
        parts += [f"conditions={self.conditions!r}"] if self.conditions else []
        parts += [f"optional={sorted(self.optional)!r}"] if self.optional else []
        return f"SearchSpace({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the space as strict JSON values; a ValueError names a value that has none."""
        return {
            "domains": {name: serial.to_dict(name, part) for name, part in self.domains.items()},
            "conditions": [serial.to_dict(part.child, part) for part in self.conditions],
            "optional": sorted(self.optional),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> SearchSpace:
        """Rebuild a space from `to_dict`; a ValueError names a kind that is unknown."""
        return cls(
            {name: serial.from_dict(domain) for name, domain in state["domains"].items()},
            [serial.from_dict(condition) for condition in state["conditions"]],
            state["optional"],
        )
