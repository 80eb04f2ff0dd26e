"""Past studies that a study learns from without training.

Their trials are expressed in the study's search space; the universal prior reads each of them
(`recommend.past_gains`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dre_plugins.checks import require
from dre_plugins.recommend.lists import TrialList, joint_list
from dre_plugins.recommend.prior import PastTask
from dre_plugins.recommend.sketch import sketched
from dre_plugins.space.base import Array, Mask, Positions, fill
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task, counted, with_parameters
from dre_plugins.transfer.spaces.alignment import Alignment, align, try_align
from dre_plugins.transfer.spaces.completion import KnownSpace
from dre_plugins.transfer.spaces.merging import unify_names, union_of

# Most tasks of a metadata set that are read: with so many, a suggestion takes half a second.
MAX_TASKS = 100
# Most trials that are read of a past task: the best and a spread of the others
# (lab/2026-11-29-transfer-acquisition.md).
MAX_TRIALS = 64
# Best trials of each past task among the first candidates; no other number was tried.
N_BEST = 8


@dataclass(frozen=True, eq=False)
class PastTasks(KnownSpace):
    """Hold past tasks, at least one, whose search spaces have a union; they are a `prior`.

    Args:
        tasks: The past tasks.
        mapping: Name in a study's space to name in the past, where they do not match.

    Raises:
        ValueError: If there is no task, the search spaces have no union, or the mapping names a
            parameter that it does not have, or one twice.
    """

    tasks: Sequence[Task]
    mapping: Mapping[str, str] = field(default_factory=dict)
    space: SearchSpace = field(init=False)  # union of theirs, with one name for aliases
    # the search space of the last call and the tasks on it: a study asks for the same again
    _last: list[tuple[SearchSpace, tuple[PastTask, ...]]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        require(len(self.tasks) > 0, "tasks", self.tasks, "one past task at least")
        names = [task.name for task in self.tasks]
        fill(self, space=union_of([task.space for task in self.tasks], names))
        super().__post_init__()

    @classmethod
    def of(cls, metadata: MetaDataset) -> PastTasks:
        """Return the tasks whose evaluations have an order, of more than `MAX_TASKS` the last.

        Raises:
            ValueError: If there are none, or their search spaces have no union.
        """
        metadata = with_parameters(metadata)
        tasks = [task for task in metadata if task.lists()]
        if not tasks:
            skipped = f"; left out: {dict(metadata.skipped)}" if metadata.skipped else ""
            problem = "There are no past tasks"
            if len(metadata):
                some = counted(len(metadata), "past task")
                problem = f"None of {some} has two evaluations that differ"
            raise ValueError(f"{problem}, so there is nothing to learn from{skipped}.")
        return cls(tasks[-MAX_TASKS:])

    def with_mapping(self, mapping: Mapping[str, str] | None) -> PastTasks:
        """Return the past tasks with a mapping of names."""
        return PastTasks(self.tasks, dict(mapping or {}))

    def align(self, space: SearchSpace) -> Alignment:
        """Return how configurations of `space` are expressed in the union.

        Raises:
            ValueError: If the two have no parameter in common; names both.
        """
        return align(space, self.space, mapping=self.mapping)

    def tasks_on(self, space: SearchSpace) -> tuple[PastTask, ...]:
        """Return the tasks that share a parameter with a search space.

        Raises:
            ValueError: If there are none.
        """
        tasks = self._on(space)
        if not tasks:
            self.align(space)  # says why
            raise ValueError(
                f"no past task has two evaluations that differ in the parameters {[*space.names]}."
            )
        return tasks

    def may_help(self, space: SearchSpace) -> bool:
        """Return whether any task shares a parameter with a search space."""
        return bool(self._on(space))

    def _on(self, space: SearchSpace) -> tuple[PastTask, ...]:
        for known, tasks in self._last:
            if known == space:
                return tasks
        aligned = (self._aligned(number, space) for number in range(len(self.tasks)))
        tasks = tuple(task for task in aligned if task is not None)
        self._last[:] = [(space, tasks)]
        return tasks

    def summary(self, space: SearchSpace) -> str:
        """Say in one line which parameters of a space they know."""
        alignment = try_align(space, self.space, mapping=self.mapping)
        matches = "" if alignment is None else f" {alignment.summary()}"
        return f"the record of {counted(len(self.tasks), 'past study', 'past studies')}{matches}"

    @cached_property
    def _ranked(self) -> list[tuple[TrialList, Array]]:
        """Return the order and the values of each task's trials."""
        return [
            joint_list(task.results(), failed="ignore", max_length=MAX_TRIALS)
            for task in self.tasks
        ]

    @cached_property
    def _original_names(self) -> list[dict[str, str]]:
        """Return what each task calls parameters, by their names in the union."""
        spaces = [task.space for task in self.tasks]
        return [
            dict(zip(unified.domains, space.domains, strict=True))
            for unified, space in zip(unify_names(spaces), spaces, strict=True)
        ]

    def _aligned(self, number: int, space: SearchSpace) -> PastTask | None:
        """Return a task on a search space, None if it tells nothing of the shared parameters."""
        task, (ranked, values) = self.tasks[number], self._ranked[number]
        names = self._original_names[number] if self.mapping else {}
        mapping = {names[theirs]: name for name, theirs in self.mapping.items() if theirs in names}
        alignment = None
        with suppress(ValueError):  # a parameter of the mapping has no value in common
            alignment = try_align(task.space, space, mapping=mapping)
        if alignment is None:
            return None
        units = alignment.convert(task.units[ranked.trials])
        columns = space.feature_columns({link.target for link in alignment.links})
        features = np.ascontiguousarray(sketched(space.features(units)[:, columns]))
        if not (np.ptp(ranked.ranks) and np.ptp(features, axis=0).any()):
            return None
        best = np.argsort(-ranked.ranks, kind="stable")[:N_BEST]
        ended = _spread(task.failed)
        of_ended = space.features(alignment.convert(task.units[ended]))[:, columns]
        return PastTask(
            task.name,
            columns,
            features,
            values,
            ranked.ranks,
            units[best].clip(0.0, 1.0),
            np.ascontiguousarray(sketched(of_ended)),
            task.failed[ended],
        )


def _spread(failed: Mask) -> Positions:
    """Return the places of at most `MAX_TRIALS` trials, failed and others in proportion.

    There are some of both; none if no trial has failed.
    """
    if not failed.any():
        return np.empty(0, dtype=np.intp)
    n_kept = min(len(failed), MAX_TRIALS)
    kept = np.linspace(0, len(failed) - 1, n_kept).round().astype(np.intp)
    return np.argsort(failed, kind="stable")[kept]
