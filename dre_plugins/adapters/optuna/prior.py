"""What `DRESampler` knows from elsewhere: a prior, or past studies to make one of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from optuna.logging import get_logger
from optuna.study import Study
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.common.options import Options
from dre_plugins.adapters.common.past_tasks import learnt_prior
from dre_plugins.adapters.optuna.messages import LOGGER_NAME
from dre_plugins.adapters.optuna.remembered import (
    FoundStudies,
    MemoryOfStudies,
    StudiesOfStorage,
)
from dre_plugins.adapters.optuna.sources import Source, metadata_from_studies
from dre_plugins.memory.agreement import memory_turns
from dre_plugins.memory.memory import Memory
from dre_plugins.recommend.prior import UNIVERSAL, UniversalFile
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial
from dre_plugins.space import Domain
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.knowledge import LoadedPrior
from dre_plugins.transfer.metadata import MetaDataset

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior
    from dre_plugins.transfer.recognition import AutoPrior

logger = get_logger(LOGGER_NAME)

PastStudies: TypeAlias = Source | Sequence[Source] | MetaDataset

# `past_studies="storage"`: all other studies of the storage of the present one.
STORAGE = "storage"


class PastKnowledge:
    """Hold a prior, and the past studies that it was made of, or where they are to be found.

    Args:
        options: The options of the sampler, with its prior and its memory.
        past_studies: Studies to make a prior of, here and now; "storage" finds them later.
        stats: Counters of the sampler.

    Raises:
        ValueError: If both a prior and studies are given, there is no such prior, or there is
            nothing to learn from.
    """

    def __init__(
        self, options: Options, past_studies: PastStudies | None, stats: Counter[str]
    ) -> None:
        options.check_past("past_studies", past_studies)
        self._metadata: MetaDataset | None = None
        self._names: frozenset[str] = frozenset()
        self._without: dict[str, Knowledge] = {}
        self._found: dict[tuple[str, tuple[str, ...]], Knowledge] = {}
        self._chosen: dict[tuple[str, int], Knowledge] = {}
        memory = Memory.of(options.memory)
        self._memory = None if memory is None else MemoryOfStudies(memory, stats)
        self._source: FoundStudies | None = None
        if past_studies == STORAGE:
            self._source = StudiesOfStorage()
        elif past_studies is None and options.prior == UNIVERSAL:
            self._source = self._memory
        if past_studies is None or past_studies == STORAGE:
            self.whole = Knowledge(options.load_prior())
            return
        if not isinstance(past_studies, MetaDataset):
            past_studies = metadata_from_studies(past_studies)
        self._metadata = past_studies
        self._names = frozenset(task.name for task in past_studies)
        self.whole = Knowledge(learnt_prior(past_studies, logger))

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial begins; what takes seconds is done before."""
        if trial.number == 0:  # another study may have had the name
            self._found = {key: k for key, k in self._found.items() if key[0] != study.study_name}
            for found in (self._source, self._memory):
                if found is not None:
                    found.begin(study)
        self.of(study, trial)

    def search(self, study: Study, trial: FrozenTrial, space: SearchSpace | str) -> None:
        """Find the past studies that help a trial, once for the parameters that it is to have.

        Args:
            study: The study.
            trial: The trial.
            space: Its parameters; or the name of the first one, if the study has shown no other.
        """
        key = study.study_name, trial.number
        if self._source is None or key in self._chosen:
            return
        names = (space,) if isinstance(space, str) else tuple(sorted(space.names))
        if (study.study_name, names) not in self._found:
            prior = None
            if len(study.directions) == 1:
                prior = self._source.prior_for(study, space)
            self._found[study.study_name, names] = (
                self.whole if prior is None else Knowledge(prior, prior)
            )
        self._chosen[key] = self._found[study.study_name, names]

    def end(
        self,
        study: Study,
        trial: FrozenTrial,
        state: OptunaState,
        values: Sequence[float] | None,
        *,
        order_numeric_choices: bool,
    ) -> None:
        """Record a trial that has ended, see `MemoryOfStudies`."""
        self._chosen.pop((study.study_name, trial.number), None)
        if self._memory is not None:
            ordered = order_numeric_choices
            self._memory.record(study, trial, state, values, order_numeric_choices=ordered)

    def of(self, study: Study, trial: FrozenTrial) -> Knowledge:
        """Return what is known for a trial: of the past studies all but its own.

        Otherwise a study that is resumed from the storage of its past studies would learn from
        itself, and go on differently than without the interruption.
        """
        study_name = study.study_name
        if self._metadata is None or study_name not in self._names:
            return self._chosen.get((study_name, trial.number), self.whole)
        if study_name not in self._without:
            try:
                others = self._metadata.subset(self._names - {study_name})
                prior: LoadedPrior = learnt_prior(others, logger)
            except ValueError:  # nothing to learn from is left
                prior = UNIVERSAL
            self._without[study_name] = Knowledge(prior)
        return self._without[study_name]


