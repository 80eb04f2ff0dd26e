"""Exceptions that do not come from a surrogate, such as those of a signal handler.

Python may run a signal handler between any two instructions, so its exception appears in the
middle of a suggestion. It must reach the user, whereas a failure of a surrogate falls back.
"""

import functools
import signal
import sys
from types import CodeType
from typing import Any

from dre_plugins.space.rules import RuleError

# A surrogate raises exception classes of these packages, or Python's own.
SURROGATES = {"dre_plugins", "numpy", "safetensors", "safetensors_rust", "scipy", "torch"}


def is_interruption(error: Exception) -> bool:
    """Return whether an exception comes from something other than a surrogate.

    This is so if the user's rule raised it, it passed through a signal handler, it is a timeout,
    or its class is the user's. Such an exception may have been raised in this thread by another
    one, which leaves no trace of its origin.
    """
    if is_from_signal_handler(error) or isinstance(error, (RuleError, TimeoutError)):
        return True
    package = type(error).__module__.partition(".")[0]
    return package not in SURROGATES and package not in sys.stdlib_module_names


def is_from_signal_handler(error: BaseException) -> bool:
    """Return whether an exception, or its cause, passed through a signal handler."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    cause: BaseException | None = error
    while cause is not None:
        trace = cause.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in handlers:
                return True
            trace = trace.tb_next
        cause = cause.__cause__
    return False


def _code_of(handler: Any) -> CodeType | None:
    """Return the code of a function, a method, or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    method = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
    code = getattr(method, "__code__", None)
    return code if isinstance(code, CodeType) else None
