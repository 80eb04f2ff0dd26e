"""Match the trials of Syne Tune with those of a study.

Syne Tune asks for a configuration before the trial has an id. So a suggestion waits until a trial
with its configuration is added or reports.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import weakref
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from syne_tune.optimizer.schedulers.searchers.searcher import BaseSearcher

from dre_plugins.adapters.common.options import seed_from
from dre_plugins.adapters.syne_tune.conversion import cast, hyperparameters, space_of
from dre_plugins.checks import require
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.prior import AUTO, GivenPrior
from dre_plugins.recommend.settings import Settings, checked_settings
from dre_plugins.recommend.trials import Trial, TrialState, number_of
from dre_plugins.space.base import match_key
from dre_plugins.space.rules import Valid
from dre_plugins.study.arguments import GivenMemory, is_wanted
from dre_plugins.study.ask_tell import AskTell

logger = logging.getLogger("syne_tune.dre_plugins")

# Searchers that have heard of reports, and in which process: a fork inherits them. Syne Tune tells
# none that its tuner ends.
_REPORTING: weakref.WeakKeyDictionary[StudySearcher, int] = weakref.WeakKeyDictionary()


class StudySearcher(BaseSearcher):  # type: ignore[misc]
    """Suggest from a study, and map ids of trials to numbers in the study.

    It is the base of the searchers for one objective and for several. Its arguments are those of
    `DRESearcher`.
    """

    # Searchers minimise; schedulers flip the sign of metrics that are maximised.
    _direction: str | Sequence[str] = "minimize"

    def __init__(
        self,
        config_space: Mapping[str, Any],
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        random_seed: int | None = None,
        *,
        prior: GivenPrior = AUTO,
        n_startup_trials: int | None = None,
        allow_duplicates: bool = False,
        failed: str = "model",
        settings: Settings | None = None,
        memory: GivenMemory = None,
        valid: Valid | None = None,
        name: str = "",
    ) -> None:
        is_mapping = isinstance(config_space, Mapping)
        is_space = is_mapping and all(isinstance(key, str) for key in config_space)
        require(is_space, "config_space", config_space, "domains by name")
        # Syne Tune wants seeds below 2³².
        seed = seed_from(random_seed, name="random_seed", n_bits=31)
        super().__init__(dict(config_space), random_seed=seed)
        ordered = checked_settings(settings).order_numeric_choices
        for reference in _REPORTING.keyrefs():  # a copy, to which other threads add nothing
            if (searcher := reference()) is not None:  # its tuner may have ended
                _record_running(searcher.study, _REPORTING[searcher])
        self._study = AskTell(
            space_of(config_space, ordered=ordered),
            direction=self._direction,
            seed=self.random_seed,
            prior=prior,
            n_startup_trials=n_startup_trials,
            allow_duplicates=allow_duplicates,
            failed=failed,
            settings=settings,
            memory=memory,
            valid=valid,
            logger=logger,
            framework="syne-tune",
            name=name,
        )
        points = [] if points_to_evaluate is None else points_to_evaluate
        is_list = isinstance(points, Sequence) and all(isinstance(p, Mapping) for p in points)
        require(is_list, "points_to_evaluate", points, "a list of dictionaries")
        for point in points:
            self._study.enqueue(cast(point, config_space))
        # Suggestions without a trial id yet: number in the study -> configuration.
        self._without_id: dict[int, Hashable] = {}
        # Trial id -> configuration and number in the study, None if it is not of the space.
        self._by_trial_id: dict[int, tuple[Hashable, int | None]] = {}
        self._to_restart: list[int] = []
        # Trials that count as stopped. One that was only paused may report again, or fail.
        self._presumed_stopped: set[int] = set()
        self._n_reports: Counter[int] = Counter()
        self._n_at_once: int | None = None
        self._has_memory = is_wanted(memory)

    # ---- what there is

    @property
    def stats(self) -> Counter[str]:
        """Counts of "suggestions" by source ("random", "prior", "model", …) and "fallbacks"."""
        return self._study.stats

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials, in the order of suggestion; small values are good."""
        return self._study.trials

    @property
    def study(self) -> AskTell:
        """The study of the search, for example for `dre_plugins.plots`; small values are good."""
        return self._study

    def explain(self, trial_id: int) -> Explanation:
        """Say where the configuration of a trial came from and what was expected of it.

        Args:
            trial_id: Id of a trial that was added or has reported. If its configuration was not
                suggested here, the source is "unknown".

        Raises:
            ValueError: If there is no such trial.
        """
        is_known = trial_id in [*self._by_trial_id]  # a list, as what is given may have no hash
        require(is_known, "trial_id", trial_id, f"one of {len(self._by_trial_id)} known trials")
        _, number = self._by_trial_id[trial_id]
        return Explanation("unknown") if number is None else self._study.explain(number)

    # ---- suggesting

    def suggest(self, **kwargs: Any) -> dict[str, Any] | None:
        """Return the next configuration, or None when a finite space is used up."""
        self._fail_silent_trials()
        self._to_restart = [*filter(self._study.is_running, self._to_restart)]
        if self._to_restart:
            number = self._to_restart.pop(0)
            configuration = dict(self._study.trials[number].configuration)
        elif self._study.is_exhausted:
            return None
        else:
            number, configuration = self._study.ask()
        self._without_id[number] = self._key(configuration)
        return configuration

    def restart_running(self) -> None:
        """Say that all running trials are lost, for example as the tuner was killed.

        Trials that have reported count by their reports. The others are suggested again, before
        anything new.
        """
        for number, trial in enumerate(self._study.trials):
            if trial.state is TrialState.RUNNING:
                if trial.rungs:
                    self._study.stop(number)
                    self._presumed_stopped.add(number)
                elif number not in self._to_restart:
                    self._to_restart.append(number)
        self._without_id.clear()

    # ---- hearing of trials

    def on_trial_add(self, trial_id: int, config: Mapping[str, Any]) -> None:
        """Learn the id of a trial that was suggested, or of one that comes from elsewhere."""
        key = self._key(config)
        is_known = self._by_trial_id.get(trial_id, (None,))[0] == key
        if not is_known or key in self._without_id.values():
            self._by_trial_id[trial_id] = key, self._number_for(trial_id, key, config)

    def on_trial_result(
        self,
        trial_id: int,
        config: Mapping[str, Any],
        metric: float | Sequence[float] | None,
        resource_level: float | None = None,
    ) -> None:
        """Learn an intermediate result; the last one of a resource level counts.

        Of several objectives only final values count.

        Args:
            metric: Value of the metric, small is good, or of each; None if the report lacks it.
            resource_level: Resource that the trial has reached; None takes the number of its
                reports.

        Raises:
            ValueError: If there are not as many values as objectives.
        """
        value = self._value(metric)
        number = self._reporting(trial_id, config)
        if number is None or not isinstance(value, float):
            return
        self._n_reports[number] += 1
        step = number_of(resource_level)
        if not math.isfinite(step):
            step = self._n_reports[number]
        self._study.report(number, step, value)

    def on_trial_complete(
        self,
        trial_id: int,
        config: Mapping[str, Any],
        metric: float | Sequence[float] | None,
        resource_level: float | None = None,
        constraints: Mapping[str, float] | None = None,
        cost: float | None = None,
    ) -> None:
        """Learn the final result of a trial; NaN says that it failed.

        Args:
            metric: Value of the metric, small is good, or of each; None if the last report lacks
                it. Then the trial counts by its earlier reports.
            resource_level: Resource that the trial has reached, if known.
            constraints: How far each constraint is violated, by name; at most 0 where it is met.
            cost: Cost of the trial, see `AskTell.tell`.

        Raises:
            ValueError: If there are not as many values as objectives.
        """
        value = self._value(metric)
        number = self._running(trial_id, config)
        if number is None:
            return
        if value is None:
            self._study.stop(number, constraints=constraints)
            return
        step = number_of(resource_level)
        if math.isfinite(step) and isinstance(value, float):
            self._study.report(number, step, value)
        self._study.tell(number, value, constraints=constraints, cost=cost)

    def on_trial_error(self, trial_id: int, config: Mapping[str, Any] | None = None) -> None:
        """Learn that a trial failed.

        Args:
            config: Its configuration. Without it, a trial that is still unknown cannot be
                identified, and its suggestion counts as running.
        """
        number = self._running(trial_id, config)
        if number is not None:
            self._study.tell(number, None)

    def on_trial_stop(
        self,
        trial_id: int,
        config: Mapping[str, Any] | None = None,
        constraints: Mapping[str, float] | None = None,
    ) -> None:
        """Learn that a scheduler has stopped or paused a trial, which counts by its reports.

        A further report or an error says that the trial was resumed.
        """
        number = self._running(trial_id, config, is_resumed=False)
        if number is not None:
            self._study.stop(number, constraints=constraints)
            self._presumed_stopped.add(number)

    def _value(self, metric: Any) -> float | tuple[float, ...] | None:
        if metric is None:
            return None
        if isinstance(self._direction, str):
            return number_of(metric)
        n, wanted = len(self._direction), f"{len(metric)}, as many as the scheduler has metrics"
        require(n == len(metric), "n_objectives", n, wanted)
        return tuple(number_of(value) for value in metric)

    # ---- which trial is which

    def _fail_silent_trials(self) -> None:
        """Count trials as failed that must have ended without notice, until they report.

        `MedianStoppingRule` does not tell which trials it stops, and Syne Tune's schedulers do not
        tell which ones crashed before their first report. As fantasies at their predicted ranks,
        they would attract the search to the same place. At most as many trials run at once as were
        suggested before the first report; older ones without a report must have ended.
        """
        if self._n_at_once is not None:
            silent = [number for number in self._without_id if self._study.is_running(number)]
            for number in silent[: max(0, len(silent) + 1 - self._n_at_once)]:
                self._study.tell(number, None)

    def _key(self, configuration: Mapping[str, Any]) -> Hashable:
        try:
            values = hyperparameters(configuration, self.config_space)
        except ValueError:  # not one of this space; `_number_for` says so
            values = dict(configuration)
        return match_key(values)

    def _reporting(self, trial_id: int, config: Mapping[str, Any]) -> int | None:
        """Return the number of a trial with an intermediate report, see `_running`."""
        if not self._by_trial_id:  # nobody has said that the trial began
            self._n_at_once = max(1, len(self._without_id))
        if self not in _REPORTING:
            _REPORTING[self] = os.getpid()
            weakref.finalize(self, _record_running, self._study, os.getpid())
        return self._running(trial_id, config)

    def _running(
        self, trial_id: int, config: Mapping[str, Any] | None, *, is_resumed: bool = True
    ) -> int | None:
        """Return the number of a trial in the study, or None if nothing can be learnt of it.

        If it `is_resumed`, a stopped trial runs again and keeps its reports.
        """
        if config is not None and self._by_trial_id.get(trial_id, (None,))[0] != self._key(config):
            self.on_trial_add(trial_id, config)
        _, number = self._by_trial_id.get(trial_id, (None, None))
        if number is not None and is_resumed and number in self._presumed_stopped:
            self._presumed_stopped.remove(number)
            self._study.restart(number, math.inf)
        if number is None or not self._study.is_running(number):
            logger.debug("Trial %s is not known, or it has ended: nothing is learnt.", trial_id)
            return None
        return number

    def _number_for(self, trial_id: int, key: Hashable, config: Mapping[str, Any]) -> int | None:
        """Return the number of what was suggested, or of a new trial of the study."""
        for number, waiting in self._without_id.items():
            if waiting == key:
                del self._without_id[number]
                if not self._study.is_running(number):  # given up too early
                    self._study.restart(number)
                return number
        if self._has_memory and not self._study.trials:
            self._study.is_recorded = False
            _say_what_is_not_recorded()
        try:
            values = hyperparameters(config, self.config_space)
            return self._study.add(values, None, state=TrialState.RUNNING)
        except ValueError as error:
            text = f"Nothing is learnt from trial {trial_id}: {error}"
            self._study.warn_once(text, str(error).partition(", got")[0])
            return None


