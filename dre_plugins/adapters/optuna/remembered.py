"""Past studies that `DRESampler` finds by itself: those of the storage, or of a memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING

from optuna.study import Study
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.common.past_tasks import learnt_prior
from dre_plugins.adapters.optuna.attributes import logger, storage_of
from dre_plugins.adapters.optuna.conversion import domains_of
from dre_plugins.adapters.optuna.explanation import explanation_of
from dre_plugins.adapters.optuna.history import trial_of
from dre_plugins.adapters.optuna.sources import tasks_before
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.recorded import Header
from dre_plugins.memory.selection import MAX_STUDIES, first_with, overlap
from dre_plugins.memory.study import StudyMemory
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior


class StudiesOfStorage:
    """Learn from the other studies of a study's own storage.

    Only trials that had ended when the study began count. So all of its workers learn the same,
    before and after a restart, and neither the study nor a copy of it has anything to tell itself.
    """

    def __init__(self, study: Study) -> None:
        name, began = study.study_name, began_at(study)
        self._tasks = tasks_before(storage_of(study), began, without=name)

    def prior_for(self, space: SearchSpace | str) -> Prior | None:
        """Return a prior of the past studies that help, None if there are none.

        Args:
            space: Parameters of the study; or the name of the first one that it has asked for.
        """
        tasks = self._tasks
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


def memory_of_study(memory: Memory, study: Study, stats: Counter[str]) -> StudyMemory:
    """Return what a study has of a memory; its identity is the same for all of its workers."""
    began = began_at(study)
    identity = f"{study.study_name}\n{began.isoformat()}"
    header = Header(
        study=hashlib.sha256(identity.encode()).hexdigest()[:16],
        name=study.study_name,
        framework="optuna",
        directions=tuple(direction.name.lower() for direction in study.directions),
        began=began.timestamp(),
    )
    return StudyMemory(memory, header, stats=stats, logger=logger)


def record(
    memory: StudyMemory,
    study: Study,
    trial: FrozenTrial,
    state: OptunaState,
    values: Sequence[float] | None,
    order_numeric_choices: bool,
) -> None:
    """Record a trial that has ended with a state and values, if any."""

    def made() -> tuple[Trial, SearchSpace]:
        # As the storage has it: with the constraints that were stated meanwhile.
        ended = copy(study.get_trials(deepcopy=False)[trial.number])
        ended.state = state
        ended.values = None if values is None else [*values]
        domains = domains_of(ended, order_numeric_choices=order_numeric_choices)
        return trial_of(ended, ended.distributions, study.directions), SearchSpace(domains)

    source = explanation_of(study.get_trials(deepcopy=False)[trial.number]).source
    memory.record(trial.number, made, source=source)


def began_at(study: Study) -> datetime:
    """Return when a study began, which all its workers agree on: with its first trial.

    First by number: a trial is numbered after the ones before it are stored, but workers that
    begin together may store a trial that started earlier after one that started later.
    """
    for trial in study.get_trials(deepcopy=False):
        if trial.datetime_start is not None:
            return trial.datetime_start
    return datetime.now()
