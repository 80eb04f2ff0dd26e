"""Domains and conditions as strict JSON and back, for files that must outlive the code.

NaN, infinities, tuples and dictionaries among values become objects of one key, such as
`{"tuple": [1, 2]}`.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dre_plugins.space.base import Domain
from dre_plugins.space.conditions import AnyCondition, Condition, RangeCondition
from dre_plugins.space.discrete import Categorical, Constant, Ordinal
from dre_plugins.space.numeric import Float, Integer, Normal

_CLASSES = (Float, Integer, Normal, Categorical, Ordinal, Constant, Condition, RangeCondition)
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in _CLASSES}
_SEQUENCES = ("choices", "values")


def to_dict(name: str, item: Domain | AnyCondition) -> dict[str, Any]:
    """Return the arguments of the domain or the condition of a parameter, and its kind.

    A ValueError says that a value is of a type that no file can hold.
    """
    state: dict[str, Any] = {"kind": type(item).__name__}
    for entry in fields(item):  # type: ignore[arg-type]
        if entry.init:
            argument = getattr(item, entry.name)
            argument = list(argument) if entry.name in _SEQUENCES else argument
            try:
                state[entry.name] = to_plain(argument)
            except TypeError as error:
                raise ValueError(
                    f"Parameter {name!r} has the value {error}, which cannot be saved; "
                    "use a name for it, such as a string."
                ) from error
    return state


def from_dict(state: Mapping[str, Any]) -> Any:
    """Rebuild a domain or a condition; a ValueError says that a kind is unknown."""
    arguments = {key: from_plain(value) for key, value in state.items()}
    kind = arguments.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"unknown kind {kind!r}; this version knows {sorted(_KINDS)}.")
    return _KINDS[kind](**arguments)


def to_plain(value: Any) -> Any:
    """Return a value in terms that strict JSON has; a TypeError says that there are none."""
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
    """Return the value that `to_plain` has written; a ValueError says that its kind is unknown."""
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
