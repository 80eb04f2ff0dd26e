"""Priors trained ahead of studies: one for each group of studies whose search spaces overlap."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dre_plugins.memory import selection
from dre_plugins.memory.choices import tasks_of
from dre_plugins.memory.index import Entry, Index
from dre_plugins.memory.memory import STUDIES, Memory
from dre_plugins.memory.priors import trained_prior, write_once
from dre_plugins.memory.selection import overlap, usable
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces.merging import merged_space, unify_names

# Up to this number, a study learns from all of them when it begins.
MIN_STUDIES = selection.MAX_STUDIES
# Largest number of studies, the newest ones: it bounds the time to read them.
MAX_STUDIES = 1000


@dataclass(frozen=True, slots=True)
class Group:
    """Hold studies whose search spaces overlap."""

    space: SearchSpace  # union of their search spaces
    entries: tuple[Entry, ...]  # the studies, the newest first


def groups_of(index: Index) -> list[Group]:
    """Return the studies by search space, the largest group first.

    A space joins a group if it and the largest space of the group share at least half of the
    parameters of either, unless a parameter is a number in one of them and a word in another.
    """
    entries = usable(index)
    spaces = {digest: index.space(digest) for digest in {entry.space for entry in entries}}
    order = sorted(spaces, key=lambda digest: (-spaces[digest].n_parameters, digest))
    merged: list[tuple[SearchSpace, SearchSpace, set[str]]] = []
    for digest in order:
        space = spaces[digest]
        for place, (largest, union, digests) in enumerate(merged):
            if min(overlap(largest, space), overlap(space, largest)) > 0.0:
                with suppress(ValueError):  # the spaces have no union
                    wider = merged_space(unify_names([union, space]))
                    merged[place] = largest, wider, {*digests, digest}
                    break
        else:
            merged.append((space, space, {digest}))
    groups = [
        Group(union, tuple(entry for entry in entries if entry.space in digests))
        for _, union, digests in merged
    ]
    return sorted(groups, key=lambda group: -len(group.entries))


def pretrain(memory: Memory, group: Group, logger: logging.Logger) -> Path | None:
    """Return the file of a group's prior, trained if there is none; None if no prior helps."""
    entries = group.entries[:MAX_STUDIES]
    path = trained_prior(memory.priors, tasks_of(entries, logger), logger, is_pretraining=True)
    if path is not None and not path.with_suffix(STUDIES).exists():
        with write_once(path.with_suffix(STUDIES)) as unfinished:
            unfinished.write_text(json.dumps([entry.header.study for entry in entries]))
    return path
