"""Search spaces inferred from configurations, where no search space was stored."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dre_plugins.checks import is_integer
from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, SearchSpace
from dre_plugins.space.base import distinct_values, naming_parameter
from dre_plugins.space.conditions import infer_conditions
from dre_plugins.space.ranges import is_finite

# Numbers that span less than this factor are taken for linear, as the middle of a few numbers is
# often near that of either scale. The factor was not measured.
_LOG_RATIO = 1000.0

_SCALARS = (bool, int, float, str, type(None))


def infer_space(
    configurations: Sequence[Mapping[str, Any]],
    names: Sequence[str] = (),
    *,
    log: Collection[str] = (),
    likely: Mapping[str, Domain] | None = None,
) -> SearchSpace:
    """Return the search space that configurations come from, as far as they show it.

    Args:
        configurations: Evaluated configurations, without inactive and unknown parameters.
        names: Parameters in the order to keep; others follow in order of appearance. Parameters
            that no configuration has are left out.
        log: Numeric parameters that were searched on the log scale.
        likely: Domains of the parameters whose values fit them.
    """
    values: dict[str, list[Any]] = {name: [] for name in names}
    for configuration in configurations:
        for name, value in configuration.items():
            values.setdefault(name, []).append(value)
    domains = {
        name: infer_domain(name, column, log=name in log)
        for name, column in values.items()
        if column
    }
    for name, domain in (likely or {}).items():
        if name in domains and all(fits(domain, value) for value in values[name]):
            domains[name] = domain
    conditions, optional = infer_conditions(domains, configurations)
    return SearchSpace(domains, conditions, optional)


def infer_domain(name: str, values: Sequence[Any], *, log: bool = False) -> Domain:
    """Return the domain that values of one parameter come from.

    One value is a constant, whole numbers are `Integer`, finite numbers `Float`, all else is
    categorical in order of first appearance. Numbers are on the log scale if told so, or if they
    are positive, span a factor of 1000 and lie about the middle of that scale rather than of the
    linear one (a thousand uniform draws from [0, 1] span such a factor, too).
    """
    choices = distinct_values(values)
    has_numbers = all(is_finite(choice) for choice in choices)
    if log and not (has_numbers and min(choices) > 0):
        wrong = next(choice for choice in choices if not (is_finite(choice) and choice > 0))
        raise ValueError(
            f"Parameter {name!r} is named in log, but has the value {wrong!r}; "
            "the log scale needs positive numbers."
        )
    if len(choices) == 1:
        return Constant(choices[0])
    if not has_numbers:
        return Categorical(choices)
    scale = "log" if log or _looks_logarithmic(values) else "linear"
    kind = Integer if all(map(is_integer, choices)) else Float
    with naming_parameter(name):
        return kind(min(choices), max(choices), scale)


def fits(domain: Domain, value: Any) -> bool:
    """Return whether a value is of the domain's kind, in its range or not."""
    try:
        domain.to_units([value])
    except ValueError:
        return False
    return True


def flat_configuration(
    configuration: Mapping[str, Any], parameters: Collection[str] = (), prefix: str = ""
) -> dict[str, Any]:
    """Return a nested configuration with "/" between the keys, without objects and callables.

    What remains are scalars as JSON has them and lists of such, and any values of parameters that
    are known. Parts of a list with parameters or dictionaries inside are named by their places.
    """
    flat: dict[str, Any] = {}
    for key, value in configuration.items():
        name = f"{prefix}{key}"
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, (list, tuple)) and (
            any(p.startswith(f"{name}/") for p in parameters)
            or (name not in parameters and any(isinstance(part, Mapping) for part in value))
        ):
            value = plain = dict(enumerate(value))
        if name in parameters or _is_plain(plain):
            flat[name] = plain
        elif isinstance(value, Mapping):
            flat.update(flat_configuration(value, parameters, f"{name}/"))
    return flat


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    return type(value) in _SCALARS


def _looks_logarithmic(values: Sequence[Any]) -> bool:
    numbers = np.array([float(value) for value in values])
    if numbers.min() <= 0:
        return False
    logs, shares = np.log(numbers), numbers / numbers.max()  # their ratio may exceed the floats
    if np.ptp(logs) < np.log(_LOG_RATIO):
        return False
    linear = (np.median(shares) - shares.min()) / np.ptp(shares)
    logarithmic = (np.median(logs) - logs.min()) / np.ptp(logs)
    return bool(abs(logarithmic - 0.5) < abs(linear - 0.5))
