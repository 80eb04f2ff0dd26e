"""Which past studies a new one learns from: those that tuned the same parameters, newest first."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from dre_plugins.memory.index import Entry, Index
from dre_plugins.memory.records import digest_of, read_study
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.spaces.aliases import roles
from dre_plugins.transfer.spaces.alignment import matching_names, try_align
from dre_plugins.transfer.spaces.merging import mergeable
from dre_plugins.transfer.spaces.prefixes import forms_of

Past = TypeVar("Past")

# Largest number of studies to learn from: each takes time at a suggestion, and 12 helped as much
# as 30 (lab/2026-11-24-memory-many-studies.md).
MAX_STUDIES = 30
# Smallest share of the parameters of the present study that a past one must have: to ask for half
# of each other's gained nothing (lab/2026-11-24-memory-beginnings.md#overlap-both-ways).
MIN_OVERLAP = 0.5
# Fewest trials of a past study, whose order would be mostly noise; other numbers were not tried.
MIN_TRIALS = 5
# Largest number of search spaces that are compared value by value, by most shared names: each
# takes half a millisecond.
MAX_ALIGNED = 200


def select(index: Index, space: SearchSpace, *, without: str) -> list[Entry]:
    """Return the recorded studies to learn from, see `most_alike`; of equal overlap, the newest.

    The present study, whose identity is `without`, does not learn from itself.
    """
    entries = usable(index, without=without)  # the newest first
    words, distinct = words_of(space.names), {entry.digest: entry for entry in entries}
    shared = {digest: len(words & words_of(e.domains)) for digest, e in distinct.items()}
    likely = sorted((digest for digest in shared if shared[digest]), key=lambda d: -shared[d])
    overlaps = {
        digest: overlap(distinct[digest].space(), space) for digest in likely[:MAX_ALIGNED]
    }
    of_entries = [overlaps.get(entry.digest, 0.0) for entry in entries]
    return most_alike(entries, of_entries, Entry.space)


def most_alike(
    studies: Sequence[Past], overlaps: Sequence[float], space_of: Callable[[Past], SearchSpace]
) -> list[Past]:
    """Return at most `MAX_STUDIES` past studies, those with the largest overlap first.

    Those of equal overlap stay in order. A study whose parameters contradict those of earlier ones
    (see `mergeable`) is left out.
    """
    order = sorted(range(len(studies)), key=lambda row: -overlaps[row])[:MAX_STUDIES]
    alike = [studies[row] for row in order if overlaps[row] > 0.0]
    return [alike[row] for row in mergeable([*map(space_of, alike)])]


def newest_with(index: Index, name: str, *, without: str) -> SearchSpace | None:
    """Return the parameters of the newest study that has one of this name, None without any.

    A define-by-run study shows one parameter first. The parameters of the newest study with it
    stand in for the others.
    """
    entries = [*{entry.digest: entry for entry in usable(index, without=without)}.values()]
    position = first_with([entry.domains for entry in entries], name)
    return None if position is None else entries[position].space()


def first_with(spaces: Sequence[Collection[str]], name: str) -> int | None:
    """Return the position of the first space with a parameter, None if there is none.

    If no space has the name, one with an alias counts.
    """
    for position, names in enumerate(spaces):
        if name in names:
            return position
    for position, names in enumerate(spaces[:MAX_ALIGNED]):
        if matching_names([*names], [name]):
            return position
    return None


def usable(index: Index, *, without: str) -> list[Entry]:
    """Return the studies that can be learnt from, the one that has changed last first."""
    return [
        entry
        for entry in index.entries
        if entry.header.study != without
        and entry.domains
        and len(entry.header.directions) == 1
        and entry.n_trials >= MIN_TRIALS
        and not entry.have_failed  # they would take the places of others
    ]


def overlap(past: SearchSpace, space: SearchSpace) -> float:
    """Return the share of parameters that two spaces have in common among all that either has.

    It is 0 if the past space has less than half of the present parameters. Constants do not count.
    """
    alignment = try_align(past, space)
    links = () if alignment is None else alignment.links
    shared = [link for link in links if link.source in past.names and link.target in space.names]
    n_both = len({link.source for link in shared})
    if not n_both or n_both < MIN_OVERLAP * space.n_parameters:
        return 0.0
    return n_both / (past.n_parameters + space.n_parameters - n_both)


def words_of(names: Iterable[str]) -> set[str]:
    """Return all forms of names by which parameters match, see `align`."""
    forms = set[str]().union(*(forms_of(name) for name in names))
    return forms | {f"role {role}" for role in roles(names)}


def tasks_of(entries: Sequence[Entry], logger: logging.Logger) -> tuple[MetaDataset, list[Entry]]:
    """Return studies as past tasks, and those it could use; `skipped` counts the others.

    They are sorted by what was tried in them, so that the same studies, run again with another
    memory, lead to the same suggestions.
    """
    skipped: Counter[str] = Counter()
    used: list[tuple[Task, Entry]] = []
    for entry in entries:
        if len(entry.header.directions) != 1:
            skipped["study with several objectives"] += 1
            continue
        try:
            study = read_study(entry.files)
            task = study.task()
        except (OSError, *DAMAGES) as error:
            skipped["study that cannot be read"] += 1
            logger.warning("Study %r of the memory is left out: %s", entry.header.title, error)
            continue
        skipped["damaged line"] += study.n_damaged
        skipped["study without a complete, feasible trial"] += not task.n_complete
        skipped["study without parameters"] += bool(task.n_complete and not task.space.names)
        if task.n_complete and task.space.names:
            differ = bool(task.lists())
            skipped["study whose trials are all equal"] += not differ
            if differ:
                used.append((task, entry))
    used.sort(key=lambda pair: digest_of([replace(pair[0], name="")]))
    tasks = [task for task, _ in used]
    return MetaDataset.of(tasks, source="memory", skipped=+skipped), [entry for _, entry in used]
