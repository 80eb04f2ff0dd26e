"""Past studies that `DRESampler` finds by itself: those of the storage, or of a memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from optuna.logging import get_logger
from optuna.study import Study
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.common.past_tasks import learnt_prior
from dre_plugins.adapters.optuna.attributes import storage_of
from dre_plugins.adapters.optuna.conversion import domains_of
from dre_plugins.adapters.optuna.explanation import explanation_of
from dre_plugins.adapters.optuna.history import trial_of
from dre_plugins.adapters.optuna.messages import LOGGER_NAME
from dre_plugins.adapters.optuna.sources import tasks_before
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.selection import MAX_STUDIES, first_with, overlap
from dre_plugins.memory.study import StudyMemory, new_study_memory
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

logger = get_logger(LOGGER_NAME)


class FoundStudies(Protocol):
    """Describe where past studies are found (for type checking; do not subclass)."""

    def begin(self, study: Study) -> None:
        """Say that the first trial of a study begins."""

    def prior_for(self, study: Study, space: SearchSpace | str) -> Prior | None:
        """Return a prior of the past studies that help, None if there are none.

        Args:
            study: The present study.
            space: Its parameters; or the name of the first one that it has asked for.
        """


class StudiesOfStorage:
    """Learn from the other studies of a study's own storage.

    Only trials that had ended when the study began count. So all of its workers learn the same,
    before and after a restart, and neither the study nor a copy of it has anything to tell itself.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, list[Task]] = {}

    def begin(self, study: Study) -> None:
        """Say that the first trial of a study begins."""
        self._tasks.pop(study.study_name, None)

    def prior_for(self, study: Study, space: SearchSpace | str) -> Prior | None:
        """Return a prior of the past studies that help, see `FoundStudies`."""
        if study.study_name not in self._tasks:
            began = began_at(study.get_trials(deepcopy=False))
            self._tasks[study.study_name] = tasks_before(
                storage_of(study), began, without=study.study_name
            )
        tasks = self._tasks[study.study_name]
        if isinstance(space, str):
            place = first_with([task.space.names for task in tasks], space)
            if place is None:
                return None
            space = tasks[place].space
        overlaps = [overlap(task.space, space) for task in tasks]
        order = sorted(range(len(tasks)), key=lambda row: -overlaps[row])[:MAX_STUDIES]
        chosen = [tasks[row] for row in order if overlaps[row] > 0.0]
        chosen.sort(key=lambda task: task.name)
        return learnt_prior(MetaDataset(tuple(chosen)), logger) if chosen else None


class MemoryOfStudies:
    """Learn from a memory, and record the trials that end.

    Args:
        memory: The memory.
        stats: Counters of the sampler.
    """

    def __init__(self, memory: Memory, stats: Counter[str]) -> None:
        self._memory = memory
        self._stats = stats
        self._studies: dict[str, StudyMemory] = {}

    def begin(self, study: Study) -> None:
        """Say that the first trial of a study begins."""
        self._studies.pop(study.study_name, None)

    def prior_for(self, study: Study, space: SearchSpace | str) -> Prior | None:
        """Return a prior of the past studies that help, see `FoundStudies`."""
        return self._of(study).prior_for(space)

    def record(
        self,
        study: Study,
        trial: FrozenTrial,
        state: OptunaState,
        values: Sequence[float] | None,
        *,
        order_numeric_choices: bool,
    ) -> None:
        """Record a trial that has ended.

        Args:
            study: Its study.
            trial: The trial.
            state: What became of it.
            values: Its values, if any.
            order_numeric_choices: Whether choices that are rising numbers count as ordered.
        """

        def made() -> tuple[Trial, SearchSpace]:
            # As the storage has it: with the constraints that were stated meanwhile.
            ended = copy(study.get_trials(deepcopy=False)[trial.number])
            ended.state = state
            ended.values = None if values is None else [*values]
            domains = domains_of(ended, order_numeric_choices=order_numeric_choices)
            return trial_of(ended, ended.distributions, study.directions), SearchSpace(domains)

        source = explanation_of(study.get_trials(deepcopy=False)[trial.number]).source
        self._of(study).record_made(trial.number, made, source=source)

    def _of(self, study: Study) -> StudyMemory:
        if study.study_name not in self._studies:
            began = began_at(study.get_trials(deepcopy=False))
            identity = f"{study.study_name}\n{began.isoformat()}"
            self._studies[study.study_name] = new_study_memory(
                self._memory,
                name=study.study_name,
                framework="optuna",
                directions=[direction.name.lower() for direction in study.directions],
                stats=self._stats,
                logger=logger,
                study=hashlib.sha256(identity.encode()).hexdigest()[:16],
                began=began.timestamp(),
            )
        return self._studies[study.study_name]


def began_at(trials: Sequence[FrozenTrial]) -> datetime:
    """Return when a study began, which all its workers agree on: with its first trial."""
    starts = [trial.datetime_start for trial in trials if trial.datetime_start is not None]
    return min(starts, default=datetime.now())
