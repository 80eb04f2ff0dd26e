"""Run torch inside a user's program without changing its global state.

Optimisation loops run in the user's process, beside the user's own training. So the engine never
sets a seed, a default dtype or a default device; it limits threads and asks for full precision
only while it computes.
"""

import _thread
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

from dre_plugins.checks import require
from dre_plugins.engine.settings import MAX_THREADS

_entering = threading.Lock()


@contextmanager
def _limited_threads(n_threads: int) -> Iterator[None]:
    """Limit the intra-op threads of torch in this thread, and in no other one.

    The limit belongs to the thread that sets it (OpenMP's, and MKL's since torch 1.10), but
    threads that start later inherit it. So a helper thread restores the inherited limit at once;
    otherwise a thread that the user starts meanwhile would stay limited.
    """
    before = n_threads
    try:
        with _entering:  # else a thread could mistake another's limit for the user's setting
            before = torch.get_num_threads()
            if n_threads != before:
                torch.set_num_threads(n_threads)
                _set_count_of_new_threads(before)
        yield
    finally:
        if n_threads != before:
            torch.set_num_threads(before)


def _set_count_of_new_threads(n_threads: int) -> None:
    """Set the limit that new threads inherit, and not that of this thread."""
    done = threading.Lock()
    done.acquire()

    def set_it() -> None:
        torch.set_num_threads(n_threads)
        done.release()

    # Not `threading.Thread`, whose `start` must not be interrupted by a signal handler.
    _thread.start_new_thread(set_it, ())
    done.acquire()


class _ForAllThreads:
    """Change a setting of all threads, for the outermost of nested or concurrent users.

    An exception of a signal handler may appear between any two calls, and leaves no user behind.

    Args:
        plan: Returns what changes the setting and what restores it, or None if it is as wanted.
            It changes nothing itself, so that what restores is known before anything changes.
    """

    def __init__(self, plan: Callable[[], tuple[Callable[[], None], Callable[[], None]] | None]):
        self._plan = plan
        # The garbage collector may end a user within the block of another, in the same thread.
        self._lock = threading.RLock()
        self._users: set[object] = set()
        self._restore: Callable[[], None] = _nothing

    @contextmanager
    def __call__(self) -> Iterator[None]:
        user = object()
        try:
            self._enter(user)
            yield
        finally:
            try:
                self._leave(user)
            except BaseException:  # of a signal handler, in the middle
                self._leave(user)
                raise

    def _enter(self, user: object) -> None:
        with self._lock:
            self._users.add(user)
            planned = self._plan()  # for each user: the program may have set it since the first
            if planned is not None:
                change, self._restore = planned
                change()

    def _leave(self, user: object) -> None:
        """Forget a user, and restore the setting after the last; do nothing if that was done."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._restore()
                self._restore = _nothing


def _nothing() -> None:
    """Do nothing: the setting was not changed."""


def _full_precision_plan() -> tuple[Callable[[], None], Callable[[], None]] | None:
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # since torch 2.9, if the user has set it for a type of device
        backends: list[Any] = [getattr(torch.backends, kind).matmul for kind in ("mkldnn", "cuda")]
        before_by_backend = [backend.fp32_precision for backend in backends]

        def write(precisions: Iterable[str]) -> None:
            for backend, precision in zip(backends, precisions, strict=True):
                backend.fp32_precision = precision

        if set(before_by_backend) == {"ieee"}:
            return None
        return partial(write, ["ieee"] * len(backends)), partial(write, before_by_backend)
    if before == "highest":
        return None
    set_precision = torch.set_float32_matmul_precision
    return partial(set_precision, "highest"), partial(set_precision, before)


@cache
def _blas() -> ThreadpoolController:
    """Return the control of the BLAS that NumPy and SciPy have loaded, found once in 5 ms."""
    return ThreadpoolController().select(user_api="blas")


def _one_blas_thread_plan() -> tuple[Callable[[], None], Callable[[], None]] | None:
    libraries = _blas().lib_controllers
    before = [library.get_num_threads() for library in libraries]

    def write(counts: Iterable[int]) -> None:
        for library, count in zip(libraries, counts, strict=True):
            library.set_num_threads(count)

    if set(before) <= {1}:
        return None
    return partial(write, [1] * len(libraries)), partial(write, before)


_full_precision = _ForAllThreads(_full_precision_plan)
# If training occupies the cores, steps of L-BFGS-B wait for BLAS threads: with one thread, a
# suggestion takes .10 s instead of .14 s (lab/2026-11-24-blas-threads.md).
one_blas_thread = _ForAllThreads(_one_blas_thread_plan)


@contextmanager
def isolated(device: str | torch.device = "cpu", n_threads: int = 1) -> Iterator[None]:
    """Compute on `device` with `n_threads`, whatever the user's global torch state is.

    `device` is also the default inside the block. One intra-op thread is fastest for products of
    this size: several wait for each other (docs/decisions/one-thread.md). NumPy's underflow to 0
    is no error, even if the user has asked for one by `numpy.seterr(all="raise")`.
    """
    require(1 <= n_threads <= MAX_THREADS, "n_threads", n_threads, f"from 1 to {MAX_THREADS}")
    place = torch.device(device)
    with (
        _limited_threads(n_threads),
        _full_precision(),
        _no_autocast("cpu"),
        _no_autocast(place.type),
        _default_device(place),
        torch.inference_mode(False),
        torch.enable_grad(),
        np.errstate(under="ignore"),
    ):
        yield


def _no_autocast(kind: str) -> AbstractContextManager[object]:
    """Return a context without mixed precision on a kind of device."""
    return (
        torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
    )


def _default_device(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which `device` is the default, none if it is already.

    A default device is a mode that every torch call passes through; for the small tensors here
    that would cost half of a fit.
    """
    # Not `torch.get_default_device`, which raises in torch 2.4 after `set_default_device(None)`.
    return nullcontext() if torch.empty(0).device == device else device
