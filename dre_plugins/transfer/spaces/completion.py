"""Parameters of a define-by-run study, completed by those of a space that is known beforehand."""

from collections.abc import Mapping

from dre_plugins.space import Domain
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces.alignment import try_align
from dre_plugins.transfer.spaces.conversion import Link


def known_names(
    known: SearchSpace, domains: Mapping[str, Domain], mapping: Mapping[str, str] | None = None
) -> set[str]:
    """Return which parameters of a study a known space has, by name, alias or mapping."""
    return {link.source for link in _links(known, domains, mapping)}


def completed(
    known: SearchSpace, domains: Mapping[str, Domain], mapping: Mapping[str, str] | None = None
) -> SearchSpace:
    """Return a space with the given parameters of a study and the others of a known space.

    A define-by-run study reveals its parameters one after the other. Those that are known stand in
    for those to come, so that all are chosen jointly.
    """
    linked = {link.target for link in _links(known, domains, mapping)}
    # Without the known conditions, which `Alignment.convert` applies anyway.
    to_come = {
        name: domain
        for name, domain in known.domains.items()
        if name not in linked and name not in domains
    }
    return SearchSpace({**domains, **to_come})


def _links(
    known: SearchSpace, domains: Mapping[str, Domain], mapping: Mapping[str, str] | None
) -> tuple[Link, ...]:
    """Return the parameters that a study has in common with a known space, if any."""
    alignment = try_align(SearchSpace(domains), known, mapping=mapping)
    return () if alignment is None else alignment.links
