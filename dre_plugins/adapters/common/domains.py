"""Steps of converting a framework's search space that do not depend on the framework."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

from dre_plugins.space import Categorical, Domain, Float, UnsupportedDomainError, ordered_choices
from dre_plugins.space.base import distinct_values

_ON_GRID = Fraction(1, 10**9)  # of a step that is no integer; 0.3 / 0.1 is not quite 3


def choice_of(name: str, choices: Sequence[Any], *, ordered: bool) -> Domain:
    """Return the domain of choices: ordinal for ascending numbers if these are to be ordered."""
    values = distinct_values(choices)  # a choice that is listed twice counts once
    return ordered_choices(values, name) if ordered else Categorical(values)


def holds(item: object, is_domain: Callable[[object], bool]) -> bool:
    """Return whether an item is a domain, or a container with a domain inside at any depth."""
    if is_domain(item):
        return True
    if isinstance(item, Mapping):
        return any(holds(value, is_domain) for value in item.values())
    return isinstance(item, (list, tuple)) and any(holds(value, is_domain) for value in item)


def without_tuples(item: Any) -> Any:
    """Return an item with lists in place of tuples at any depth, as files of JSON have them."""
    if isinstance(item, Mapping):
        return {key: without_tuples(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [without_tuples(value) for value in item]
    return item


def float_of(low: Any, high: Any, scale: Any, step: Any) -> Float:
    """Return a range of floats; with a step, of its multiples in the range."""
    continuous = Float(low, high, scale)
    if step is None:
        return continuous
    first, last = multiples(continuous.low, continuous.high, float(step))
    # In decimals: 3 * 0.1 is not 0.3 as the user wrote it.
    exact = Decimal(repr(float(step)))
    return Float(float(first * exact), float(last * exact), scale, float(step))


def multiples(low: Any, high: Any, step: Any) -> tuple[int, int]:
    """Return the first and the last multiple of a step in a range, in steps."""
    if not step > 0:
        raise UnsupportedDomainError(f"step must be a positive number, got {step!r}.")
    exact, slack = Fraction(step), _ON_GRID if isinstance(step, float) else 0
    first = ceil(Fraction(low) / exact - slack)
    last = floor(Fraction(high) / exact + slack)
    if first > last:
        raise UnsupportedDomainError(f"there is no multiple of {step!r} from {low!r} to {high!r}.")
    return first, last
