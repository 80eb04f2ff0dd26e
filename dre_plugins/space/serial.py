"""Domains and conditions as plain containers and back, for files that must outlive the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dre_plugins.space.base import Domain
from dre_plugins.space.conditions import AnyCondition, Condition, RangeCondition
from dre_plugins.space.discrete import Categorical, Constant, Ordinal
from dre_plugins.space.numeric import Float, Integer, Normal

_DOMAINS = (Float, Integer, Normal, Categorical, Ordinal, Constant)
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_DOMAINS, Condition, RangeCondition)}
_SEQUENCES = ("choices", "values")


def to_dict(item: Domain | AnyCondition) -> dict[str, Any]:
    """Return the arguments of a domain or a condition, and its kind."""
    state: dict[str, Any] = {"kind": type(item).__name__}
    for entry in fields(item):  # type: ignore[arg-type]
        if entry.init:
            argument = getattr(item, entry.name)
            state[entry.name] = list(argument) if entry.name in _SEQUENCES else argument
    return state


def from_dict(state: Mapping[str, Any]) -> Any:
    """Rebuild a domain or a condition.

    Raises:
        ValueError: its kind is unknown.
    """
    arguments = dict(state)
    kind = arguments.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"unknown kind {kind!r}; this version knows {sorted(_KINDS)}.")
    return _KINDS[kind](**arguments)
