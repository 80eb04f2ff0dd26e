"""The prior of a `DRESampler`: given, or past studies that are given or that it finds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TypeAlias

from optuna.exceptions import StorageInternalError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState as OptunaState

from dre_plugins.adapters.common.options import check_past
from dre_plugins.adapters.common.past_tasks import past_tasks_in
from dre_plugins.adapters.optuna.attributes import (
    explanation_of,
    logger,
    storage_of,
    stored_trials,
)
from dre_plugins.adapters.optuna.conversion import domains_in
from dre_plugins.adapters.optuna.history import trial_of
from dre_plugins.adapters.optuna.sources import Source, metadata_from_studies, tasks_before
from dre_plugins.memory.access import StudyMemory, count_failure
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.recorded_study import Header, seconds_of
from dre_plugins.memory.records import has_grown
from dre_plugins.memory.selection import first_with, most_alike, overlap
from dre_plugins.recommend.prior import (
    UNIVERSAL,
    GivenPrior,
    KnowsParameters,
    LoadedPrior,
    RecognisedPrior,
    checked,
    fits,
    yields_to_memory,
)
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.schedule import N_BEFORE_TURNS
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial
from dre_plugins.space import Domain, SearchSpace
from dre_plugins.study.arguments import GivenMemory, prior_from
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.past_tasks import PastTasks

PastStudies: TypeAlias = Source | Sequence[Source] | MetaDataset

# Name of a study, and when it began.
Identity: TypeAlias = tuple[str, datetime]


# `past_studies="storage"`: all other studies of the storage of the present one.
STORAGE = "storage"


class PriorSource:
    """Hold the given prior or past studies, or the memory or storage in which to find them.

    `began_at` returns when a study began, see `ThisProcess`.
    """

    def __init__(
        self,
        prior: GivenPrior,
        past_studies: PastStudies | None,
        memory: GivenMemory,
        settings: RecommenderSettings,
        stats: Counter[str],
        began_at: Callable[[Study], datetime],
    ) -> None:
        check_past("past_studies", past_studies, prior)
        self._stats = stats
        self._began_at = began_at
        self._ordered = settings.order_numeric_choices
        self._without: dict[str, StudyPrior] = {}
        self._memory = Memory.of(memory)
        self._learns_from_storage = isinstance(past_studies, str) and past_studies == STORAGE
        self._learns_from_memory = past_studies is None and yields_to_memory(prior)
        self._storages: dict[Identity, list[Task]] = {}
        self._memories: dict[Identity, StudyMemory] = {}
        self._found: dict[Identity, dict[tuple[str, ...], StudyPrior]] = {}
        if past_studies is None or self._learns_from_storage:
            self._whole = StudyPrior(prior_from(prior, settings.preset))
            return
        if not isinstance(past_studies, MetaDataset):
            past_studies = metadata_from_studies(past_studies)
        self._whole = StudyPrior(past_tasks_in(past_studies, logger))

    def end(
        self, study: Study, trial: FrozenTrial, state: OptunaState, values: Sequence[float] | None
    ) -> None:
        """Record a trial that has ended with a state and values, if any."""
        memory = self._memory_of(study)
        if memory is not None:
            ended = copy(trial)
            ended.state = state
            ended.values = None if values is None else [*values]
            self._record(memory, study, ended)

    def _record(self, memory: StudyMemory, study: Study, trial: FrozenTrial) -> None:
        def made() -> tuple[Trial, SearchSpace]:
            domains = domains_in(trial.distributions, ordered=self._ordered)
            return trial_of(trial, trial.distributions, study.directions), SearchSpace(domains)

        memory.record(trial.number, made, source=explanation_of(trial).source)

    def of(self, study: Study, number: int, space: SearchSpace | str) -> StudyPrior:
        """Return priors and past studies for the trial of a number with the parameters of a space.

        In a first trial, which shows its parameters one by one, `space` is the name of one of
        them. Past studies are found for the first trials only, as later ones would not use them. A
        ValueError says that there are not as many priors as objectives, or several for the studies
        of a storage.
        """
        n_objectives = len(study.directions)
        prior = checked(self._whole.prior, n_objectives)
        if n_objectives > 1 and self._learns_from_storage:
            raise ValueError(
                f"past_studies={STORAGE!r} cannot be used with {n_objectives} objectives, as only "
                "studies of one are learnt from: leave it out, or train priors (Prior.train)."
            )
        if prior is not self._whole.prior:
            return StudyPrior(prior)
        may_find = n_objectives == 1 and number < N_BEFORE_TURNS
        find = self._finder_for(study) if may_find else None
        if find is None:
            return self._given_for(study)
        names = (space,) if isinstance(space, str) else tuple(sorted(space.names))
        found = self._found.setdefault(self._identity_of(study), {})
        if names not in found:
            past_tasks = find(space)
            found[names] = self._whole if past_tasks is None else StudyPrior(past_tasks)
        return found[names]

    def _finder_for(self, study: Study) -> Callable[[SearchSpace | str], PastTasks | None] | None:
        """Return what finds past studies; None if they, or a prior, are given.

        Of the other studies of the storage, only trials that had ended when the study began count.
        So all of its workers learn the same, before and after a restart, and neither the study nor
        a copy of it learns from itself.
        """
        if not self._learns_from_storage:
            memory = self._memory_of(study) if self._learns_from_memory else None
            return None if memory is None else memory.past_tasks_for
        name, began = identity = self._identity_of(study)
        if identity not in self._storages:
            self._storages[identity] = tasks_before(storage_of(study), began, without=name)
        return partial(past_tasks_of, self._storages[identity])

    def _identity_of(self, study: Study) -> Identity:
        """Return what all workers identify a study by; another storage may have its name."""
        return study.study_name, self._began_at(study)

    def _memory_of(self, study: Study) -> StudyMemory | None:
        """Return the access of a study to a memory; None without any, or if the storage fails.

        Trials that ended before the study had a memory are recorded first. Optuna ends a study
        whose storage fails, but that must not happen in a read of our own.
        """
        if self._memory is None:
            return None
        try:
            name, began = identity = self._identity_of(study)
            trials = () if identity in self._memories else stored_trials(study)
        except (StorageInternalError, OSError) as error:
            count_failure(self._memory, "used", error, self._stats, logger)
            return None
        if identity not in self._memories:
            # A name from a command line may have bytes that are no text.
            text = f"{name}\n{_in_any_zone(began)}".encode(errors="surrogatepass")
            header = Header(
                study=hashlib.sha256(text).hexdigest()[:16],
                name=name,
                framework="optuna",
                directions=tuple(direction.name.lower() for direction in study.directions),
                began=seconds_of(began),  # that of a trial that was added may be made up
            )
            memory = StudyMemory(self._memory, header, stats=self._stats, logger=logger)
            self._memories[identity] = memory
            ended = {trial.number: trial for trial in trials if trial.state.is_finished()}
            for number in memory.unrecorded(ended):
                self._record(memory, study, ended[number])
        return self._memories[identity]

    def _given_for(self, study: Study) -> StudyPrior:
        """Return the given priors, or one of the given past studies except the study itself.

        Otherwise a study that is resumed in the storage of its past studies would learn from
        itself, and go on differently than without the interruption. If several storages have its
        name, a number was added to the names of all but the first one.
        """
        name, whole = study.study_name, self._whole.prior
        if not isinstance(whole, PastTasks) or name not in [task.name for task in whole.tasks]:
            return self._whole
        if name not in self._without:
            own = [*metadata_from_studies(study)]  # none before its first trial has ended
            others = [
                task
                for task in whole.tasks
                if task.name != name and not any(has_grown(now, task) for now in own)
            ]
            prior: LoadedPrior = UNIVERSAL
            with suppress(ValueError):  # nothing to learn from is left
                prior = PastTasks(others, whole.mapping)
            self._without[name] = StudyPrior(prior)
        return self._without[name]


def _in_any_zone(moment: datetime) -> str:
    """Return the part of a moment that is the same in all time zones.

    Some storages return it in the zone of the reader, others in that of the writer; zones differ
    by quarters of an hour. A moment without microseconds is returned whole, as another study of
    the same name could share so short a part by chance.
    """
    if not moment.microsecond:
        return moment.isoformat()
    return f"{moment.minute % 15}:{moment.second}:{moment.microsecond}"


class StudyPrior:
    """Hold the prior of a study, or one for each objective."""

    def __init__(self, prior: LoadedPrior) -> None:
        self.prior = prior
        # By the names of the parameters.
        self._summaries: dict[tuple[str, ...], str] = {}

    def summary(self, space: SearchSpace, recommender: Recommender) -> str:
        """Return a text about the parameters that are known; empty if none is."""
        names = tuple(space.names)
        if names not in self._summaries or not isinstance(self.prior, RecognisedPrior):
            self._summaries[names] = recommender.prior_summary
        return self._summaries[names]

    def usable_on(self, space: SearchSpace) -> LoadedPrior:
        """Return the priors of a list that share parameters with a search space.

        If none does, it is the universal prior, which needs no shared parameters.
        """
        if not isinstance(self.prior, tuple):
            return UNIVERSAL
        usable = tuple(
            prior if prior is not None and fits(prior, space) else None for prior in self.prior
        )
        return usable if any(prior is not None for prior in usable) else UNIVERSAL

    def knows(self, name: str, domains: Mapping[str, Domain]) -> bool:
        """Return whether a prior or past study has one of a study's parameters."""
        return any(prior.knows(name, domains) for prior in self._learnt())

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return a space of the domains and all others that are known, see `Prior.completed`."""
        space = SearchSpace(domains)
        for prior in self._learnt():
            space = prior.completed(space.domains)
        return space

    def _learnt(self) -> list[KnowsParameters]:
        priors = self.prior if isinstance(self.prior, tuple) else (self.prior,)
        return [prior for prior in priors if isinstance(prior, KnowsParameters)]


def past_tasks_of(tasks: Sequence[Task], space: SearchSpace | str) -> PastTasks | None:
    """Return the past studies that help, None if none does, see `PriorSource.of`."""
    if isinstance(space, str):
        place = first_with([task.space.names for task in tasks], space)
        if place is None:
            return None
        space = tasks[place].space
    overlaps = [overlap(task.space, space) for task in tasks]
    chosen = most_alike(tasks, overlaps, attrgetter("space"))
    past = PastTasks(sorted(chosen, key=attrgetter("name"))) if chosen else None
    return past if past is not None and past.may_help(space) else None
