"""The access of one study to a memory: past studies to learn from, and its own record."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cached_property

from dre_plugins.memory.choices import past_tasks_for
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.recorded_study import Header
from dre_plugins.memory.records import Recorder
from dre_plugins.memory.selection import usable, words_of
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.past_tasks import PastTasks

# Errors of reading and writing in a folder that is full, gone, or written by others.
_FAILURES = (OSError, *DAMAGES)


class StudyMemory:
    """Learn from past studies once, and record ended trials.

    No failure to read or write ends a study: the first one is warned of, all are counted. The
    counters `stats`, which may be replaced, are "memory_errors" and "past_studies" that were
    learnt from.
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
        """Record the trial and search space that `make` returns, see `Recorder.write`.

        If `make` raises, that counts as a failure to write.
        """
        with self._surviving("written"):
            self._recorder.write(number, *make(), is_stopped=is_stopped, source=source)

    def unrecorded(self, numbers: Collection[int]) -> list[int]:
        """Return which numbers of ended trials no record has; none if that cannot be read."""
        missing: set[int] = set()
        if numbers:
            with self._surviving("read"):
                missing = {*numbers} - self._recorder.numbers()
        return sorted(missing)

    def past_tasks_for(self, space: SearchSpace | str) -> PastTasks | None:
        """Return the past studies that help, see `choices.past_tasks_for`."""
        is_empty = isinstance(space, SearchSpace) and not space.n_parameters
        if len(self._header.directions) != 1 or is_empty:
            return None
        past: PastTasks | None = None
        with self._surviving("learnt from"):
            if not isinstance(space, str) or words_of([space]) & self._known_words:
                past = past_tasks_for(self._memory, self._header.study, space, self._logger)
        if past is not None and isinstance(space, SearchSpace) and not past.may_help(space):
            past = None  # for example of batch_size=32 alone, where the study has [16, 64]
        if past is None and isinstance(space, str):  # there may be some with another parameter
            self.stats.setdefault("past_studies", 0)
        else:
            self.stats["past_studies"] = 0 if past is None else len(past.tasks)
        return past

    @cached_property
    def _known_words(self) -> set[str]:
        """Return all forms of the names of past studies' parameters, see `words_of`.

        Read once, as a first trial may show many parameters that no past study has.
        """
        index = self._memory.index()
        digests = {entry.space for entry in usable(index, without=self._header.study)}
        return set().union(*(words_of(index.names(digest)) for digest in digests))

    @contextmanager
    def _surviving(self, failed: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            count_failure(self._memory, failed, error, self.stats, self._logger)


def count_failure(
    memory: Memory, failed: str, error: Exception, stats: Counter[str], logger: logging.Logger
) -> None:
    """Count that a memory cannot be read or written, as `failed` says; warn of the first time."""
    stats["memory_errors"] += 1
    if stats["memory_errors"] == 1:
        logger.warning(
            "The memory %s cannot be %s (%s: %s). The study goes on without; further failures are "
            "only counted.",
            memory.path,
            failed,
            type(error).__name__,
            error,
        )
