"""What meta-training draws from if the lists of all past tasks are too many for memory.

Only a window of the tasks is made into lists at a time; see docs/scale.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.task_folder import release
from dre_plugins.transfer.task_lists import Encode, TaskLists, evenly_spaced

# Numbers that padded lists may have together, in a window or all at once: 256 MiB.
MAX_NUMBERS = 2**26
# What an entry of a list takes beside its features, in numbers: value, key, place in the order.
ENTRY = 8
# Draws of each list of a window, on average: to make a list takes as long as to learn from two.
DRAWS = 8
# Entries of a list in a window; of a longer one others are taken each time.
MAX_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class StreamedLists:
    """Hold tasks whose lists are made when they are drawn from.

    Args:
        tasks: Past tasks, such as those of a folder.
        encode: Returns the features `[N, D]` of all evaluations of a task.
        n_features: Number of features D.
        max_length: Most evaluations of a task in a window.
        device: Where windows are to be.
    """

    tasks: Sequence[Task]
    encode: Encode
    n_features: int
    max_length: int = MAX_LENGTH
    device: str | torch.device = "cpu"

    def __len__(self) -> int:
        return len(self.tasks)

    def to(self, device: str | torch.device) -> StreamedLists:
        """Return the lists with windows on `device`."""
        return replace(self, device=device)

    def window(self, n_draws: int, generator: torch.Generator) -> TaskLists:
        """Draw tasks, all equally likely, and return their lists.

        Args:
            n_draws: Lists to be drawn from the window.
            generator: Source of tasks, and of evaluations of long ones, on the CPU.

        Raises:
            ValueError: If none of them has two evaluations that differ.
        """
        room = MAX_NUMBERS // (self.max_length * (self.n_features + ENTRY))
        count = min(max(n_draws // DRAWS, 1), max(room, 1))
        chosen = torch.randperm(len(self), generator=generator, device="cpu")[:count]
        return self._made([self._some(self.tasks[row], generator) for row in chosen.tolist()])

    def spread(self, count: int) -> TaskLists:
        """Return the lists of at most `count` tasks, evenly spaced among all."""
        chosen = [self.tasks[row] for row in evenly_spaced(len(self), count)]
        return self._made(
            [_rows(task, evenly_spaced(len(task), self.max_length)) for task in chosen]
        )

    def digest(self) -> str:
        """Return a hash by which other tasks are told apart: of values and first evaluations."""
        digest = hashlib.sha256(str((self.n_features, self.max_length)).encode())
        for task in self.tasks:
            for array in (task.values, task.units[:1]):
                digest.update(np.ascontiguousarray(array).data)
            release(task)
        return digest.hexdigest()

    def _some(self, task: Task, generator: torch.Generator) -> Task:
        if len(task) <= self.max_length:
            return task
        order = torch.randperm(len(task), generator=generator, device="cpu")
        return _rows(task, order[: self.max_length].sort().values.tolist())

    def _made(self, tasks: Sequence[Task]) -> TaskLists:
        lists = TaskLists.of(tasks, self.encode).to(self.device)
        for task in tasks:
            release(task)
        return lists


def lists_of(
    tasks: Sequence[Task], encode: Encode, n_features: int, longest: int
) -> TaskLists | StreamedLists:
    """Return the lists of tasks: all of them if they fit into memory, see `MAX_NUMBERS`.

    Args:
        tasks: Past tasks.
        encode: Returns the features `[N, D]` of all evaluations of a task.
        n_features: Number of features D.
        longest: Entries that are drawn of a list at most.

    Raises:
        ValueError: If no list is left.
    """
    length = max((len(task) for task in tasks), default=0)
    if len(tasks) * length * (n_features + ENTRY) <= MAX_NUMBERS:
        return TaskLists.of(tasks, encode)
    return StreamedLists(tasks, encode, n_features, min(max(longest, MAX_LENGTH), length))


def _rows(task: Task, rows: list[int]) -> Task:
    """Return a task of some of the evaluations."""
    if len(rows) == len(task):
        return task
    rungs: dict[float, NDArray[np.float64]] = {s: one[rows] for s, one in task.rungs.items()}
    return replace(
        task,
        units=task.units[rows],
        values=task.values[rows],
        failed=task.failed[rows],
        rungs=rungs,
    )
