"""Parameters of a define-by-run study, and those of a space that is known beforehand.

Such a study reveals its parameters one after the other. Those that are known stand in for those to
come, so that all are chosen jointly. Names that do not match are joined by a mapping, from the
study's names to the known ones.
"""

from collections.abc import Mapping

from dre_plugins.space import Domain
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.spaces.alignment import try_align


def knows(
    known: SearchSpace,
    mapping: Mapping[str, str],
    name: str,
    domain: Domain,
    others: Mapping[str, Domain] | None = None,
) -> bool:
    """Return whether a known space has a parameter of a study, whose `others` tell the learner."""
    study = SearchSpace({**(others or {}), name: domain})
    try:
        alignment = try_align(study, known, mapping=mapping)
    except ValueError:  # the mapping names it, but no value is shared
        return False
    return alignment is not None and any(link.source == name for link in alignment.links)


def completed(
    known: SearchSpace, mapping: Mapping[str, str], domains: Mapping[str, Domain]
) -> SearchSpace:
    """Return a space with the given parameters of a study and the others of a known space."""
    alignment = try_align(SearchSpace(domains), known, mapping=mapping)
    linked = {link.target for link in alignment.links} if alignment is not None else set()
    # Without the known conditions, which `Alignment.convert` applies anyway.
    to_come = {
        name: domain
        for name, domain in known.domains.items()
        if name not in linked and name not in domains
    }
    return SearchSpace({**domains, **to_come})
