"""Parameters of a define-by-run study, and those of a space that is known beforehand.

Such a study reveals its parameters one after the other. Those that are known stand in for those to
come, so that all are chosen jointly.
"""

from collections.abc import Mapping

from dre_plugins.checks import require
from dre_plugins.space import Domain, SearchSpace
from dre_plugins.transfer.spaces.alignment import try_align
from dre_plugins.transfer.spaces.merging import is_valid


class KnownSpace:
    """Hold a search space that is known, and the names of its parameters in a study.

    It is the base of what a study learns from, which has the space and the mapping. A ValueError
    says that the mapping names a parameter that the space does not have, or one twice.
    """

    __slots__ = ()

    space: SearchSpace
    mapping: Mapping[str, str]  # name in the study to name in the space, where they do not match

    def __post_init__(self) -> None:
        names, targets = [*self.space.domains], [*self.mapping.values()]
        for name, target in self.mapping.items():
            require(target in names, f"mapping[{name!r}]", target, f"one of the past's {names}")
        twice = [target for target in targets if targets.count(target) > 1]
        require(not twice, "mapping", twice, "one of your parameters for each of the past")

    def knows(self, name: str, domains: Mapping[str, Domain]) -> bool:
        """Return whether it has one of a study's parameters, by name, alias or mapping."""
        try:
            alignment = try_align(SearchSpace(domains), self.space, mapping=self.mapping)
        except ValueError:  # the mapping names it, but no value is shared
            return False
        return alignment is not None and any(link.source == name for link in alignment.links)

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return a space with the given parameters of a study and the others that are known.

        Without the conditions of those to come, trials of one branch would tell of the others.
        """
        alignment = try_align(SearchSpace(domains), self.space, mapping=self.mapping)
        linked = {link.target for link in alignment.links} if alignment is not None else set()
        to_come = {
            name: domain
            for name, domain in self.space.domains.items()
            if name not in linked and name not in domains
        }
        together = {**domains, **to_come}
        conditions = [
            condition
            for condition in self.space.conditions
            if condition.child in to_come
            and condition.parent in together
            and is_valid(condition, together[condition.parent])
        ]
        return SearchSpace(together, conditions)
