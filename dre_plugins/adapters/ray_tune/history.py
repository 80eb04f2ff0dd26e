"""Results and ends of Ray Tune's trials as trials of a study."""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from ray.air.constants import TRAINING_ITERATION
from ray.tune.result import TIME_TOTAL_S
from ray.tune.search import Searcher

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.options import cost_in
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.trials import TrialState, number_of
from dre_plugins.space.base import match_key

logger = logging.getLogger("ray.tune.dre_plugins")


@dataclass(slots=True)
class Running:
    """Hold the number of a trial that has not ended, and which result of it came last."""

    number: int
    delivered: tuple[Any, Any] | None = None


def value_in(
    metric: str | list[str] | None, result: Mapping[str, Any]
) -> float | tuple[float, ...] | None:
    """Return the value of the metric, or of several, in a result; None if it lacks any."""
    names = [metric] if isinstance(metric, str) else list(metric or ())
    if not names or any(name not in result for name in names):
        return None
    values = tuple(number_of(result[name]) for name in names)
    return values if len(values) > 1 else values[0]


def meets(criteria: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Return whether a limit of `RunConfig(stop={…})` has ended a trial, by Ray's rule."""
    return any(
        name in result and number_of(result[name]) >= number_of(limit)
        for name, limit in criteria.items()
    )


def mark(result: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a key that identifies a result of a trial, even after a restart from a pause."""
    return result.get(TRAINING_ITERATION), result.get(TIME_TOTAL_S)


def config_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration in a result, which Ray flattens for searchers."""
    prefix = "config/"
    return {k.removeprefix(prefix): v for k, v in result.items() if str(k).startswith(prefix)}


def keys_of_trials(study: AskTell) -> list[Hashable]:
    """Return a key of the parameters of each trial, without constants."""
    given = [trial.configuration for trial in study.trials]
    return [match_key({n: part[n] for n in study.space.names if n in part}) for part in given]


class LearningSearcher(Searcher):
    """A searcher that learns from results; its subclasses set up the study and suggest."""

    _limits: Limits
    _cost: str | None = None
    _stopped: str

    def __init__(self, metric: Any, mode: Any) -> None:
        super().__init__(metric=metric, mode=mode)
        self._study: AskTell | None = None
        self._param_space: ParamSpace | None = None
        self._stop_criteria: Mapping[str, Any] = {}
        # Trial id -> number in the study, None if its configuration is not of the space.
        self._numbers: dict[str, int | None] = {}
        self._running: dict[str, Running] = {}
        # Trials that crashed, which Ray may run again under the same id.
        self._failed: dict[str, int] = {}
        self._warned: set[str] = set()

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Learn from an intermediate result of a trial."""
        study, trial = self._study, self._resumed(trial_id, config_in(result))
        if trial is None or study is None:
            return
        self._report(study, trial, result)
        trial.delivered = mark(result)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Learn from the end of a trial.

        Args:
            error: Whether it failed, whatever it reported before.
        """
        study, trial = self._study, self._resumed(trial_id, config_in(result or {}))
        if trial is None or study is None:
            return
        del self._running[trial_id]
        if error:
            self._failed[trial_id] = trial.number
            # A mean that a `Repeater` hands on counts, as it is that of the repeats that did not
            # fail. It has no iteration, unlike every result of a trial.
            result = None if TRAINING_ITERATION in (result or {}) else result
        value = value_in(self._metric, result or {})
        is_missing = value is None or bool(np.isnan(value).any())
        if result and is_missing and not error:
            self._warn_once(
                f"Trial {trial_id} has ended without a number for {self._metric!r}, so that it "
                "counts by its earlier reports, or as failed; it reports "
                f"{sorted(key for key in map(str, result) if not key.startswith('config/'))}. "
                "Further ones are not mentioned.",
                "missing",
            )
        constraints, cost = self._limits.violations({}), None
        if result is not None:
            constraints = self._limits.violations_of(trial_id, result, self._warn_once)
            cost = cost_in(result, self._cost, trial_id, self._warn_once)
        tell = partial(study.tell, trial.number, constraints=constraints, cost=cost)
        if error and is_missing:
            tell(None)
        elif result is None or value is None:
            # It was stopped while paused, or its last result lacks the metric: its earlier reports
            # count.
            study.stop(trial.number, constraints=constraints)
        elif isinstance(value, tuple):
            tell(value)
        elif TRAINING_ITERATION not in result or mark(result) == trial.delivered:
            # It has ended by itself. Ray does not say so. But if a scheduler or a stop criterion
            # ends a trial, its last result was not passed to `on_trial_result`, whereas a function
            # that returns ends with a result that was. (A `Repeater` hands on a mean without an
            # iteration.)
            tell(value)
        else:
            self._report(study, trial, result)
            if self._stopped == "complete" or meets(self._stop_criteria, result):
                tell(value)
            else:
                # A scheduler has stopped it, or it is a class that reported `done=True`, which
                # ends in the same way: complete if no other trial has got further.
                study.stop(trial.number, constraints=constraints)

    def _resumed(self, trial_id: str, config: Mapping[str, Any]) -> Running | None:
        """Return a trial that runs, also one that crashed before and runs again.

        It may also be unknown, if it began after the state that was restored, or if it crashed
        before and `Tuner.restore(restart_errored=True)` runs it under a new id.
        """
        if trial_id in self._failed and self._study is not None:
            number = self._failed.pop(trial_id)
            self._study.restart(number)
            self._running[trial_id] = Running(number)
        elif trial_id not in self._running and trial_id not in self._numbers:
            self._adopt(trial_id, config)
        if trial_id not in self._running:
            logger.debug("Trial %s is not running, so that its result is ignored.", trial_id)
        return self._running.get(trial_id)

    def _adopt(self, trial_id: str, config: Mapping[str, Any]) -> None:
        if self._study is None or self._param_space is None or not config:
            return
        try:
            configuration = self._param_space.to_configuration(config)
            number = self._restarted(self._study, configuration)
            if number is None:
                number = self._study.add(configuration, None, state=TrialState.RUNNING)
        except ValueError as error:
            self._numbers[trial_id] = None
            text = f"Nothing is learnt from trial {trial_id}, which this search did not suggest: "
            self._warn_once(f"{text}{error} Further ones are not mentioned.", "unknown")
        else:
            self._numbers[trial_id] = number
            self._running[trial_id] = Running(number)

    def _restarted(self, study: AskTell, configuration: Mapping[str, Any]) -> int | None:
        """Begin the first crashed trial of a configuration again, and return its number."""
        keys = keys_of_trials(study) if self._failed else []
        for trial_id, number in self._failed.items():
            if keys[number] == match_key(dict(configuration)):
                del self._failed[trial_id]
                study.restart(number)
                return number
        return None

    def _warn_once(self, text: str, topic: str) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning("%s", text)

    def _report(self, study: AskTell, trial: Running, result: Mapping[str, Any]) -> None:
        """Report an intermediate value; with several objectives only final values count."""
        iteration = number_of(result.get(TRAINING_ITERATION))
        value = value_in(self._metric, result)
        if isinstance(value, float) and math.isfinite(iteration):
            if trial.delivered and iteration < number_of(trial.delivered[0]):
                study.restart(trial.number)  # after a crash, or a pause without a checkpoint
            study.report(trial.number, iteration, value)

    def on_pause(self, trial_id: str) -> None:
        """Do nothing: a paused trial counts by what it has reported (`HyperBandForBOHB` asks)."""

    def on_unpause(self, trial_id: str) -> None:
        """Do nothing: a trial that goes on reports more (`HyperBandForBOHB` asks)."""
