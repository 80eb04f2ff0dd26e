"""Run torch inside somebody else's program without leaving a trace in it (R10).

Optimisation loops run in the user's process, beside the user's own training. So the engine never
sets a seed, a default dtype or a default device, and limits threads only while it computes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch


class _ThreadLimit:
    """Limit torch's intra-op threads for the outermost of nested or concurrent users.

    Without the shared count, two threads that overlap would each restore what they found, and
    the second would restore the first one's limit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._original = 0
        self._outer = threading.local()  # the limits of this thread's enclosing blocks

    @contextmanager
    def __call__(self, n_threads: int) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._original = torch.get_num_threads()
            self._users += 1
            torch.set_num_threads(n_threads)
        outer = getattr(self._outer, "limit", None)
        self._outer.limit = n_threads
        try:
            yield
        finally:
            self._outer.limit = outer
            with self._lock:
                self._users -= 1
                torch.set_num_threads(self._original if outer is None else outer)


_limit_threads = _ThreadLimit()


@contextmanager
def isolated(device: str | torch.device = "cpu", n_threads: int = 1) -> Iterator[None]:
    """Compute on `device` with `n_threads`, whatever the user's global torch state is.

    Args:
        device: Default device inside the block, also against `torch.set_default_device`.
        n_threads: Number of intra-op threads inside the block. For products of this size one
            is fastest: several wait for each other (`docs/decisions.md`, Engine).
    """
    with (
        _limit_threads(n_threads),
        _default_device(torch.device(device)),
        torch.inference_mode(False),
        torch.enable_grad(),
    ):
        yield


def _default_device(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which `device` is the default, none if it is already.

    A default device is a mode that every torch call passes through; for the small tensors here
    that would cost half of a fit.
    """
    # Not `torch.get_default_device`, which raises in torch 2.4 after `set_default_device(None)`.
    return nullcontext() if torch.empty(0).device == device else device
