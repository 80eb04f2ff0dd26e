"""What the steps of a meta-training learn from: lists, cut into supports and queries.

For a number of steps lists are drawn from a *window*: some of the tasks, or all of them, with the
entries of each in a random order. Where lists are made for it, a thread makes the next window
while steps are taken; what is in memory is only shuffled, which is not worth a thread.

Notation: `M` members, `B` lists of one step and member, `T` lists of a window, `N` their entries,
`L` entries of a query, `S` largest support; see docs/architecture.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.transfer.data_parallel import Share
from dre_plugins.transfer.streamed_lists import StreamedLists
from dre_plugins.transfer.task_lists import TaskLists
from dre_plugins.transfer.training_state import TrainingState

if TYPE_CHECKING:
    from dre_plugins.transfer.meta_training import MetaTrainingSettings

# Steps that draw from one window. Within them, draws of a list are slices of one permutation:
# distinct entries without sorting random keys for each draw.
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


@dataclass(frozen=True, slots=True)
class _Window:
    """Hold lists, a random order of each `[T, N]`, and the generator's state after them."""

    lists: TaskLists
    orders: Tensor
    generator_state: Tensor


class Draws:
    """Draw lists with their supports, different ones for every member (section 3.2).

    What is drawn is a function of the state's generator and step, as if each window were made
    when its first step needs it; so is the generator's state, which goes into a checkpoint.

    Args:
        lists: What to learn from, where the training computes.
        scorer: The ensemble.
        settings: How to train.
        state: The training's state.
        share: Which of several processes this is.
    """

    def __init__(
        self,
        lists: TaskLists | StreamedLists,
        scorer: ScorerSettings,
        settings: MetaTrainingSettings,
        state: TrainingState,
        share: Share,
    ) -> None:
        self._source = lists
        self._share = share
        self._shape = (scorer.n_members, settings.n_lists)
        self._max_support = settings.max_support if scorer.context is not None else 0
        self._length = settings.list_length
        self._state = state
        self._n_steps = settings.n_steps
        self._validate_every = settings.validate_every
        self._window: _Window | None = None
        self._ahead: Future[_Window] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dre-window")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)

    def next(self) -> Batch:
        """Return the draws of one step."""
        # Counted from the last look, where a training that was interrupted goes on.
        since = self._state.step % self._validate_every
        window = self._window
        if window is None or since % RESHUFFLE == 0:
            window = self._window = self._next_window(min(RESHUFFLE, self._validate_every - since))
        drawn = self._drawn(window.lists, self._state.generator)
        device = window.lists.features.device
        chosen, start, size = (self._share.of(one).to(device) for one in drawn)
        return _slices(
            window.lists, window.orders, chosen, start, size, self._max_support, self._length
        )

    def _next_window(self, n_steps: int) -> _Window:
        """Return the window of the next steps, and have the one after them made."""
        generator = self._state.generator
        window = self._made(generator) if self._ahead is None else self._ahead.result()
        generator.set_state(window.generator_state)
        is_last = self._state.step + n_steps >= self._n_steps
        if is_last or isinstance(self._source, TaskLists):
            self._ahead = None
        else:
            self._ahead = self._thread.submit(self._after, window, n_steps)
        return window

    def _made(self, generator: torch.Generator) -> _Window:
        """Return a window; the generator goes on."""
        lists = self._source.window(math.prod(self._shape) * RESHUFFLE, generator)
        return _Window(lists, _shuffled(lists, generator), generator.get_state())

    def _after(self, window: _Window, n_steps: int) -> _Window:
        """Return the window that follows that many steps of another one."""
        with isolated():
            generator = torch.Generator(device="cpu")
            generator.set_state(window.generator_state)
            for _ in range(n_steps):
                self._drawn(window.lists, generator)
            return self._made(generator)

    def _drawn(
        self, lists: TaskLists, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw which lists, where in their orders to begin, and sizes of supports `[M, B]`."""
        chosen = torch.multinomial(
            lists.weights.cpu(), math.prod(self._shape), replacement=True, generator=generator
        ).reshape(self._shape)
        start, share = _uniform((2, *self._shape), generator)
        return chosen, start, _support_sizes(lists.lengths.cpu()[chosen], share, self._max_support)


def validation_batch(
    validation: TaskLists | StreamedLists | None,
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
        lists: All lists.
        orders: A random order of each `[T, N]`.
        chosen: Which lists `[M, B]`.
        start: Where in their orders to begin, as a share `[M, B]`.
        size: Size of each support `[M, B]`.
        max_support: Entries that a support is padded to.
        length: Longest query.
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
