"""Exceptions that come from outside: what a signal handler raises in the middle of a suggestion.

Python runs a handler between any two instructions, so that its exception appears wherever the
program happens to be. What a surrogate may raise is something else, although both are exceptions.
"""

from __future__ import annotations

import functools
import signal
import sys
from types import CodeType
from typing import Any

from dre_plugins.space.rules import RuleError

# Whose classes of exceptions a surrogate may raise; with those of Python itself.
SURROGATES = {"dre_plugins", "numpy", "safetensors", "safetensors_rust", "scipy", "torch"}


def is_interruption(error: Exception) -> bool:
    """Return whether an exception is none of a surrogate's.

    The user's rule has raised it, it came through a signal handler, it says that time is up, or
    its class is the user's: such are raised in a running thread from another one, which leaves no
    trace of where from.
    """
    if is_from_signal_handler(error) or isinstance(error, (RuleError, TimeoutError)):
        return True
    package = type(error).__module__.partition(".")[0]
    return package not in SURROGATES and package not in sys.stdlib_module_names


def is_from_signal_handler(error: BaseException) -> bool:
    """Return whether an exception, or what it was made of, came through a signal handler."""
    handlers = _codes_of_handlers()
    cause: BaseException | None = error
    while cause is not None:
        trace = cause.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in handlers:
                return True
            trace = trace.tb_next
        cause = cause.__cause__
    return False


def _codes_of_handlers() -> set[CodeType]:
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    return {code for handler in handlers if (code := _code_of(handler)) is not None}


def _code_of(handler: Any) -> CodeType | None:
    """Return the code of a function, a method, or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    method = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
    code = getattr(method, "__code__", None)
    return code if isinstance(code, CodeType) else None
