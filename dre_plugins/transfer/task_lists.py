"""The ranked lists of past tasks, and the batches of supports and queries drawn from them.

The entries of every list are shuffled from time to time; supports and queries are slices of it.

Notation: `T` lists (one for each task, more where trials were pruned), `N` their entries, `D`
features, `M` members, `B` lists of one step and member, `L` entries of a query, `S` largest
support; see docs/architecture.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.space.base import Array, Features
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.alignment import try_align
from dre_plugins.transfer.training_state import MetaTrainingSettings, TrainingState

# Steps between shuffles. Slices of a shuffled list are distinct entries; no draw needs a sort
# (lab/2026-11-23-decisions.md).
RESHUFFLE = 50
# Validation draws this many times from each list, with supports of these shares of the largest: as
# a study has them at its beginning and later. No others were tried.
VALIDATION_SHARES = (0.0, 0.1, 0.4, 1.0)
# Largest number of validation lists, evenly spaced: more would take longer than the steps between.
MAX_VALIDATION = 256


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
        rows: list[tuple[Features, Array, float]] = []  # features, ranks and weight of a list
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
    """Return the evaluations of a task as canonical coordinates of `space` `[N, P]`.

    A ValueError says that the two have no parameter in common.
    """
    if task.space == space:
        return task.units
    alignment = try_align(task.space, space)
    if alignment is None:
        raise ValueError(
            f"Task {task.name!r} has none of the parameters {[*space.names]}, but "
            f"{[*task.space.names]}; leave it out."
        )
    return alignment.convert(task.units)


def evenly_spaced(length: int, count: int) -> list[int]:
    """Return at most `count` positions among `length`, ends included."""
    places: Array = np.linspace(0, length - 1, min(count, length)).round()
    return [int(place) for place in places]


# ---- batches


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold draws for all members: supports `[M, B, S, …]` and queries `[M, B, L, …]`."""

    support_features: Tensor
    support_values: Tensor
    support_mask: Tensor
    features: Tensor
    values: Tensor
    mask: Tensor


def training_batches(
    lists: TaskLists, scorer: ScorerSettings, settings: MetaTrainingSettings, state: TrainingState
) -> Iterator[Batch]:
    """Yield a batch for each step, with different draws for every member (paper, section 3.2).

    The draws are a function of the state's generator and step, so that a training that was
    interrupted goes on with the same draws.
    """
    shape = (scorer.n_members, settings.n_lists)
    orders: Tensor | None = None
    while True:
        # Counted from the last validation, where an interrupted training goes on.
        since = state.step % settings.validate_every
        if orders is None or since % RESHUFFLE == 0:
            orders = _shuffled(lists, state.generator)
        weights = lists.weights.cpu()
        chosen = torch.multinomial(weights, math.prod(shape), True, generator=state.generator)
        start, share = _uniform((2, *shape), state.generator)
        yield _slices(lists, orders, chosen.reshape(shape), start, share, scorer, settings)


def validation_batch(
    validation: TaskLists | None,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
    device: str,
) -> Batch | None:
    """Return draws from every validation list, with supports of several sizes, always the same."""
    if validation is None:
        return None
    validation = validation.spread(MAX_VALIDATION).to(device)
    generator = torch.Generator(device="cpu").manual_seed(0)
    shares = torch.tensor(VALIDATION_SHARES, dtype=torch.float32, device="cpu")
    chosen = torch.arange(len(validation), device="cpu").repeat_interleave(len(shares))[None]
    share = (shares - 1e-6).clamp_min(0.0).repeat(len(validation))[None]
    start = _uniform(chosen.shape, generator)
    orders = _shuffled(validation, generator)
    return _slices(validation, orders, chosen, start, share, scorer, settings)


def _shuffled(lists: TaskLists, generator: torch.Generator) -> Tensor:
    """Return a random order of the real entries of each list `[T, N]`, padding last."""
    shape = lists.values.shape
    keys = _uniform(shape, generator).to(lists.values.device)
    padding = torch.arange(shape[1], device=keys.device) >= lists.lengths[:, None]
    return keys.masked_fill(padding, 2.0).argsort(dim=-1)


def _uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu")


def _slices(
    lists: TaskLists,
    orders: Tensor,
    chosen: Tensor,
    start: Tensor,
    share: Tensor,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
) -> Batch:
    """Cut supports and queries out of shuffled lists.

    Args:
        orders: A random order of each `[T, N]`.
        chosen: Which lists `[M, B]`.
        start: Where in their orders to begin, as a share `[M, B]`.
        share: Sizes of supports, as shares in [0, 1) of the largest: `max_support`, at most
            half of a list `[M, B]`.
    """
    max_support = settings.max_support if scorer.context is not None else 0
    device = lists.values.device
    chosen, start, share = chosen.to(device), start.to(device), share.to(device)
    lengths = lists.lengths[chosen][..., None]
    largest = (lengths // 2).clamp_max(max_support)
    size = (share[..., None] * (largest + 1)).long()
    first = (start[..., None] * lengths).long()
    place = torch.arange(max_support + settings.list_length, device=device)
    # The query begins behind the support and ends before its own beginning, so nothing repeats.
    offset = torch.where(place < max_support, place, place - max_support + size)
    entries = orders[chosen[..., None], (first + offset) % lengths]
    features = lists.features[chosen[..., None], entries]
    values = lists.values[chosen[..., None], entries]
    return Batch(
        features[:, :, :max_support],
        values[:, :, :max_support],
        place[:max_support] < size,
        features[:, :, max_support:],
        values[:, :, max_support:],
        offset[..., max_support:] < lengths,
    )
