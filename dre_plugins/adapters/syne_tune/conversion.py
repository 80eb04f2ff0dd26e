"""Convert Syne Tune's configuration spaces and configurations."""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import Any

from syne_tune import config_space as syne_tune

from dre_plugins.adapters.common.domains import choice_of, float_of, holds, multiples
from dre_plugins.space import Constant, Domain, Integer, Ordinal, UnsupportedDomainError
from dre_plugins.space.base import match_key, naming_parameter
from dre_plugins.space.search_space import SearchSpace

# Errors of Syne Tune's `cast` for a value that a domain cannot have.
_CAST_ERRORS = (ArithmeticError, AssertionError, TypeError, ValueError)


def space_of(config_space: Mapping[str, Any], *, ordered: bool = True) -> SearchSpace:
    """Return the search space that a configuration space describes, see `domain_of`."""
    return SearchSpace(
        {name: domain_of(name, domain, ordered=ordered) for name, domain in config_space.items()}
    )


def domain_of(name: str, domain: object, *, ordered: bool = True) -> Domain:
    """Return the domain that a domain of Syne Tune describes; other objects are constants.

    Values of a nearest-neighbour ordinal and of a finite range are equally likely here. An
    UnsupportedDomainError says that a domain cannot be searched, or is inside a container.
    """
    with naming_parameter(name):
        if isinstance(domain, (syne_tune.Float, syne_tune.Integer)):
            return _numeric(domain)
        if isinstance(domain, (syne_tune.FiniteRange, syne_tune.OrdinalNearestNeighbor)):
            is_range = isinstance(domain, syne_tune.FiniteRange)
            values = domain.values if is_range else domain.categories
            # Rounding to integers may repeat values, and make some that are cast to others: of
            # logfinrange(1, 100, 11, cast_int=True), trials get 3 in place of 2.
            kept = dict.fromkeys(value for value in values if domain.cast(value) == value)
            return Ordinal(tuple(kept), "log" if domain.log_scale else "linear")
        if isinstance(domain, syne_tune.Categorical):
            choices = domain.categories
            _check_choices(domain, choices)
            if isinstance(domain, syne_tune.Ordinal):
                return Ordinal(choices)
            return choice_of(name, choices, ordered=ordered)
        if holds(domain, lambda part: isinstance(part, syne_tune.Domain)):
            raise UnsupportedDomainError(
                f"{domain!r} is not supported; use Float, Integer, Categorical, Ordinal or "
                "FiniteRange at the top level, with names such as 'optimiser/lr' for nested ones."
            )
    return Constant(domain)


def cast(configuration: Mapping[str, Any], config_space: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the values that a trial would get, by Syne Tune's own `cast`.

    Constants and unknown names stay as they are. A ValueError says that a parameter can never have
    its value.
    """
    values = dict(configuration)
    for name, value in configuration.items():
        domain = config_space.get(name)
        if not isinstance(domain, syne_tune.Domain):
            continue
        try:
            values[name] = domain.cast(value)
        except _CAST_ERRORS as error:
            raise ValueError(f"{name} must be a value of {domain!r}, got {value!r}.") from error
    return values


def hyperparameters(
    configuration: Mapping[str, Any], config_space: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of a trial's configuration that were searched, cast, see `cast`."""
    names = syne_tune.non_constant_hyperparameter_keys(dict(config_space))
    searched = {name: configuration[name] for name in names if name in configuration}
    return cast(searched, config_space)


def _numeric(domain: Any) -> Domain:
    sampler, step = domain.get_sampler(), None
    if isinstance(sampler, syne_tune.Quantized):
        domain, step = copy(domain), sampler.q
        domain.set_sampler(sampler.get_sampler(), allow_override=True)
    if isinstance(domain.get_sampler(), syne_tune.Normal):
        raise UnsupportedDomainError(
            f"{domain!r} has a normal distribution, which Syne Tune cannot draw from in a range; "
            "use uniform or loguniform."
        )
    scale = "log" if syne_tune.is_log_space(domain) else "linear"
    if isinstance(domain, syne_tune.Float):
        if syne_tune.is_reverse_log_space(domain):
            scale = "reverse-log"
        return float_of(domain.lower, domain.upper, scale, step)
    if step is None:
        return Integer(domain.lower, domain.upper, scale)
    if step != int(step) or step < 1:
        raise UnsupportedDomainError(
            f"{domain!r} has the step {step!r}; integers need a whole step of at least 1."
        )
    # Quantised integers are multiples, wherever the range begins.
    step = int(step)
    first, last = multiples(domain.lower, domain.upper, step)
    return Integer(first * step, last * step, scale, step)


def _check_choices(domain: Any, choices: list[Any]) -> None:
    """Refuse choices that Syne Tune itself cannot hand to a trial, such as functions."""
    for choice in choices:
        with suppress(*_CAST_ERRORS):
            if match_key(domain.cast(choice)) == match_key(choice):
                continue
        raise UnsupportedDomainError(
            f"Syne Tune cannot cast the choice {choice!r} to its type; choose among names of "
            "such values."
        )
