"""Past studies that a study learns from without training.

Their trials are expressed in the study's search space; the universal prior reads each of them
(`recommend.past_gains`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dre_plugins.recommend.imputation import joint_list
from dre_plugins.recommend.lists import TrialList
from dre_plugins.recommend.past_tasks import PastTask
from dre_plugins.recommend.sketch import sketched
from dre_plugins.space import Domain
from dre_plugins.space.base import Array
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import Task, counted
from dre_plugins.transfer.spaces.alignment import try_align
from dre_plugins.transfer.spaces.completion import completed, known_names
from dre_plugins.transfer.spaces.merging import in_canonical_order, merged_space, unify_names

# Most trials that are read of a past task: the best and a spread of the others.
MAX_TRIALS = 64
# Best trials of each past task among the first candidates.
N_BEST = 8


@dataclass(frozen=True, eq=False)
class PastTasks:
    """Hold past tasks, at least one, whose search spaces have a union."""

    tasks: Sequence[Task]
    # the search space of the last call and the tasks on it: a study asks for the same again
    _last: list[tuple[SearchSpace, tuple[PastTask, ...]]] = field(default_factory=list, init=False)

    @cached_property
    def space(self) -> SearchSpace:
        """Return the union of the search spaces."""
        return in_canonical_order(merged_space(unify_names([task.space for task in self.tasks])))

    def on(self, space: SearchSpace) -> tuple[PastTask, ...]:
        """Return the tasks that share a parameter with a search space."""
        for known, tasks in self._last:
            if known == space:
                return tasks
        aligned = (self._aligned(number, space) for number in range(len(self.tasks)))
        tasks = tuple(task for task in aligned if task is not None)
        self._last[:] = [(space, tasks)]
        return tasks

    def summary(self, space: SearchSpace) -> str:
        """Say in one line which parameters of a space they know."""
        alignment = try_align(space, self.space)
        known = "" if alignment is None else f" {alignment.summary()}"
        return f"the record of {counted(len(self.tasks), 'past study', 'past studies')}{known}"

    def knows(self, name: str, domain: Domain, others: Mapping[str, Domain] | None = None) -> bool:
        """Return whether they have a parameter of a study, whose `others` are known."""
        return name in known_names(self.space, {**(others or {}), name: domain})

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the parameters that a define-by-run study has shown, and their others."""
        return completed(self.space, domains)

    @cached_property
    def _ranked(self) -> list[tuple[TrialList, Array]]:
        """Return the order and the values of each task's trials."""
        return [
            joint_list(task.trials(), failed="ignore", max_length=MAX_TRIALS)
            for task in self.tasks
        ]

    def _aligned(self, number: int, space: SearchSpace) -> PastTask | None:
        """Return a task on a search space, None if it tells nothing of the shared parameters."""
        task, (ranked, values) = self.tasks[number], self._ranked[number]
        alignment = try_align(task.space, space)
        if alignment is None:
            return None
        units = alignment.convert(task.units[ranked.trials])
        columns = space.feature_columns({link.target for link in alignment.links})
        features = np.ascontiguousarray(sketched(space.features(units)[:, columns]))
        if not (np.ptp(ranked.ranks) and np.ptp(features, axis=0).any()):
            return None
        best = np.argsort(-ranked.ranks, kind="stable")[:N_BEST]
        return PastTask(
            task.name, columns, features, values, ranked.ranks, units[best].clip(0.0, 1.0)
        )
