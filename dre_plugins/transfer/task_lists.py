"""The ranked lists of all past tasks, padded to one batch, from which meta-training draws.

Notation: `T` lists (one a task, more where trials were pruned), `N` entries, `D` features; see
docs/architecture.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.runtime import isolated
from dre_plugins.space.base import Array, Features
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.alignment import align

# One list: its features `[N, D]`, its ranks `[N]` and its weight.
Row = tuple[Features, Array, float]


@dataclass(frozen=True, slots=True)
class TaskLists:
    """Hold the lists of past tasks."""

    features: Tensor  # configurations `[T, N, D]`, padded behind
    values: Tensor  # their ranks within the list `[T, N]`, in (−1, 1), larger is better
    lengths: Tensor  # real entries of each list `[T]`
    weights: Tensor  # how often a list is drawn, relative to others `[T]`: 1 for final values

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_features(self) -> int:
        """Return the number of features D."""
        return self.features.shape[-1]

    def to(self, device: str | torch.device) -> TaskLists:
        """Return the lists on `device`."""
        return TaskLists(*(getattr(self, name).to(device) for name in self.__slots__))

    def spread(self, count: int) -> TaskLists:
        """Return at most `count` lists, evenly spaced."""
        chosen = evenly_spaced(len(self), count)
        if len(chosen) == len(self):
            return self
        return TaskLists(*(getattr(self, name)[chosen] for name in self.__slots__))

    def digest(self) -> str:
        """Return a hash that differs for other lists."""
        digest = hashlib.sha256()
        for name in self.__slots__:
            digest.update(getattr(self, name).cpu().numpy().tobytes())
        return digest.hexdigest()

    @classmethod
    def of(cls, tasks: Sequence[Task], space: SearchSpace) -> TaskLists:
        """Arrange tasks into lists, with features of `space`.

        Failures are tied at the end of a list. Each step at which many trials were pruned makes a
        further list. Lists whose values are all the same are left out, see `Task.lists`; a
        ValueError says that none is left.
        """
        rows: list[Row] = []
        for task in tasks:
            encoded = space.features(units_in(space, task))
            for entries in task.lists():
                rows.append((encoded[entries.trials], entries.ranks, entries.weight))
        if not rows:
            raise ValueError(
                f"None of {len(tasks)} past tasks has two evaluations that differ, so there is "
                "nothing to learn from; add studies with complete trials."
            )
        # On the CPU, whatever the user's default device is, and trainable: no inference mode.
        with isolated():
            features, ranks = (
                pad_sequence([torch.from_numpy(row[part]) for row in rows], batch_first=True)
                for part in (0, 1)
            )
            lengths = torch.tensor([len(row[1]) for row in rows])
            mask = torch.arange(ranks.shape[1]) < lengths[:, None]
            weights = torch.tensor([weight for _, _, weight in rows], dtype=torch.float32)
            return cls(features, rank_normalised(ranks, mask), lengths, weights)


def units_in(space: SearchSpace, task: Task) -> Array:
    """Return the evaluations of a task as canonical coordinates of `space` `[N, P]`."""
    if task.space == space:
        return task.units
    return align(task.space, space).convert(task.units)


def evenly_spaced(length: int, count: int) -> list[int]:
    """Return at most `count` positions among `length`, ends included."""
    places: Array = np.linspace(0, length - 1, min(count, length)).round()
    return [int(place) for place in places]
