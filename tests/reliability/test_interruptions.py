"""What a signal handler raises within a suggestion reaches the user, in any framework."""

import ctypes
import functools
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from searches import every_framework

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.interruptions import is_from_signal_handler, is_interruption

if not hasattr(signal, "SIGALRM"):
    pytest.skip("needs signals of Unix", allow_module_level=True)

N_STARTUP = 4


class TooLong(TimeoutError):
    """A timeout of the user's."""


class Stopped(Exception):
    """A shutdown of the user's."""


ERRORS = {
    "timeout": TooLong("time is up"),
    "built-in timeout": TimeoutError(),
    "shutdown": Stopped(),
    "as torch has it": RuntimeError("CUDA error: time is up"),
}


class Handler:
    """An object that can be called, with a method that can be as well."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def method(self, *_: Any) -> None:
        raise self.error

    __call__ = method


def raising(error: Exception, *_: Any) -> None:
    raise error


HANDLERS: dict[str, Callable[[Exception], Any]] = {
    "function": lambda error: lambda *_: raising(error),
    "partial": lambda error: functools.partial(raising, error),
    "object": Handler,
    "method": lambda error: Handler(error).method,
}


@pytest.fixture
def handled() -> Iterator[Callable[[Any], None]]:
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler) and None
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@every_framework
@pytest.mark.parametrize("kind", ERRORS)
def test_what_a_handler_raises_reaches_the_user(framework, kind, handled, monkeypatch) -> None:
    search = framework()
    search.run(N_STARTUP)
    handled(HANDLERS["function"](ERRORS[kind]))
    with monkeypatch.context() as patch, pytest.raises(type(ERRORS[kind])):
        interrupted = Mock(side_effect=lambda *_, **__: signal.raise_signal(signal.SIGALRM))
        patch.setattr(DeepRankingEnsemble, "fit", interrupted)
        search.run(1)
    outcome = search.run(2)
    assert outcome.stats["fallbacks"] == outcome.stats["fallback"] == 0
    assert outcome.stats["model"] + outcome.stats["exploration"] >= 1


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep Python from collecting garbage, of whose callbacks it ignores the exceptions."""
    gc.disable()
    yield
    gc.enable()


@every_framework
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_alarm_at_any_moment_is_heard(framework, handled, no_collection) -> None:
    search, heard, lost = framework(), 0, 0
    search.run(N_STARTUP + 1)
    handled(HANDLERS["function"](TooLong()))
    for k in range(20):
        has_rung = False
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-4 * 1.4**k)
            search.run(1)
            has_rung = signal.setitimer(signal.ITIMER_REAL, 0.0)[0] == 0.0
        except TooLong:
            heard += 1
        except AssertionError as error:  # Optuna's, where the alarm interrupts its own `tell`
            assert isinstance(error.__context__, TooLong)
            heard += 1
        lost += has_rung  # Python ignores what is raised within a finaliser
    assert heard > lost and lost <= 1
    assert search.run(1).stats["fallbacks"] == 0


@pytest.mark.parametrize("kind", HANDLERS)
def test_handlers_of_any_kind_are_known(kind: str, handled: Callable[[Any], None]) -> None:
    handled(HANDLERS[kind](RuntimeError("of the user's")))
    with pytest.raises(RuntimeError) as caught:
        signal.raise_signal(signal.SIGALRM)
    assert is_from_signal_handler(caught.value)
    assert not is_from_signal_handler(RuntimeError())


def test_an_exception_from_another_thread_is_the_users() -> None:
    """As `stopit` and others raise it, which leaves no trace of where it comes from."""
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    here = ctypes.c_ulong(threading.get_ident())
    with pytest.raises(Stopped) as caught:
        raise_in(here, ctypes.py_object(Stopped))
        time.sleep(0.01)
    assert is_interruption(caught.value)


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("CUDA error"), FloatingPointError(), OSError(5, "gone")],
    ids=repr,
)
def test_what_breaks_by_itself_is_the_surrogates(error: Exception) -> None:
    assert not is_interruption(error)