def searcher_in(scheduler: Any) -> StudySearcher | None:
    """Return a searcher of ours, or that of a scheduler, which others may wrap; None without."""
    while hasattr(scheduler, "scheduler"):
        scheduler = scheduler.scheduler
    searcher = getattr(scheduler, "searcher", scheduler)
    return searcher if isinstance(searcher, StudySearcher) else None


def _record_running(study: AskTell, process: int) -> None:
    """Record what still runs at the end of a searcher or of a process; a fork does nothing.

    A searcher may be collected in any thread, while another one is inside the study and waits for
    a lock that this thread holds. So this one waits for at most a second, and otherwise leaves the
    recording to the end of the process.
    """
    if process == os.getpid() and not study.call_unless_busy(study.record_running, 1.0):
        atexit.register(_record_running, study, process)


@lru_cache
def _say_what_is_not_recorded() -> None:
    """Say, once in a process, that no memory records searchers which others make and feed."""
    logger.warning(
        "The first trial of a DRESearcher comes from another searcher. As that may make one after "
        "the other, like LastValueMultiFidelitySearcher, the memory records none of them. ASHADRE "
        "is recorded; memory=False in searcher_kwargs silences this."
    )


def check_objective(metric: object, do_minimize: object) -> None:
    """Raise a ValueError unless the metric is a text, and `do_minimize` a truth value."""
    require(isinstance(metric, str), "metric", metric, "the name of one metric")
    is_flag = isinstance(do_minimize, (bool, np.bool_))
    require(is_flag, "do_minimize", do_minimize, "True or False")
