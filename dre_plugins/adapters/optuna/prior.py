"""What `DRESampler` knows from elsewhere: a prior, or past studies to make one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from optuna.logging import get_logger

from dre_plugins.adapters.optuna.messages import LOGGER_NAME
from dre_plugins.adapters.optuna.sources import Source, metadata_from_studies
from dre_plugins.recommend.prior import UNIVERSAL, UniversalFile
from dre_plugins.space.domains import Domain
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.knowledge import GivenPrior, Known, learning_from, prior_from
from dre_plugins.transfer.metadata import MetaDataset

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

logger = get_logger(LOGGER_NAME)

PastStudies: TypeAlias = Source | Sequence[Source] | MetaDataset


class PastKnowledge:
    """Hold a prior, and the past studies that it was made of, if any.

    Args:
        prior: A prior, its name or its path.
        past_studies: Studies to make one of, here and now.

    Raises:
        ValueError: If both are given, there is no such prior, or there is nothing to learn from.
    """

    def __init__(
        self,
        prior: GivenPrior,
        past_studies: PastStudies | None,
    ) -> None:
        if prior not in (None, UNIVERSAL) and past_studies is not None:
            raise ValueError(
                "prior and past_studies cannot be combined: leave one of them out, or train a "
                "prior on all of it with Prior.train."
            )
        self._metadata: MetaDataset | None = None
        self._names: frozenset[str] = frozenset()
        self._without: dict[str, Knowledge] = {}
        if past_studies is None:
            self.whole = Knowledge(prior_from(prior))
            return
        if not isinstance(past_studies, MetaDataset):
            past_studies = metadata_from_studies(past_studies)
        self._metadata = past_studies
        self._names = frozenset(task.name for task in past_studies)
        self.whole = Knowledge(_learnt(past_studies))

    def of(self, study_name: str) -> Knowledge:
        """Return what is known of a study: of the past ones all but itself.

        Otherwise a study that is resumed from the storage of its past studies would learn from
        itself, and go on differently than without the interruption.
        """
        if self._metadata is None or study_name not in self._names:
            return self.whole
        if study_name not in self._without:
            try:
                known: Known = _learnt(self._metadata.subset(self._names - {study_name}))
            except ValueError:  # nothing to learn from is left
                known = UNIVERSAL
            self._without[study_name] = Knowledge(known)
        return self._without[study_name]


def _learnt(metadata: MetaDataset) -> Prior:
    logger.info(learning_from(metadata))
    # torch: only for those who need it at once
    from dre_plugins.transfer.prior import Prior

    return Prior.of_few(metadata)


class Knowledge:
    """Say what a prior knows of a study.

    Args:
        prior: The prior, or a tuple with one for each objective.
    """

    def __init__(self, prior: Known | None) -> None:
        self.prior = prior

    def is_for(self, n_objectives: int) -> bool:
        """Say whether a study of so many objectives can use the prior: it is one, or one each."""
        return not isinstance(self.prior, tuple) or len(self.prior) == n_objectives

    def usable_on(self, space: SearchSpace) -> Known:
        """Return those priors of a list that have something in common with a search space.

        If none has, this is the universal one, which needs nothing in common.
        """
        if not isinstance(self.prior, tuple):
            return UNIVERSAL
        usable = tuple(
            prior if prior is not None and _fits(prior, space) else None for prior in self.prior
        )
        return usable if any(prior is not None for prior in usable) else UNIVERSAL

    @property
    def has_parameters(self) -> bool:
        """Whether anything is known of single parameters: the universal prior knows none."""
        return bool(self._each())

    def knows(self, name: str, domain: Domain, beside: Mapping[str, Domain]) -> bool:
        """Say whether a parameter of a study is one of a prior's.

        Args:
            name: The parameter.
            domain: Its domain.
            beside: What the trial has asked for so far, which tells the learner.
        """
        return any(_knows(prior, name, domain, beside) for prior in self._each())

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the domains with all that the priors know beside them, see `Prior.completed`."""
        space = SearchSpace(domains)
        for prior in self._each():
            space = prior.completed(space.domains)
        return space

    def _each(self) -> list[Prior]:
        given = self.prior if isinstance(self.prior, tuple) else (self.prior,)
        no_parameters = (str, UniversalFile, type(None))
        return [prior for prior in given if not isinstance(prior, no_parameters)]


def _fits(prior: Prior, space: SearchSpace) -> bool:
    try:
        prior.on(space)
    except ValueError:
        return False
    return True


def _knows(prior: Prior, name: str, domain: Domain, beside: Mapping[str, Domain]) -> bool:
    try:
        return prior.knows(name, domain, beside)
    except ValueError:  # the mapping names it, but their values have nothing in common
        return False
