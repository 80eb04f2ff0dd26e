"""Search spaces as strict JSON and back, whatever values their categories have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dre_plugins.space.search_space import SearchSpace


def space_to_plain(space: SearchSpace) -> dict[str, Any]:
    """Return a search space in terms that strict JSON has.

    NaN, infinities, tuples and dictionaries among the values become objects of one key, such as
    `{"tuple": [1, 2]}`.

    Raises:
        ValueError: A value is of a type that no file can hold, named with its parameter.
    """
    state = space.to_dict()
    return {
        "domains": {name: _arguments(name, domain) for name, domain in state["domains"].items()},
        "conditions": [
            _arguments(condition["child"], condition) for condition in state["conditions"]
        ],
        "optional": state["optional"],
    }


def space_from_plain(state: Mapping[str, Any]) -> SearchSpace:
    """Rebuild a search space from `space_to_plain`.

    Raises:
        ValueError: A kind of domain, condition or value is unknown.
    """
    return SearchSpace.from_dict(
        {
            "domains": {
                name: {key: from_plain(value) for key, value in domain.items()}
                for name, domain in state["domains"].items()
            },
            "conditions": [
                {key: from_plain(value) for key, value in condition.items()}
                for condition in state["conditions"]
            ],
            "optional": state["optional"],
        }
    )


def _arguments(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {key: to_plain(value) for key, value in state.items()}
    except TypeError as error:
        raise ValueError(
            f"Parameter {name!r} has the value {error}, which cannot be saved; "
            "use a name for it, such as a string."
        ) from error


def to_plain(value: Any) -> Any:
    """Return a value of a parameter in terms that strict JSON has.

    Raises:
        TypeError: It is of a type that no file can hold.
    """
    if isinstance(value, np.generic):
        value = value.item()  # domains do not tell NumPy's numbers from Python's
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind in (bool, int, str, type(None)):
        return value
    if kind is list:
        return [to_plain(item) for item in value]
    if kind is tuple:
        return {"tuple": [to_plain(item) for item in value]}
    if kind is dict:
        return {"dict": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    raise TypeError(f"{value!r} of type {kind.__name__}")


def from_plain(value: Any) -> Any:
    """Return the value that `to_plain` has written.

    Raises:
        ValueError: It is of no known kind.
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float(content)
    if kind == "tuple":
        return tuple(from_plain(item) for item in content)
    if kind == "dict":
        return {from_plain(key): from_plain(item) for key, item in content}
    raise ValueError(f"{kind!r} is no known kind of value")
