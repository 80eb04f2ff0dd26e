"""Whatever the user does with torch: suggestions are the same, and what was set returns."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import FrameType
from typing import Any

import numpy as np
import pytest
import scipy.optimize  # noqa: F401 - brings the BLAS that L-BFGS-B uses
import torch
from presets import TINY
from small_spaces import told
from threadpoolctl import ThreadpoolController
from torch_defaults import torch_defaults

from dre_plugins import Settings
from dre_plugins.engine.runtime import isolated, one_blas_thread
from dre_plugins.space import Categorical, Float
from dre_plugins.study import AskTell


@contextmanager
def precision(value: str) -> Iterator[None]:
    torch.set_float32_matmul_precision(value)
    try:
        yield
        assert torch.get_float32_matmul_precision() == value
    finally:
        torch.set_float32_matmul_precision("highest")


@contextmanager
def precision_of_backend(value: str) -> Iterator[None]:
    backend: Any = getattr(torch.backends.mkldnn, "matmul", None)
    if not hasattr(backend, "fp32_precision"):
        pytest.skip("needs torch 2.9")
    before, backend.fp32_precision = backend.fp32_precision, value
    try:
        yield
        assert backend.fp32_precision == value
    finally:
        backend.fp32_precision = before


@contextmanager
def autocast(dtype: torch.dtype) -> Iterator[None]:
    with torch.autocast("cpu", dtype):
        yield
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") is dtype


def suggested() -> list[Any]:
    """Return what a study tries, of the ensemble and of the universal prior, and what it says."""
    space = {"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0), "k": Categorical(["a", "b"])}
    study = AskTell(space, seed=3, settings=Settings(preset=TINY), n_startup_trials=4)
    told(study, 12, lambda configuration: configuration["x"] ** 2 + configuration["y"])
    assert study.stats["fallbacks"] == 0 and study.stats["model"]
    tried = [trial.configuration for trial in study.trials]
    gain = study.expected_gain()
    assert gain is not None
    return [*tried, study.recommend(), gain]


@pytest.mark.parametrize(
    "state",
    [
        lambda: autocast(torch.bfloat16),
        lambda: autocast(torch.float16),
        lambda: precision("medium"),
        lambda: precision("high"),
        lambda: precision_of_backend("bf16"),
        lambda: torch_defaults(torch.float64),
        lambda: torch_defaults(torch.float32, "meta"),
    ],
    ids=["bfloat16", "float16", "medium", "high", "bf16 of a backend", "float64", "meta"],
)
def test_what_a_user_has_set_changes_no_suggestion(state) -> None:
    expected = suggested()
    with state():
        assert suggested() == expected


@contextmanager
def inside_elsewhere() -> Iterator[None]:
    """Keep another thread inside a block."""
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with isolated(n_threads=1):
            entered.set()
            leave.wait()

    other = threading.Thread(target=stay)
    other.start()
    entered.wait()
    try:
        yield
    finally:
        leave.set()
        other.join()


def in_a_thread(work: Callable[[], int | None]) -> int | None:
    """Return what is seen in a thread that begins now."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    in_a_thread(lambda: torch.set_num_threads(1))  # which is what later threads begin with


def test_a_thread_that_begins_meanwhile_has_the_users_count(two_threads: None) -> None:
    with isolated(n_threads=1):
        assert torch.get_num_threads() == 1
        assert in_a_thread(torch.get_num_threads) == 2
        with isolated(n_threads=1), isolated(n_threads=3):
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == in_a_thread(torch.get_num_threads) == 2
    with pytest.raises(ValueError, match="n_threads must be from 1"), isolated(n_threads=10**9):
        pass  # OpenMP would end the process


def test_each_thread_gets_its_own_count_back(two_threads: None) -> None:
    def count_of_another() -> int:
        torch.set_num_threads(3)
        with isolated(n_threads=1):
            assert torch.get_num_threads() == 1
        return torch.get_num_threads()

    with isolated(n_threads=1):
        assert in_a_thread(count_of_another) == 3
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_an_underflow_is_no_error() -> None:
    with np.errstate(all="raise"), isolated():
        assert np.exp(-1e3) == 0.0


def test_precision_returns_when_the_last_has_left() -> None:
    with precision("medium"):
        with inside_elsewhere():
            with isolated():
                assert torch.get_float32_matmul_precision() == "highest"
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
        # One that is set meanwhile changes nothing, and returns.
        torch.set_float32_matmul_precision("highest")
        with inside_elsewhere():
            torch.set_float32_matmul_precision("medium")
            with isolated():
                assert torch.get_float32_matmul_precision() == "highest"


@contextmanager
def blas_threads(value: int) -> Iterator[Callable[[], set[int]]]:
    """Limit BLAS; give what returns the limits of its libraries."""
    blas = ThreadpoolController().select(user_api="blas")

    def counts() -> set[int]:
        return {library["num_threads"] for library in blas.info()}

    with blas.limit(limits=value):
        yield counts
        assert counts() == {value}


def test_blas_has_one_thread_until_the_last_has_left() -> None:
    with blas_threads(2) as counts, one_blas_thread():
        with one_blas_thread():
            assert counts() == {1}
        assert counts() == {1}


class Alarm(Exception):
    """What a signal handler raises."""


def alarm_at(moment: int) -> Callable[..., None]:
    """Return a profiler that raises where Python runs signal handlers: at and after calls.

    Before Python 3.11 a generator that resumes is left out: an exception of a profiler ends it
    there without its `finally`, which one of a signal handler does not.
    """
    moments = count()

    def raise_there(frame: FrameType, event: str, _: object) -> None:
        is_call = event == "call" and (sys.version_info >= (3, 11) or frame.f_lasti < 0)
        if (is_call or event == "c_return") and next(moments) == moment:
            raise Alarm

    return raise_there


@pytest.mark.parametrize(
    ("state", "block"),
    [
        (lambda: precision("medium"), partial(isolated, n_threads=3)),
        (lambda: precision_of_backend("bf16"), isolated),
        (lambda: blas_threads(2), one_blas_thread),
    ],
    ids=["precision", "precision of a backend", "BLAS"],
)
def test_an_alarm_at_any_moment_leaves_no_setting_behind(state, block) -> None:
    n_threads = torch.get_num_threads()
    for moment in count():
        with state():  # which sees that it is as before
            try:
                sys.setprofile(alarm_at(moment))
                with block():
                    pass
                break
            except Alarm:
                pass
            finally:
                sys.setprofile(None)
            assert torch.get_num_threads() == n_threads
    assert moment > 10
