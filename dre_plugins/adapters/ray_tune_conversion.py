"""Between Ray Tune's terms and ours: pure functions of its parameter spaces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.search import sample

from dre_plugins.space.domains import (
    Categorical,
    Constant,
    Domain,
    Float,
    Integer,
    Normal,
    UnsupportedDomainError,
    ordered_choices,
)
from dre_plugins.space.search_space import SearchSpace

_GRID = "grid_search"  # tune.grid_search([1, 2]) is {"grid_search": [1, 2]}


def space_of(param_space: Mapping[str, Any], *, order_numeric_choices: bool = True) -> SearchSpace:
    """Return the search space that a parameter space describes, with "/" between nested keys.

    Args:
        param_space: Ray's domains and constants by name, in dictionaries of any depth.
        order_numeric_choices: See `domain_of`.

    Raises:
        UnsupportedDomainError: A domain cannot be searched, or a key has a "/".
    """
    return SearchSpace(
        {
            name: domain_of(name, domain, order_numeric_choices=order_numeric_choices)
            for name, domain in _flat(param_space).items()
        }
    )


def domain_of(name: str, domain: object, *, order_numeric_choices: bool = True) -> Domain:
    """Return the domain that a domain of Ray Tune describes; other objects are constants.

    Args:
        name: Name of the parameter, for the error message.
        domain: An entry of a parameter space, no dictionary of domains.
        order_numeric_choices: Whether choices that are numbers in ascending order become an
            ordinal domain.

    Raises:
        UnsupportedDomainError: There is no such domain.
    """
    try:
        if isinstance(domain, sample.Float):
            return _float(domain)
        if isinstance(domain, sample.Integer):
            return _integer(domain)
        choices = _choices_of(domain)
        if choices is not None:
            if _has_domain(choices):
                raise UnsupportedDomainError(f"{choices!r} are choices with domains inside.")
            return (
                ordered_choices(choices) if order_numeric_choices else Categorical(tuple(choices))
            )
        if _has_domain(domain):
            raise UnsupportedDomainError(
                f"{domain!r} is not supported; use tune.uniform, tune.randint, tune.choice and "
                "their like, and dictionaries for nested parameters."
            )
    except UnsupportedDomainError as error:
        raise UnsupportedDomainError(f"Parameter {name!r}: {error}") from error
    return Constant(domain)


def _flat(space: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in space.items():
        if "/" in str(key):
            raise UnsupportedDomainError(
                f"Parameter {prefix + key!r} has a '/' in its key, which separates nested keys; "
                "rename it."
            )
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value and not _is_grid(value):
            flat.update(_flat(value, f"{name}/"))
        else:
            flat[name] = value
    return flat


def _float(domain: Any) -> Domain:
    sampler, step = _sampler_of(domain)
    if isinstance(sampler, sample.Normal):
        return Normal(sampler.mean, sampler.sd, step)
    scale = "log" if isinstance(sampler, sample.LogUniform) else "linear"
    if step is None:
        return Float(domain.lower, domain.upper, scale)
    low, high = _multiples(domain.lower, domain.upper, step)
    return Float(low * step, high * step, scale, step)


def _integer(domain: Any) -> Domain:
    sampler, step = _sampler_of(domain)
    scale = "log" if isinstance(sampler, sample.LogUniform) else "linear"
    if step is None or step == 1:  # the upper end is excluded
        return Integer(domain.lower, domain.upper - 1, scale)
    low, high = _multiples(domain.lower, domain.upper, step)
    return Integer(int(low * step), int(high * step), scale, int(step))


def _sampler_of(domain: Any) -> tuple[Any, Any]:
    """Return what draws, and the step of a quantised domain."""
    sampler: Any = domain.get_sampler()
    is_quantised = isinstance(sampler, sample.Quantized)
    return (sampler.get_sampler(), sampler.q) if is_quantised else (sampler, None)


def _multiples(low: float, high: float, step: float) -> tuple[int, int]:
    """Return the first and the last multiple of a step in a range, in steps."""
    return math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)


def _choices_of(domain: object) -> Sequence[Any] | None:
    if isinstance(domain, sample.Categorical):
        return domain.categories
    return domain[_GRID] if isinstance(domain, Mapping) and _is_grid(domain) else None


def _is_grid(item: object) -> bool:
    return isinstance(item, Mapping) and item.keys() == {_GRID}


def _has_domain(item: object) -> bool:
    if isinstance(item, Mapping):
        return any(_has_domain(value) for value in item.values())
    if isinstance(item, (list, tuple)):
        return any(_has_domain(value) for value in item)
    return isinstance(item, sample.Domain)
