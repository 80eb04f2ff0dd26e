"""What the steps of a meta-training learn from: lists, cut into supports and queries.

The entries of every list are put into a random order now and then; supports and queries are
slices of it.

Notation: `M` members, `B` lists of one step and member, `T` lists, `N` their entries,
`L` entries of a query, `S` largest support; see docs/architecture.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.transfer.settings import MetaTrainingSettings
from dre_plugins.transfer.task_lists import TaskLists
from dre_plugins.transfer.training_state import TrainingState

# Steps that draw from one random order: its slices are distinct entries without sorting random
# keys for every draw.
RESHUFFLE = 50
# Validation draws this many times from each list, with supports of these shares of the largest.
VALIDATION_SHARES = (0.0, 0.1, 0.4, 1.0)
# Validation lists at most, evenly spaced: a look at more would take longer than the steps between.
MAX_VALIDATION = 256


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold draws for all members: supports `[M, B, S, …]` and queries `[M, B, L, …]`."""

    support_features: Tensor
    support_values: Tensor
    support_mask: Tensor
    features: Tensor
    values: Tensor
    mask: Tensor


class Draws:
    """Draw lists with their supports, different ones for every member (section 3.2 of the paper).

    What is drawn is a function of the state's generator and step, so that a training that was
    interrupted goes on with the same draws.
    """

    def __init__(
        self,
        lists: TaskLists,
        scorer: ScorerSettings,
        settings: MetaTrainingSettings,
        state: TrainingState,
    ) -> None:
        self._lists = lists
        self._shape = (scorer.n_members, settings.n_lists)
        self._max_support = settings.max_support if scorer.context is not None else 0
        self._length = settings.list_length
        self._state = state
        self._validate_every = settings.validate_every
        self._orders: Tensor | None = None

    def next(self) -> Batch:
        """Return the draws of one step."""
        # Counted from the last look, where a training that was interrupted goes on.
        since = self._state.step % self._validate_every
        if self._orders is None or since % RESHUFFLE == 0:
            self._orders = _shuffled(self._lists, self._state.generator)
        device = self._lists.features.device
        chosen, start, size = (drawn.to(device) for drawn in self._drawn())
        return _slices(
            self._lists, self._orders, chosen, start, size, self._max_support, self._length
        )

    def _drawn(self) -> tuple[Tensor, Tensor, Tensor]:
        """Draw which lists, where in their orders to begin, and sizes of supports `[M, B]`."""
        lists, generator = self._lists, self._state.generator
        chosen = torch.multinomial(
            lists.weights.cpu(), math.prod(self._shape), replacement=True, generator=generator
        ).reshape(self._shape)
        start, share = _uniform((2, *self._shape), generator)
        return chosen, start, _support_sizes(lists.lengths.cpu()[chosen], share, self._max_support)


def validation_batch(
    validation: TaskLists | None,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
    device: str,
) -> Batch | None:
    """Return draws from every validation list, with supports of several sizes, always the same."""
    if validation is None:
        return None
    validation = validation.spread(MAX_VALIDATION)
    generator = torch.Generator(device="cpu").manual_seed(0)
    max_support = settings.max_support if scorer.context is not None else 0
    shares = torch.tensor(VALIDATION_SHARES, dtype=torch.float32, device="cpu")
    chosen = torch.arange(len(validation), device="cpu").repeat_interleave(len(shares))[None]
    share = (shares - 1e-6).clamp_min(0.0).repeat(len(validation))[None]
    start = _uniform(chosen.shape, generator)
    size = _support_sizes(validation.lengths[chosen], share, max_support)
    batch = _slices(
        validation,
        _shuffled(validation, generator),
        chosen,
        start,
        size,
        max_support,
        settings.list_length,
    )
    return Batch(*(getattr(batch, name).to(device) for name in Batch.__slots__))


def _shuffled(lists: TaskLists, generator: torch.Generator) -> Tensor:
    """Return a random order of the real entries of each list `[T, N]`, padding last."""
    shape = lists.values.shape
    keys = _uniform(shape, generator).to(lists.values.device)
    padding = torch.arange(shape[1], device=keys.device) >= lists.lengths[:, None]
    return keys.masked_fill(padding, 2.0).argsort(dim=-1)


def _uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu")


def _support_sizes(lengths: Tensor, share: Tensor, largest: int) -> Tensor:
    """Return sizes from 0 to the largest, at most half of a list, for shares in [0, 1)."""
    most = (lengths // 2).clamp_max(largest)
    return (share * (most + 1)).long()


def _slices(
    lists: TaskLists,
    orders: Tensor,
    chosen: Tensor,
    start: Tensor,
    size: Tensor,
    max_support: int,
    length: int,
) -> Batch:
    """Cut supports and queries out of shuffled lists.

    Args:
        orders: A random order of each `[T, N]`.
        chosen: Which lists `[M, B]`.
        start: Where in their orders to begin, as a share `[M, B]`.
        size: Size of each support `[M, B]`.
        max_support: Entries that a support is padded to.
    """
    lengths = lists.lengths[chosen][..., None]
    first = (start[..., None] * lengths).long()
    place = torch.arange(max_support + length, device=lists.values.device)
    # The query begins behind the support; a slice that reached its own beginning would repeat.
    offset = torch.where(place < max_support, place, place - max_support + size[..., None])
    entries = orders[chosen[..., None], (first + offset) % lengths]
    features = lists.features[chosen[..., None], entries]
    values = lists.values[chosen[..., None], entries]
    return Batch(
        features[:, :, :max_support],
        values[:, :, :max_support],
        place[:max_support] < size[..., None],
        features[:, :, max_support:],
        values[:, :, max_support:],
        offset[..., max_support:] < lengths,
    )
