"""The access of one study to a memory: a prior to start from, and its own record."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dre_plugins.memory.choices import prior_for
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.recorded import Header
from dre_plugins.memory.records import Recorder
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.memory_turns import count_memory_turns

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

Result = TypeVar("Result")

# Errors of reading and writing in a folder that is full, gone, or written by others.
_FAILURES = (OSError, *DAMAGES)


class StudyMemory:
    """Learn from past studies once, and record ended trials.

    No failure to read or write ends a study: the first one is warned of, all are counted. The
    counters `stats`, which may be replaced, are "memory_errors", "past_studies" that were learnt
    from, and "memory_contradicted" suggestions, see `count_memory_turns`.
    """

    def __init__(
        self, memory: Memory, header: Header, *, stats: Counter[str], logger: logging.Logger
    ) -> None:
        self._memory = memory
        self._header = header
        self.stats = stats
        self._logger = logger
        self._recorder = Recorder(memory.records, header)

    def record(
        self,
        number: int,
        make: Callable[[], tuple[Trial, SearchSpace]],
        *,
        is_stopped: bool = False,
        source: str = "",
    ) -> None:
        """Record a trial that has ended, see `Recorder.write`.

        Args:
            make: Returns the trial and its search space; if it raises, that counts as a failure to
                write.
        """
        write = partial(self._recorder.write, is_stopped=is_stopped, source=source)
        self._guarded(lambda: write(number, *make()))

    def prior_for(self, space: SearchSpace | str) -> Prior | None:
        """Return a prior of the past studies that help, see `choices.prior_for`."""
        is_empty = isinstance(space, SearchSpace) and not space.n_parameters
        if len(self._header.directions) != 1 or is_empty:
            return None
        study = self._header.study
        prior = self._guarded(lambda: prior_for(self._memory, study, space, self._logger))
        self.stats["past_studies"] = len(prior.card.tasks) if prior is not None else 0
        return prior

    def turns(
        self, prior: Any, space: SearchSpace, history: Sequence[Trial], numbers: range
    ) -> int:
        """Return how many of the suggestions use the memory, see `count_memory_turns`."""
        return count_memory_turns(prior, space, history, numbers, self.stats)

    def _guarded(self, action: Callable[[], Result]) -> Result | None:
        try:
            return action()
        except _FAILURES as error:
            self.stats["memory_errors"] += 1
            if self.stats["memory_errors"] == 1:
                self._logger.warning(
                    "The memory %s cannot be used (%s: %s). The study goes on without; further "
                    "failures are only counted.",
                    self._memory.path,
                    type(error).__name__,
                    error,
                )
            return None
