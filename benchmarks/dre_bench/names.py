"""Entries of tables and attributes of modules, by names that users give."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

Entry = TypeVar("Entry")


def entry_of(table: Mapping[str, Entry], what: str, name: str) -> Entry:
    """Return an entry of a table.

    Raises:
        ValueError: There is none of this name.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(table)}.")
    return table[name]


def imported(what: str, module: str, attribute: str) -> Any:
    """Return an attribute of a module.

    Raises:
        ValueError: It cannot be imported.
    """
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{what} cannot be imported: {error}") from error
