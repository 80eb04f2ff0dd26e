"""Which past studies a new one learns from: those that tuned the same parameters, newest first."""

from __future__ import annotations

from collections.abc import Iterable

from dre_plugins.memory.index import Entry, Index
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces.aliases import normalised, roles, without_prefix
from dre_plugins.transfer.spaces.alignment import align

# So many studies are learnt from in seconds; more of them hardly teach more.
MAX_STUDIES = 30
# Of the parameters of the present study, a past one must have tuned this share.
MIN_OVERLAP = 0.5
# A study of fewer trials says little but noise.
MIN_TRIALS = 5
# Search spaces that are compared value by value; those that share most names come first.
MAX_ALIGNED = 200


def select(index: Index, space: SearchSpace, *, without: str) -> list[Entry]:
    """Return the studies to learn from, those with the largest overlap first, then the newest.

    Args:
        index: What there is.
        space: Parameters of the present study.
        without: Identity of the present study, which does not learn from itself.
    """
    usable = _usable(index, without)
    overlaps = _overlaps(index, dict.fromkeys(entry.space for entry in usable), space)
    chosen = [entry for entry in usable if overlaps.get(entry.space, 0.0) > 0.0]
    chosen.sort(key=lambda entry: -overlaps[entry.space])  # stable: the newest stay first
    return chosen[:MAX_STUDIES]


def newest_with(index: Index, name: str, *, without: str) -> SearchSpace | None:
    """Return the parameters of the newest study that has one of this name, None without any.

    A define-by-run study shows one parameter first: the newest study that had it stands in for
    those to come.
    """
    for entry in _usable(index, without):
        if name in index.names(entry.space):
            return index.space(entry.space)
    return None


def _usable(index: Index, without: str) -> list[Entry]:
    return [
        entry
        for entry in index.entries
        if entry.header.study != without
        and len(entry.header.directions) == 1
        and entry.n_trials >= MIN_TRIALS
    ]


def _overlaps(index: Index, digests: Iterable[str], space: SearchSpace) -> dict[str, float]:
    """Return how much the search spaces of past studies and the present one overlap.

    It is the share of parameters that both have among all that either has. Those that have too few
    of the present ones are left out.
    """
    wanted = _words(space.domains)
    shared = {digest: len(wanted & _words(index.names(digest))) for digest in digests}
    likely = sorted((digest for digest in shared if shared[digest]), key=lambda d: -shared[d])
    overlaps = {}
    for digest in likely[:MAX_ALIGNED]:
        past = index.space(digest)
        alignment = align(past, space, on_incompatible="ignore")
        n_both = 0 if alignment is None else len(alignment.links)
        if n_both >= MIN_OVERLAP * len(space.domains):
            overlaps[digest] = n_both / (len(past.domains) + len(space.domains) - n_both)
    return overlaps


def _words(names: Iterable[str]) -> set[str]:
    """Return all forms of names by which parameters match, see `align`."""
    names = list(names)
    forms = {form for name in names for form in (normalised(name), without_prefix(name))}
    return forms | {f"role {role}" for role in roles(names)}
