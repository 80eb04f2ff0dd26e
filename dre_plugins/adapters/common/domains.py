"""Steps of converting a framework's search space that do not depend on the framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dre_plugins.space import Categorical, Domain, ordered_choices


def choice_of(choices: tuple[Any, ...], *, ordered: bool) -> Domain:
    """Return the domain of choices: ordinal for ascending numbers if these are to be ordered."""
    return ordered_choices(choices) if ordered else Categorical(choices)


def holds(item: object, is_domain: Callable[[object], bool]) -> bool:
    """Return whether an item is a domain, or a container with a domain inside at any depth."""
    if is_domain(item):
        return True
    if isinstance(item, Mapping):
        return any(holds(value, is_domain) for value in item.values())
    return isinstance(item, (list, tuple)) and any(holds(value, is_domain) for value in item)
