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

    def knows(self, name: str, domain: Domain) -> bool:
        """Say whether a parameter is one of any prior's; see `Prior.knows`."""
        return any(prior.knows(name, domain) for prior in self.priors if prior is not None)

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the domains with all that the priors know beside them; see `Prior.completed`."""
        for prior in self.priors:
            if prior is not None:
                domains = prior.completed(domains).domains
        return SearchSpace(domains)
