"""A prior for each objective of a study: what past tasks taught of accuracy, of cost, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dre_plugins.engine.settings import require
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.space.domains import Domain
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior


@dataclass(frozen=True, slots=True)
class ObjectivePriors:
    """Hold a prior for each objective, in the order of the objectives.

    Args:
        priors: The priors `[O]`, None where nothing is known of an objective; one at least.

    Raises:
        ValueError: If there is none at all.
    """

    priors: Sequence[Prior | None]

    def __post_init__(self) -> None:
        is_any = any(prior is not None for prior in self.priors)
        require(is_any, "prior", list(self.priors), "a prior for one objective at least")

    def on(self, space: SearchSpace) -> list[AlignedPrior | None]:
        """Return what each prior knows of a search space; see `Prior.on`."""
        return [None if prior is None else prior.on(space) for prior in self.priors]

    def usable_on(self, space: SearchSpace) -> ObjectivePriors | None:
        """Return the priors without those that have nothing in common with a search space."""
        usable = [
            prior if prior is not None and _fits(prior, space) else None for prior in self.priors
        ]
        return ObjectivePriors(usable) if any(prior is not None for prior in usable) else None

    def knows(self, name: str, domain: Domain) -> bool:
        """Say whether a parameter is one of any prior's; see `Prior.knows`."""
        return any(_knows(prior, name, domain) for prior in self.priors if prior is not None)

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the domains with all that the priors know beside them; see `Prior.completed`."""
        for prior in self.priors:
            if prior is not None:
                domains = prior.completed(domains).domains
        return SearchSpace(domains)


def _fits(prior: Prior, space: SearchSpace) -> bool:
    try:
        prior.on(space)
    except ValueError:
        return False
    return True


def _knows(prior: Prior, name: str, domain: Domain) -> bool:
    try:
        return prior.knows(name, domain)
    except ValueError:  # its mapping names it, but their values have nothing in common
        return False
