"""One name for what past tasks call differently, so that they teach the same parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces.alignment import matching_names
from dre_plugins.transfer.spaces.prefixes import change_of


def with_common_names(spaces: Sequence[SearchSpace]) -> list[SearchSpace]:
    """Return the spaces with one name for each parameter: of several, the first one by alphabet.

    Parameters match as in `alignment.aligned_if_any`, unless their numbers mean something else
    (the strength of a penalty, and its inverse): then both keep their names.
    """
    merged: dict[str, None] = {}
    renamed: dict[tuple[str, ...], dict[str, str]] = {}
    for names in sorted({tuple(space.domains) for space in spaces}, key=sorted):
        renamed[names] = _common(names, list(merged))
        merged |= dict.fromkeys(renamed[names].get(name, name) for name in names)
    return [_renamed(space, renamed[tuple(space.domains)]) for space in spaces]


def _common(names: Sequence[str], merged: Sequence[str]) -> dict[str, str]:
    """Return the known name of each parameter that has another one."""
    matched = matching_names(names, merged, taken={})
    return {
        name: other
        for name, (other, _) in matched.items()
        if other not in names and change_of(name, other) is None
    }


def _renamed(space: SearchSpace, names: Mapping[str, str]) -> SearchSpace:
    if not names:
        return space
    domains = {names.get(name, name): domain for name, domain in space.domains.items()}
    conditions = [
        replace(
            condition,
            child=names.get(condition.child, condition.child),
            parent=names.get(condition.parent, condition.parent),
        )
        for condition in space.conditions
    ]
    return SearchSpace(domains, conditions, {names.get(name, name) for name in space.optional})
