"""The trials of one study, what follows from them, and a lock for all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import compress
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from dre_plugins.checks import is_integer, require
from dre_plugins.recommend.directions import Directions
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.trials import (
    Observed,
    Trial,
    TrialState,
    as_ended,
    observed_trials,
    values_of,
)
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study.configurations import agree
from dre_plugins.study.recommendation import Recommendation, recommended

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import Task

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def locked(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Let one thread at a time into the methods of a study."""

    @wraps(method)
    def wrapper(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return wrapper


class KeptTrials:
    """Keep the trials of a study and its queue, and say which are best: the base of `AskTell`."""

    rule: Rule  # which configurations may be tried

    def __init__(self, space: SearchSpace, directions: Directions, name: str) -> None:
        self._lock = RLock()
        self.space = space
        self.name = name
        self._directions = directions
        self._trials: list[Trial] = []
        self._queue: list[dict[str, Any]] = []
        self._explanations: dict[int, Explanation] = {}
        # Numbers of trials that a scheduler has stopped.
        self._stopped: set[int] = set()

    def call_unless_busy(self, method: Callable[[], object], timeout: float) -> bool:
        """Call a method if the lock is free within `timeout` seconds; return whether it was."""
        if is_free := self._lock.acquire(timeout=timeout):
            try:
                method()
            finally:
                self._lock.release()
        return is_free

    @property
    def directions(self) -> tuple[str, ...]:
        """Return "minimize" or "maximize" for each objective."""
        return self._directions.names

    @property
    @locked
    def trials(self) -> tuple[Trial, ...]:
        """All trials so far, in order, with the values that were told."""
        ended = as_ended(self.history(), self._trials)
        return tuple(map(self._directions.in_users_sign, ended))

    @property
    @locked
    def n_ended(self) -> int:
        """Return the number of trials that do not run any more."""
        return sum(trial.state is not TrialState.RUNNING for trial in self._trials)

    @property
    @locked
    def best(self) -> Trial:
        """The complete trial of the best value among those that meet all constraints.

        Raises:
            ValueError: If there is no such trial, or there are several objectives.
        """
        n_objectives, valid = len(self.directions), self.observed().valid_trials
        if n_objectives != 1:
            raise ValueError("best needs a single objective; use best_trials.")
        if not valid:
            names = sorted({name for trial in self._trials for name in trial.constraints})
            stated = f" Each must state all constraints: {names}." if names else ""
            raise ValueError(f"best needs a complete, feasible trial.{stated}")
        return self._directions.in_users_sign(max(valid, key=lambda trial: trial.value or 0.0))

    @property
    @locked
    def best_trials(self) -> tuple[Trial, ...]:
        """The Pareto front of the complete trials that meet all constraints."""
        valid = self.observed().valid_trials
        if not valid:
            return ()
        is_best = non_dominated(np.array([values_of(trial) for trial in valid]))
        return tuple(map(self._directions.in_users_sign, compress(valid, is_best)))

    @locked
    def recommend(self) -> Recommendation[Trial]:
        """Return the trial that the model expects to be best; `best` may owe its value to noise.

        The universal prior is conditioned on all trials. Among the complete trials that meet all
        constraints, the one with the best expected value is returned, with that expectation and
        its standard deviation.

        Raises:
            ValueError: If there is no such trial, or there are several objectives.
        """
        observed, n_objectives = self.observed(), len(self.directions)
        chosen = recommended(self.space, observed, n_objectives=n_objectives)
        trial = self._directions.in_users_sign(observed.history[chosen.trial])
        return chosen.as_of(trial, self._directions.signs[0])

    @locked
    def task(self) -> Task:
        """Return the trials that have ended as a past task, from which other studies learn.

        It is for `PastTasks([…])`, the `prior` of another study, and for `MetaDataset.of([…])`.

        Raises:
            ValueError: If there are several objectives.
        """
        from dre_plugins.transfer.metadata import Task  # only when it is needed

        require(len(self.directions) == 1, "the number of objectives", len(self.directions), "1")
        ended = as_ended(self.history(), self._trials)
        return Task.from_trials(self.name or "unnamed", self.space, ended)

    @locked
    def is_running(self, number: int) -> bool:
        """Say whether a trial was asked for and has not ended."""
        return self._has(number) and self._trials[number].state is TrialState.RUNNING

    @locked
    def restart(self, number: int, step: float = -math.inf) -> None:
        """Say that a trial runs again, in whatever state it was.

        Args:
            number: What `ask` returned.
            step: First step that it reports again; its earlier reports count. By default none do.

        Raises:
            ValueError: If there is no such trial.
        """
        trial = self._trial(number)
        kept = {earlier: value for earlier, value in trial.rungs.items() if earlier < step}
        self._trials[number] = Trial(trial.configuration, TrialState.RUNNING, rungs=kept)
        self._stopped.discard(number)

    @locked
    def is_enqueued(self, configuration: Mapping[str, Any]) -> bool:
        """Say whether a configuration agrees with an enqueued one, which may be partial."""
        return any(agree(configuration, enqueued) for enqueued in self._queue)

    @locked
    def withdraw(self, number: int) -> None:
        """Remove from the queue the first configuration that an added trial agrees with."""
        for place, enqueued in enumerate(self._queue):
            if agree(self._trial(number).configuration, enqueued):
                del self._queue[place]
                self._explanations[number] = Explanation("enqueued")
                return

    @locked
    def explain(self, number: int) -> Explanation:
        """Say where a configuration came from and what was expected of it.

        Args:
            number: Number that `ask` returned; the source of an added trial is "unknown".

        Raises:
            ValueError: If there is no such trial.
        """
        self._trial(number)
        return self._explanations.get(number, Explanation("unknown"))

    @locked
    def history(self) -> list[Trial]:
        """Return the trials as the recommender sees them: larger values are better.

        Running and stopped trials count by their reports.
        """
        return observed_trials(self._trials, self._stopped)

    @locked
    def observed(self) -> Observed:
        """Return `history`, and which of its trials may be the best."""
        return Observed.of(self._trials, self._stopped)

    def _begin(self, configuration: Mapping[str, Any], explanation: Explanation) -> None:
        self._explanations[len(self._trials)] = explanation
        self._trials.append(Trial(configuration, TrialState.RUNNING))

    def _running(self, number: int) -> Trial:
        trial = self._trial(number)
        require(trial.state is TrialState.RUNNING, "number", number, "a trial not told before")
        return trial

    def _trial(self, number: int) -> Trial:
        require(self._has(number), "number", number, "a number that ask returned")
        return self._trials[number]

    def _has(self, number: object) -> bool:
        return is_integer(number) and number in range(len(self._trials))
