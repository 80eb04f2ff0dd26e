"""The access of one study to a memory: a prior to start from, when it is used, and its own record.

Of the first ten suggestions those with even numbers use the prior of past studies, which the user
did not choose. The odd ones belong to the universal prior, which makes most of the progress of
these trials, so that misleading past studies only replace space-filling points
(lab/2026-11-24-memory-harm.md). Later on, studies end better without it, be the past ones related
or misleading (lab/2026-11-25-memory-later-turns.md).
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_plugins.memory.choices import prior_for
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.recorded import Header
from dre_plugins.memory.records import Recorder
from dre_plugins.recommend.ensemble.trust import agreement
from dre_plugins.recommend.lists import final_value, final_values, has_failed
from dre_plugins.recommend.prior import fits
from dre_plugins.recommend.schedule import N_PRIOR_TRIALS, is_universal_turn
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# Number of random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256
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
        """Record the trial and search space that `make` returns, see `Recorder.write`.

        If `make` raises, that counts as a failure to write.
        """
        with self._surviving("written"):
            self._recorder.write(number, *make(), is_stopped=is_stopped, source=source)

    def prior_for(self, space: SearchSpace | str) -> Prior | None:
        """Return a prior of the past studies that help, see `choices.prior_for`."""
        is_empty = isinstance(space, SearchSpace) and not space.n_parameters
        if len(self._header.directions) != 1 or is_empty:
            return None
        prior: Prior | None = None
        with self._surviving("learnt from"):
            prior = prior_for(self._memory, self._header.study, space, self._logger)
        if prior is not None and isinstance(space, SearchSpace) and not fits(prior, space):
            prior = None  # for example of batch_size=32 alone, where the study has [16, 64]
        self.stats["past_studies"] = len(prior.card.tasks) if prior is not None else 0
        return prior

    def turns(
        self, prior: Any, space: SearchSpace, history: Sequence[Trial], numbers: range
    ) -> int:
        """Return how many of the suggestions use the memory, see `count_memory_turns`."""
        return count_memory_turns(prior, space, history, numbers, self.stats)

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


def count_memory_turns(
    prior: Prior, space: SearchSpace, history: Sequence[Trial], numbers: range, stats: Counter[str]
) -> int:
    """Return how many of the suggestions use the prior of past studies.

    These are the ones with even numbers below 10, in a batch the first ones; none as long as
    trials contradict the prior more than they agree.
    """
    n_turns = sum(not is_universal_turn(number) for number in numbers if number < N_PRIOR_TRIALS)
    if not n_turns or concordance(prior, space, history) >= 0.0:
        return n_turns
    stats["memory_contradicted"] += n_turns
    return 0


def concordance(prior: Prior, space: SearchSpace, history: Sequence[Trial]) -> float:
    """Return how far the order of a study's trials agrees with the predictions of a prior.

    It is between -1 and 1, see `agreement`, and 0 where there is nothing to compare. Trials
    without a value count if they failed.
    """
    ended = [trial for trial in history if final_value(trial) is not None or has_failed(trial)]
    if len(ended) < 2:
        return 0.0
    drawn = np.random.default_rng(0).random((N_REFERENCE, space.n_parameters))
    observed = space.to_units([trial.configuration for trial in ended])
    try:
        scores = prior.scores(space, np.concatenate([space.canonical(drawn), observed]))
    except ValueError:  # no parameter in common so far
        return 0.0
    reference, expected = scores[:N_REFERENCE], scores[N_REFERENCE:]
    shares = (reference[None, :] > expected[:, None]).mean(axis=1)
    finals = final_values(ended)
    values = np.where(np.isnan(finals), -math.inf, finals)
    return agreement(shares, values)[0]
