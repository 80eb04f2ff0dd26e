"""Steps of learning from past studies that do not depend on the framework."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from dre_plugins.adapters.common.domains import without_tuples
from dre_plugins.adapters.common.limits import Limits
from dre_plugins.checks import require
from dre_plugins.space.base import match_key
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task, counted
from dre_plugins.transfer.past_tasks import MAX_TASKS, PastTasks

Mode: TypeAlias = Literal["min", "max"]

# Values of our trials are larger where they are better.
SIGNS: Mapping[str, float] = {"min": -1.0, "max": 1.0}


@dataclass(frozen=True)
class TaskDefinition:
    """Define which task past experiments are; None leaves it to the experiments.

    A ValueError says that the mode is none.
    """

    metric: str | None
    mode: Mode | None
    limits: Limits
    space: SearchSpace | None = None
    # Without a space: domains of the parameters whose values fit them.
    likely: SearchSpace = field(default_factory=lambda: SearchSpace({}))
    # Names of parameters in the experiments, where they are not those in the space.
    paths: Mapping[str, str] = field(default_factory=dict)
    otherwise: Mode | None = None  # where neither the user nor an experiment states a mode

    def __post_init__(self) -> None:
        require(self.mode in (None, *SIGNS), "mode", self.mode, "'min' or 'max'")


def listed(sources: Any) -> Sequence[Any]:
    """Return a sequence of sources; a text is a single one."""
    is_several = isinstance(sources, Sequence) and not isinstance(sources, str)
    return sources if is_several else [sources]


def without_copies(tasks: Iterable[Task], skipped: Counter[str]) -> list[Task]:
    """Return tasks without those that have the trials of an earlier one, which are counted.

    The same experiment may be given as an object, by its folder and by a copy of the folder. Names
    and the order of trials may differ, and tuples be lists.
    """
    kept: list[Task] = []
    known: set[Hashable] = set()
    for task in tasks:
        trials = [
            [without_tuples(trial.configuration), trial.state, trial.value, trial.rungs]
            for trial in task.trials()
        ]
        key = frozenset(Counter(map(match_key, trials)).items())
        if key in known:
            skipped["experiment that is given twice"] += 1
            continue
        if trials:  # what is empty is counted as that
            known.add(key)
        kept.append(task)
    return kept


def read_in(
    definition: TaskDefinition, read: Callable[[TaskDefinition], MetaDataset]
) -> MetaDataset:
    """Return what `read` returns, without tasks that have no parameter of the space."""
    space, metadata = definition.space, read(definition)
    kept = tuple(task for task in metadata if not np.isnan(task.units).all())
    n_others = len(metadata) - len(kept)
    if space is None or not n_others:
        return metadata
    if not kept:
        tasks = read(replace(definition, space=None))
        names = sorted({name for task in tasks for name in task.space.domains})
        raise ValueError(
            f"No trial has a parameter of the space, {[*space.names]}; there are {names}."
        )
    skipped = {**metadata.skipped, "task without a parameter of the space": n_others}
    return replace(metadata, tasks=kept, skipped=skipped)


def past_tasks_in(metadata: MetaDataset, logger: logging.Logger) -> PastTasks:
    """Return past tasks to learn from, and log how many there are.

    A ValueError says that there is nothing to learn from.
    """
    past = PastTasks.of(metadata)
    n_read, n_given = len(past.tasks), counted(len(metadata), "past task")
    logger.info(
        "Learning from %s with %s%s%s.",
        n_given if n_read == len(metadata) else f"{n_read} of {n_given}",
        counted(metadata.n_evaluations, "evaluation"),
        f"; left out: {dict(metadata.skipped)}" if metadata.skipped else "",
        "; Prior.train learns from more" if n_read == MAX_TASKS < len(metadata) else "",
    )
    return past
