"""Checks of configurations that a user gives against the search space."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dre_plugins.checks import is_real, require
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.base import Domain, match_key, naming_parameter
from dre_plugins.space.discrete import Categorical, ordered_choices
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import distinct


def space_of(
    given: SearchSpace | Mapping[str, Domain | Sequence[Any]], *, ordered: bool
) -> SearchSpace:
    """Return a search space; if `ordered`, choices that are ascending numbers become ordinal.

    A ValueError says that it is none, or that a name is no string.
    """
    if isinstance(given, SearchSpace):
        return given
    is_space = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
    remedy = "a SearchSpace, or domains or lists of choices by parameter name"
    require(is_space, "space", given, remedy)
    return SearchSpace({name: _domain_of(name, part, ordered) for name, part in given.items()})


def _domain_of(name: str, given: Domain | Sequence[Any], ordered: bool) -> Domain:
    if isinstance(given, Domain):
        return given
    # A pair of numbers is more likely a range, as other libraries take it.
    is_range = isinstance(given, tuple) and len(given) == 2 and all(map(is_real, given))
    is_list = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    remedy = "a domain of dre_plugins.space, such as Float(0.0, 1.0), or a list of choices"
    require(is_list and not is_range, f"Parameter {name!r}", given, remedy)
    with naming_parameter(name):
        return ordered_choices(given, name) if ordered else Categorical(given)  # type: ignore[arg-type]


def out_of_range(space: SearchSpace, configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return a warning for each parameter of a configuration that is out of range.

    A ValueError says that there is no such parameter, or that it can never have such a value.
    """
    require(isinstance(configuration, Mapping), "configuration", configuration, "values by name")
    unknown = [name for name in configuration if name not in space.domains]
    require(not unknown, "configuration", unknown, f"made of {[*space.domains]}")
    outside = {}
    for name, value in configuration.items():
        domain = space.domains[name]
        if name in space.constants:
            constant = space.constants[name]
            is_same = match_key(value) == match_key(constant)
            require(is_same, name, value, f"{constant!r}, which is a constant")
            continue
        try:
            domain.to_unit(value)
        except ValueError as error:
            raise ValueError(f"{name} must be in {domain}: {error}") from error
        if not domain.contains(value):
            outside[name] = (
                f"{name}={value!r} is not in {domain!r}: it is used as it is, but no model "
                "suggests it."
            )
    return outside


def missing(space: SearchSpace, configuration: Mapping[str, Any]) -> list[str]:
    """Return the active parameters that a configuration lacks."""
    return [
        name
        for name in _active(space, configuration)
        if name not in configuration and name not in space.optional
    ]


def active_part(space: SearchSpace, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of constants, and of parameters that are active."""
    active = {*_active(space, configuration), *space.constants}
    return {name: value for name, value in configuration.items() if name in active}


def complete(space: SearchSpace, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return `active_part`; a ValueError says that an active parameter is missing."""
    lacking = missing(space, configuration)
    require(not lacking, "configuration", dict(configuration), f"complete, it lacks {lacking}")
    return active_part(space, configuration)


def nearest(space: SearchSpace, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the nearest possible number in place of one out of range."""
    near = {}
    for name, value in configuration.items():
        domain = space.domains[name]
        is_inside = domain.contains(value)
        near[name] = value if is_inside else domain.from_unit(domain.to_unit(value))
    return near


def within(configuration: Mapping[str, Any], domains: Mapping[str, Domain]) -> dict[str, Any]:
    """Return the values that are in their domains, around which the model can search."""
    return {
        name: value
        for name, value in configuration.items()
        if name in domains and domains[name].contains(value)
    }


def agree(configuration: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether configurations have equal values of the parameters that both have."""
    shared = configuration.keys() & other.keys()
    return all(match_key(configuration[name]) == match_key(other[name]) for name in shared)


def has_tried_all(rule: Rule, trials: Sequence[Trial]) -> bool:
    """Return whether every valid configuration of a finite space is among the trials'."""
    space, n = rule.space, rule.n_configurations
    if not space.n_parameters or n is None or len(trials) < n:
        return False
    inside = [trial.configuration for trial in trials if space.contains(trial.configuration)]
    valid = rule.kept(space.to_units(inside))
    return int(distinct(valid).sum()) >= n


def _active(space: SearchSpace, configuration: Mapping[str, Any]) -> list[str]:
    is_active = space.active(space.to_units([configuration]))[0]
    return [name for name, is_on in zip(space.names, is_active, strict=True) if is_on]