class Knowledge:
    """Say what a prior knows of a study.

    Args:
        prior: The prior, or a tuple with one for each objective.
        found: The prior, if its studies were found and not given: then it has every second
            suggestion, and none as long as the trials contradict it.
    """

    def __init__(self, prior: LoadedPrior | None, found: Prior | None = None) -> None:
        self.prior = prior
        self._found = found

    def recommender(
        self,
        rule: Rule,
        settings: RecommenderSettings,
        seed: int,
        stats: Counter[str],
        n_objectives: int,
        history: Sequence[Trial],
        index: int,
    ) -> tuple[Recommender, str]:
        """Return a recommender with the prior, or without where it knows nothing of the space.

        A define-by-run study may show shared parameters later, so that this ends no study.

        Args:
            rule: What is searched.
            settings: See `Recommender`.
            seed: See `Recommender`.
            stats: See `Recommender`.
            n_objectives: How many objectives the study has.
            history: Its trials so far, larger values are better.
            index: Number of the trial.

        Returns:
            The recommender, and why the prior is not used; empty if it is.

        Raises:
            ValueError: If the priors are not as many as the objectives, or the space cannot be
                searched at all.
        """

        def with_prior(prior: LoadedPrior | None) -> Recommender:
            return Recommender(
                rule.space,
                settings,
                seed=seed,
                stats=stats,
                prior=prior,
                n_objectives=n_objectives,
                logger=logger,
                rule=rule,
            )

        numbers = range(index, index + 1)
        if self._found and not memory_turns(self._found, rule.space, history, numbers, stats):
            return with_prior(UNIVERSAL), ""
        try:
            return with_prior(self.prior), ""
        except ValueError as error:
            is_for_each = not isinstance(self.prior, tuple) or len(self.prior) == n_objectives
            if self.prior in (None, UNIVERSAL) or not is_for_each:
                raise
            return with_prior(self._usable_on(rule.space)), str(error)

    def _usable_on(self, space: SearchSpace) -> LoadedPrior:
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
        return bool(self._priors())

    def knows(self, name: str, domain: Domain, beside: Mapping[str, Domain]) -> bool:
        """Say whether a parameter of a study is one of a prior's.

        Args:
            name: The parameter.
            domain: Its domain.
            beside: What the trial has asked for so far, which tells the learner.
        """
        return any(_knows(prior, name, domain, beside) for prior in self._priors())

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the domains with all that the priors know beside them, see `Prior.completed`."""
        space = SearchSpace(domains)
        for prior in self._priors():
            space = prior.completed(space.domains)
        return space

    def _priors(self) -> list[Prior | AutoPrior]:
        given = self.prior if isinstance(self.prior, tuple) else (self.prior,)
        no_parameters = (str, UniversalFile, type(None))
        return [prior for prior in given if not isinstance(prior, no_parameters)]


def _fits(prior: Prior, space: SearchSpace) -> bool:
    try:
        prior.on(space)
    except ValueError:
        return False
    return True


def _knows(
    prior: Prior | AutoPrior, name: str, domain: Domain, beside: Mapping[str, Domain]
) -> bool:
    try:
        return prior.knows(name, domain, beside)
    except ValueError:  # the mapping names it, but their values have nothing in common
        return False
