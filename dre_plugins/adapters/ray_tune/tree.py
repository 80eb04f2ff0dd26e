"""The tree of a parameter space of Ray Tune: how its configurations are nested.

Each part of a parameter space has two methods. `config` returns its part of Ray's configuration,
from flat values. `read` returns the flat values of that, or of a part of it; a ValueError says
that it does not belong here, or, if `is_strict`, that it is out of range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dre_plugins.adapters.common.domains import holds, without_tuples
from dre_plugins.space import Categorical, Domain, Float, Integer, Normal, Ordinal
from dre_plugins.space.base import match_key
from dre_plugins.space.ranges import is_finite

# A Tuner hides functions and other objects from searchers behind a pair of a token and a hash.
_OBJECT = "__ref_ph"
_PLACEHOLDERS = ("__fn_ph", _OBJECT)


@dataclass(frozen=True)
class Fixed:
    """A constant."""

    name: str
    value: Any

    def config(self, configuration: Mapping[str, Any]) -> Any:
        return self.value

    def read(self, given: Any, *, is_strict: bool = False) -> dict[str, Any]:
        # Exactly first, so that a part of one branch is not taken for the whole of another.
        belongs = _is_same if is_strict else _is_part
        if not is_placeholder(self.value) and not belongs(given, self.value):
            raise ValueError(
                f"{self.name!r} is the constant {self.value!r}, got {given!r}; leave it out."
            )
        return {}


@dataclass(frozen=True)
class Parameter:
    """A domain."""

    name: str
    domain: Domain

    @property
    def choices(self) -> list[Any]:
        is_listed = isinstance(self.domain, (Categorical, Ordinal))
        return self.domain.all_values() if is_listed else []

    def config(self, configuration: Mapping[str, Any]) -> Any:
        return configuration[self.name]

    def read(self, given: Any, *, is_strict: bool = False) -> dict[str, Any]:
        given = _plain_number(self.domain, given)
        if self.domain.contains(given):
            return {self.name: given}
        choices = self.choices
        for choice in choices:
            if _is_same(given, choice):
                return {self.name: choice}
        try:
            self.domain.to_unit(given)
        except ValueError as error:
            hint = ""
            if any(map(is_placeholder, choices)):
                hint = (
                    " A Tuner hides objects from searchers; give the space to "
                    "DRESearch(space=…) instead of as param_space."
                )
            raise ValueError(f"Parameter {self.name!r}: {error}{hint}") from error
        if is_strict:
            raise ValueError(f"Parameter {self.name!r}: {given!r} is not in {self.domain!r}.")
        return {self.name: given}


@dataclass(frozen=True)
class Group:
    """Parts by key or by index: a dictionary, a list or a tuple."""

    name: str
    kind: type
    parts: Mapping[Any, Node]

    def config(self, configuration: Mapping[str, Any]) -> Any:
        config = {key: part.config(configuration) for key, part in self.parts.items()}
        return config if self.kind is dict else self.kind(config.values())

    def read(self, given: Any, *, is_strict: bool = False) -> dict[str, Any]:
        if self.kind is not dict and isinstance(given, (list, tuple)):
            if len(given) != len(self.parts):
                raise ValueError(f"{self.name!r} needs {len(self.parts)} items, got {given!r}.")
            given = dict(enumerate(given))
        if not isinstance(given, Mapping):
            raise ValueError(f"{self.name!r} must be a {self.kind.__name__}, got {given!r}.")
        parts = {str(key): part for key, part in self.parts.items()}
        values: dict[str, Any] = {}
        for key, value in given.items():
            if str(key) not in parts:
                raise ValueError(
                    f"There is no parameter {path(self.name, key)!r}; "
                    f"there are {[path(self.name, part) for part in parts]}."
                )
            values.update(parts[str(key)].read(value, is_strict=is_strict))
        return values

    def beside(self, other: Node | None) -> Group:
        """Return a dictionary with the additional constants of another one."""
        if not isinstance(other, Group) or self.kind is not dict or other.kind is not dict:
            return self
        both = {
            key: part.beside(other.parts.get(key)) if isinstance(part, Group) else part
            for key, part in self.parts.items()
        }
        return replace(self, parts={**other.parts, **both})


@dataclass(frozen=True)
class Choice:
    """Alternative parts; the value of a parameter decides which one is present."""

    name: str
    parameter: str
    labels: tuple[Any, ...]
    branches: tuple[Node, ...]

    def config(self, configuration: Mapping[str, Any]) -> Any:
        chosen = match_key(configuration[self.parameter])
        place = [match_key(label) for label in self.labels].index(chosen)
        return self.branches[place].config(configuration)

    def read(self, given: Any, *, is_strict: bool = False) -> dict[str, Any]:
        errors: list[str] = []
        for strictly in [True] if is_strict else [True, False]:
            errors = []
            for label, branch in zip(self.labels, self.branches, strict=True):
                try:
                    return {self.parameter: label, **branch.read(given, is_strict=strictly)}
                except ValueError as error:
                    errors.append(str(error))
        raise ValueError(f"{given!r} is no choice of {self.name!r}: {' '.join(errors)}")


Node: TypeAlias = Fixed | Parameter | Group | Choice


def path(name: str, key: object) -> str:
    """Return the flat name of an entry."""
    return f"{name}/{key}" if name else str(key)


def nested(config: Mapping[str, Any]) -> dict[Any, Any]:
    """Return a configuration with "/" in some of its keys as one without."""
    merged: dict[Any, Any] = {}
    for key, value in config.items():
        first, *inner = key.split("/") if isinstance(key, str) else [key]
        for part in reversed(inner):
            value = {part: value}
        merged = _merged(merged, {first: value})
    return merged


def _merged(first: Any, other: Any) -> Any:
    if not (isinstance(first, Mapping) and isinstance(other, Mapping)):
        return other
    return {**first, **{k: _merged(first[k], v) if k in first else v for k, v in other.items()}}


def hidden_in(node: Node) -> list[str]:
    """Return the names of choices and constants with objects that a Tuner hides.

    What `tune.sample_from` draws is not among them, as nobody knows it before the trial.
    """
    if isinstance(node, (Fixed, Parameter)):
        content = node.value if isinstance(node, Fixed) else node.choices
        return [node.name] if holds(content, _is_object) else []
    inner = node.parts.values() if isinstance(node, Group) else node.branches
    return [*dict.fromkeys(name for part in inner for name in hidden_in(part))]


def is_placeholder(value: object) -> bool:
    """Say whether a Tuner has put this in place of an object or a function."""
    return isinstance(value, tuple) and len(value) == 2 and value[0] in _PLACEHOLDERS


def _is_object(value: Any) -> bool:
    return is_placeholder(value) and value[0] == _OBJECT


def _plain_number(domain: Domain, given: Any) -> Any:
    """Return a number in the type that a trial gets: Python's, an int for integer domains."""
    if not is_finite(given):
        return given
    if isinstance(domain, Integer) and float(given).is_integer():
        return int(given)
    return float(given) if isinstance(domain, (Float, Normal)) else given


def _is_same(value: Any, other: Any) -> bool:
    """Say whether values are equal, by type too; files of Ray have lists instead of tuples."""
    return match_key(without_tuples(value)) == match_key(without_tuples(other))


def _is_part(value: Any, whole: Any) -> bool:
    """Say whether a value is the same as another or, of a dictionary, has some of its entries."""
    if isinstance(value, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and _is_part(item, whole[key]) for key, item in value.items())
    # The object behind a placeholder is unknown here.
    return is_placeholder(whole) or _is_same(value, whole)
