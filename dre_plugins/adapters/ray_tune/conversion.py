"""Convert Ray Tune's parameter spaces and configurations.

A parameter space of Ray is a tree of dictionaries, lists and choices with domains at the leaves.
Our search space is flat. `ParamSpace` holds both, and converts configurations in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ray.tune.search import sample
from ray.tune.search.repeater import TRIAL_INDEX

from dre_plugins.adapters.common.domains import choice_of, float_of, holds, multiples
from dre_plugins.adapters.ray_tune import tree
from dre_plugins.checks import require
from dre_plugins.space import (
    Categorical,
    Constant,
    Domain,
    Integer,
    Normal,
    SearchSpace,
    UnsupportedDomainError,
)
from dre_plugins.space.base import distinct_values, match_key, naming_parameter
from dre_plugins.space.conditions import Condition

_GRID = "grid_search"  # tune.grid_search([1, 2]) is {"grid_search": [1, 2]}
_SCALARS = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class ParamSpace:
    """Hold a parameter space of Ray Tune as a flat search space and as a tree.

    Names are flat, with "/" between nested keys and indices of lists. A choice with domains inside
    becomes a categorical parameter and parameters that are active for some of its values only. If
    its branches are dictionaries that a key tells apart, as "name" does in
    ``tune.choice([{"name": "sgd", "lr": …}, {"name": "adam", "lr": …}])``, that key is the
    parameter, so that configurations and results have the same flat names. Branches share a
    parameter of theirs if its domain is the same. Otherwise they have one each, "opt/lr" and
    "opt[1]/lr"; `paths` says that the second is "opt/lr" in results.
    """

    space: SearchSpace
    root: tree.Group
    paths: Mapping[str, str]

    @classmethod
    def of(
        cls, param_space: Mapping[str, Any], *, ordered: bool = True, for_results: bool = False
    ) -> ParamSpace:
        """Return the parameter space of domains and constants by name, nested in any way."""
        is_mapping = isinstance(param_space, Mapping)
        require(is_mapping, "space", param_space, "a dictionary of Ray Tune's domains")
        layout = _Layout(ordered, for_results=for_results)
        root = layout.group(param_space, _ROOT)
        return cls(layout.space(), root, layout.paths())

    @classmethod
    def of_results(cls, param_space: Mapping[str, Any]) -> ParamSpace:
        """Return the parameter space of results of any searcher; a grid becomes choices.

        What `tune.sample_from` draws is no parameter. An UnsupportedDomainError says that a domain
        cannot be searched, is inside of a list or of a choice whose dictionaries no key tells
        apart, or that a key has a "/".
        """
        try:
            return cls.of(param_space, for_results=True)
        except UnsupportedDomainError as error:
            remedy = "Leave the space out: it is inferred from results."
            raise UnsupportedDomainError(f"{error} {remedy}") from error

    def to_config(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Return Ray's nested configuration, with constants, of a flat one."""
        return dict(self.root.config(configuration))

    def to_configuration(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the flat values of the parameters that a configuration of Ray names.

        It may be nested or have "/" between the keys, may be partial, and may have constants. A
        part of a branch stands for the first branch that it fits. A ValueError says that a name or
        choice is unknown, or that a constant has another value.
        """
        return self.root.read(tree.nested({k: v for k, v in config.items() if k != TRIAL_INDEX}))

    def joined(self, given: ParamSpace) -> ParamSpace:
        """Return the space of a `DRESearch` with the constants of its Tuner's added.

        A ValueError says that the Tuner's has other parameters, or other domains of them.
        """
        if given.space.n_parameters and _searched(given.space) != _searched(self.space):
            raise ValueError(
                f"DRESearch searches {list(self.space.names)} already, and the param_space of the "
                f"Tuner has other domains, of {list(given.space.names)}; give all of them in one "
                "place, and use a new DRESearch for a new param_space."
            )
        return replace(self, root=self.root.beside(given.root))


def _searched(space: SearchSpace) -> tuple[object, object]:
    domains = {name: space.domains[name] for name in space.names}
    return domains, {condition.child: condition for condition in space.conditions}


# ---- domains


def domain_of(name: str, domain: object, *, ordered: bool = True) -> Domain:
    """Return the domain that a domain of Ray Tune describes; other objects are constants.

    An UnsupportedDomainError says that there is no such domain.
    """
    with naming_parameter(name):
        if isinstance(domain, sample.Float):
            return _float(domain)
        if isinstance(domain, sample.Integer):
            return _integer(domain)
        choices = _choices_of(domain)
        if choices is not None:
            if _has_domain(choices):
                raise UnsupportedDomainError(f"{choices!r} are choices with domains inside.")
            return choice_of(name, choices, ordered=ordered)
        if _has_domain(domain):
            raise UnsupportedDomainError(
                f"{domain!r} is not supported; use tune.uniform, tune.randint, tune.choice and "
                "their like, and dictionaries for nested parameters."
            )
    return Constant(domain)


def _float(domain: Any) -> Domain:
    sampler, step = _sampler_of(domain)
    if isinstance(sampler, sample.Normal):
        return Normal(sampler.mean, sampler.sd, step)
    scale = "log" if isinstance(sampler, sample.LogUniform) else "linear"
    return float_of(domain.lower, domain.upper, scale, step)


def _integer(domain: Any) -> Domain:
    sampler, step = _sampler_of(domain)
    scale = "log" if isinstance(sampler, sample.LogUniform) else "linear"
    low, high = _whole(domain.lower), _whole(domain.upper)
    step = 1 if step is None else _whole(step)
    Integer(low, high, scale, step)  # says what is wrong with the bounds
    if step == 1:
        if low == high:
            raise UnsupportedDomainError(
                f"no integer is at least {low!r} and below {high!r}; the upper end is excluded."
            )
        return Integer(low, high - 1, scale)
    first, last = multiples(low, high, step)
    return Integer(first * step, last * step, scale, step)


def _whole(number: Any) -> Any:
    """Return whole floats such as 1e6, which Ray accepts, as integers; `Integer` checks others."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _sampler_of(domain: Any) -> tuple[Any, Any]:
    """Return the sampler of a domain, and the step of a quantised one."""
    sampler: Any = domain.get_sampler()
    is_quantised = isinstance(sampler, sample.Quantized)
    return (sampler.get_sampler(), sampler.q) if is_quantised else (sampler, None)


def _choices_of(domain: object) -> Sequence[Any] | None:
    if isinstance(domain, sample.Categorical):
        return domain.categories
    return domain[_GRID] if isinstance(domain, Mapping) and _is_grid(domain) else None


def _is_grid(item: object) -> bool:
    return isinstance(item, Mapping) and item.keys() == {_GRID}


def _has_domain(item: object) -> bool:
    return holds(item, lambda part: isinstance(part, sample.Domain) or _is_grid(part))


# ---- laying out a tree


@dataclass(frozen=True)
class _Place:
    """Say where something is in a parameter space."""

    names: tuple[str, ...]  # possible names of a parameter there, best first
    path: str  # its name in results
    parent: str | None = None  # the parameter that decides whether it is active
    label: Any = None  # the value of the parent for which it is active

    def at(self, key: object) -> _Place:
        names = tuple(tree.path(name, key) for name in self.names)
        return replace(self, names=names, path=tree.path(self.path, key))


_ROOT = _Place(("",), "")


class _Layout:
    """Collect the flat parameters of a parameter space while its tree is built."""

    def __init__(self, ordered: bool, *, for_results: bool = False) -> None:
        self._ordered = ordered
        self._for_results = for_results
        self._domains: dict[str, Domain] = {}
        # Of each parameter; several if branches share it.
        self._places: dict[str, list[_Place]] = {}

    def paths(self) -> dict[str, str]:
        """Return the names of parameters in results, where they are others."""
        paths = {name: places[0].path for name, places in self._places.items()}
        return {name: path for name, path in paths.items() if path != name}

    def space(self) -> SearchSpace:
        """Return the search space of the parameters."""
        conditions = [
            Condition(name, places[0].parent, tuple(place.label for place in places))
            for name, places in self._places.items()
            if places[0].parent is not None and not self._is_always_active(places)
        ]
        return SearchSpace(self._domains, conditions)

    def _is_always_active(self, places: Sequence[_Place]) -> bool:
        parent = str(places[0].parent)
        n_values = self._domains[parent].n_values
        return self._places[parent][0].parent is None and len(places) == n_values

    def group(self, value: Mapping[str, Any] | Sequence[Any], place: _Place) -> tree.Group:
        """Lay out a container that has domains inside."""
        is_mapping = isinstance(value, Mapping)
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        parts: dict[Any, tree.Node] = {}
        for key, entry in entries:
            inner = place.at(key)
            if "/" in str(key):
                raise UnsupportedDomainError(
                    f"Parameter {inner.names[0]!r} has a '/' in its key, which separates nested "
                    "keys; rename it."
                )
            if not (self._for_results and isinstance(entry, sample.Function)):
                parts[key] = self._node(entry, inner)
        kind = dict if is_mapping else tuple if isinstance(value, tuple) else list
        return tree.Group(place.names[0], kind, parts)

    def _node(self, value: Any, place: _Place) -> tree.Node:
        name = place.names[0]
        has_domain = _has_domain(value)
        if not self._for_results:
            if isinstance(value, sample.Function):
                raise UnsupportedDomainError(
                    f"Parameter {name!r} is a tune.sample_from, which a searcher cannot draw; "
                    "put it into the param_space of the Tuner, which does."
                )
            if _is_grid(value):
                raise UnsupportedDomainError(
                    f"Parameter {name!r} is a tune.grid_search, which is for searching without "
                    f"a searcher; use tune.choice({value[_GRID]!r})."
                )
            if isinstance(value, (list, tuple)) and has_domain:
                return self.group(value, place)
        if isinstance(value, sample.Categorical) and _has_domain(value.categories):
            # Without such a key, results have no value of the parameter that decides.
            if not self._for_results or _key_that_tells_apart(value.categories) is not None:
                return self._choice(value.categories, place)
        if isinstance(value, Mapping) and not _is_grid(value) and value:
            # Constants of a dictionary are known by their names, unless they depend on a choice.
            if has_domain or (place.parent is None and type(value) is dict):
                return self.group(value, place)
        domain = domain_of(name, value, ordered=self._ordered)
        if not isinstance(domain, Constant):
            return tree.Parameter(self._add(domain, place), domain)
        if place.parent is None and not tree.is_placeholder(value):
            self._add(domain, place)
        return tree.Fixed(name, value)

    def _choice(self, choices: Sequence[Any], place: _Place) -> tree.Choice:
        choices = distinct_values(choices)
        key = _key_that_tells_apart(choices)
        if key is not None:
            labels = [choice[key] for choice in choices]
            parameter = self._add(Categorical(tuple(labels)), place.at(key), is_parent=True)
            name = parameter.removesuffix(f"/{key}")
        else:
            labels = [
                f"choice {i}" if _has_domain(choice) else choice
                for i, choice in enumerate(choices)
            ]
            name = parameter = self._add(Categorical(tuple(labels)), place, is_parent=True)
        branches = [
            self._node(choice, _Place((name, f"{name}[{i}]"), place.path, parameter, label))
            for i, (choice, label) in enumerate(zip(choices, labels, strict=True))
        ]
        return tree.Choice(place.names[0], parameter, tuple(labels), tuple(branches))

    def _add(self, domain: Domain, place: _Place, *, is_parent: bool = False) -> str:
        """Add a parameter, or a further branch in which it is active, and return its name."""
        for name in place.names:
            if name not in self._domains:
                self._domains[name], self._places[name] = domain, [place]
                return name
            # A parent is not shared, as its children may differ between the branches.
            if not is_parent and self._is_in_another_branch(name, domain, place):
                self._places[name].append(place)
                return name
        raise UnsupportedDomainError(f"Parameter {place.names[0]!r} is there twice; rename one.")

    def _is_in_another_branch(self, name: str, domain: Domain, place: _Place) -> bool:
        places = self._places[name]
        return (
            place.parent is not None
            and places[0].parent == place.parent
            and self._domains[name] == domain
            and match_key(place.label) not in [match_key(other.label) for other in places]
        )


def _key_that_tells_apart(choices: Sequence[Any]) -> Any:
    """Return the first key under which every choice has another plain value, or None."""
    if not all(isinstance(choice, Mapping) for choice in choices):
        return None
    for key in choices[0]:
        values = [choice.get(key, choices) for choice in choices]
        is_plain = all(isinstance(value, _SCALARS) for value in values)
        if is_plain and len({match_key(value) for value in values}) == len(values):
            return key
    return None
