"""One lock for all that an object does, so that several threads may use it and pickle it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import wraps
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def locked(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Let one thread at a time into the methods of a `Locked` object."""

    @wraps(method)
    def one_at_a_time(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return one_at_a_time


class Locked:
    """Hold a lock, which is not pickled.

    Attributes:
        DERIVED: Names of attributes that are made of the others, and not pickled either.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._lock = RLock()

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Return the state, with copies of what other threads change: pickling goes on after."""
        return {
            name: copy(part) if isinstance(part, (dict, list, set)) else part
            for name, part in self.__dict__.items()
            if name not in ("_lock", *self.DERIVED)
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()
