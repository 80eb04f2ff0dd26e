"""What Ray Tune says about its trials, as trials of a study."""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from ray.air.constants import TRAINING_ITERATION
from ray.tune.result import DEFAULT_METRIC, TIME_TOTAL_S

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.options import checked_cost_name, cost_in
from dre_plugins.adapters.common.past_tasks import listed
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.sources import metrics_in
from dre_plugins.checks import require
from dre_plugins.recommend.trials import TrialState, number_of
from dre_plugins.space.base import match_key
from dre_plugins.study.ask_tell import AskTell

logger = logging.getLogger("ray.tune.dre_plugins")


@dataclass(frozen=True, slots=True)
class ResultReader:
    """Read results of trials by what `DRESearch` and its Tuner were given.

    The metric and the mode are lists for several objectives, and None until somebody names them.
    `stop_criteria` are those of the Tuner.
    """

    metric: Any
    mode: Any
    limits: Limits
    cost: str | None
    stopped: str
    stop_criteria: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        metric: Any,
        mode: Any,
        *,
        constraints: Any = None,
        cost: Any = None,
        stopped: Any = "pruned",
    ) -> ResultReader:
        """Return a reader with arguments of `DRESearch`; a ValueError says that one is wrong."""
        metric, mode = _checked_objectives(metric, mode)
        require(stopped in ("pruned", "complete"), "stopped", stopped, "'pruned' or 'complete'")
        name = checked_cost_name(cost, "a metric", TIME_TOTAL_S)
        return cls(metric, mode, Limits.of(constraints), name, stopped)

    def of_tuner(self, metric: Any, mode: Any, stop: Any) -> ResultReader:
        """Return a reader with what a Tuner says, too; a ValueError says that it differs."""
        metric, mode = _checked_objectives(metric, mode)
        return replace(
            self,
            metric=_only("metric", self.metric, metric),
            mode=_only("mode", self.mode, mode),
            stop_criteria=dict(stop) if isinstance(stop, Mapping) else {},
        )

    def with_default_metric(self, *, is_needed: bool) -> ResultReader:
        """Return a reader of what trainables return as a number, if only a mode is given.

        A ValueError says that a metric or a mode is missing, if they are needed.
        """
        metric = DEFAULT_METRIC if self.metric is None and self.mode is not None else self.metric
        if is_needed and not (metric and self.mode):
            raise ValueError(
                f"DRESearch needs a metric and a mode, got {metric!r} and {self.mode!r}: "
                "DRESearch(metric=..., mode='min'), or tune.TuneConfig(metric=..., mode='min') "
                "of a Tuner with a param_space."
            )
        return replace(self, metric=metric)

    def value_in(self, result: Mapping[str, Any]) -> float | tuple[float, ...] | None:
        """Return the value of the metric, or of several, in a result; None if it lacks any."""
        names = listed(self.metric)
        if any(name not in result for name in names):
            return None
        values = tuple(number_of(result[name]) for name in names)
        return values if len(values) > 1 else values[0]

    def is_complete(self, result: Mapping[str, Any]) -> bool:
        """Return whether a trial that Ray has ended is complete, by Ray's rule of `stop={…}`."""
        return self.stopped == "complete" or any(
            name in result and number_of(result[name]) >= number_of(limit)
            for name, limit in self.stop_criteria.items()
        )


def _checked_objectives(metric: Any, mode: Any) -> tuple[Any, Any]:
    """Return the metric and the mode of one objective, or those of several as lists."""
    parts = [[*part] if isinstance(part, tuple) else part for part in (metric, mode)]
    are_lists = [isinstance(part, list) for part in parts]
    if any(are_lists) and not (all(are_lists) and len(parts[0]) == len(parts[1]) > 0):
        raise ValueError(
            "several objectives need a list of metrics and a list of modes, equally long, got "
            f"metric={metric!r} and mode={mode!r}."
        )
    for name in listed(parts[0]):
        require(isinstance(name, str) or metric is None, "metric", name, "the name of a metric")
    for part in listed(parts[1]):
        require(part in ("min", "max") or mode is None, "mode", part, "'min' or 'max'")
    return parts[0], parts[1]


def _only(name: str, ours: Any, given: Any) -> Any:
    """Return an argument that was given to the searcher, to the Tuner, or equally to both."""
    if ours is not None and given is not None and ours != given:
        raise ValueError(
            f"{name} is {ours!r} for DRESearch and {given!r} for the Tuner; give it once."
        )
    return given if ours is None else ours


@dataclass(slots=True)
class RunningTrial:
    """Hold the number of a trial that has not ended, and which result of it came last."""

    number: int
    delivered: tuple[Any, Any] | None = None


def result_key(result: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a key that identifies a result of a trial, even after a restart from a pause."""
    return result.get(TRAINING_ITERATION), result.get(TIME_TOTAL_S)


def config_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration in a result, which Ray flattens for searchers."""
    prefix = "config/"
    return {k.removeprefix(prefix): v for k, v in result.items() if str(k).startswith(prefix)}


class RayTrials:
    """Tell a study what Ray says about its trials."""

    def __init__(self, study: AskTell, param_space: ParamSpace, reader: ResultReader) -> None:
        self.study, self.param_space, self.reader = study, param_space, reader
        # Number in the study by trial id, None if the configuration is not of the space.
        self.numbers: dict[str, int | None] = {}
        self.running: dict[str, RunningTrial] = {}
        # Trials that crashed, which Ray may run again under the same id.
        self.failed: dict[str, int] = {}
        # Running trials that Ray does not know any more. New trials get their configurations.
        self.forgotten: list[str] = []

    def begin(self, trial_id: str) -> dict[str, Any] | None:
        """Return the configuration of a new trial; None: every configuration was tried."""
        self.forgotten = [trial_id for trial_id in self.forgotten if trial_id in self.running]
        if self.forgotten and trial_id not in self.running:
            self.hand_over(self.forgotten.pop(0), trial_id)
        if trial_id in self.running:
            configuration = self.study.trials[self.running[trial_id].number].configuration
        elif self.study.is_exhausted:
            return None
        else:
            number, configuration = self.study.ask()
            self._keep(trial_id, number)
        return self.param_space.to_config(configuration)

    def report(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Learn from an intermediate result of a trial."""
        trial = self.resumed(trial_id, config_in(result))
        if trial is not None:
            self._report(trial, result)
            trial.delivered = result_key(result)

    def end(self, trial_id: str, result: Mapping[str, Any] | None, *, error: bool) -> None:
        """Learn from the end of a trial and its last result; `error` says that it has failed."""
        trial = self.resumed(trial_id, config_in(result or {}))
        if trial is None:
            if error:
                self.keep_for_restart(trial_id)
            return
        del self.running[trial_id]
        if error:
            # A mean that a `Repeater` hands on counts, as it is that of the repeats that did not
            # fail. It has no iteration, unlike every result of a trial.
            result = None if TRAINING_ITERATION in (result or {}) else result
        reported = result or {}
        value = self.reader.value_in(reported)
        is_missing = value is None or bool(np.isnan(value).any())
        if reported and is_missing and not error:
            self.study.warn_once(
                f"Trial {trial_id} has ended without a number for {self.reader.metric!r}, so "
                "that it counts by its earlier reports, or as failed; it reports "
                f"{sorted(metrics_in(reported))}.",
                "missing",
            )
        limits, cost = self.reader.limits, None
        constraints = limits.violations({})
        if result is not None:
            constraints = limits.violations_of(trial_id, result, self.study.warn_once)
            names = metrics_in(result) | {self.reader.cost}
            costs = {name: value for name, value in result.items() if name in names}
            cost = cost_in(costs, self.reader.cost, trial_id, self.study.warn_once)
        tell = partial(self.study.tell, trial.number, constraints=constraints, cost=cost)
        if error and is_missing:
            self.failed[trial_id] = trial.number
            tell(None)
            return
        # Ray does not say whether a trial has ended by itself. But if a scheduler or a stop
        # criterion ends it, its last result was not passed to `report`, whereas a function that
        # returns ends with a result that was. (A `Repeater` hands on a mean without an iteration.)
        is_unheard = TRAINING_ITERATION in reported and result_key(reported) != trial.delivered
        was_stopped = isinstance(value, float) and is_unheard
        if was_stopped:
            self._report(trial, reported)
        if value is None or (was_stopped and not self.reader.is_complete(reported)):
            # A scheduler has stopped it, or it is a class that reported `done=True`, which ends in
            # the same way, or it was stopped while paused, or its last result lacks the metric.
            # Its reports count: it is complete if no other trial has got further.
            self.study.stop(trial.number, constraints=constraints)
        else:
            tell(value)

    def resumed(self, trial_id: str, config: Mapping[str, Any]) -> RunningTrial | None:
        """Return a trial that runs, also one that crashed before and runs again.

        It may also be unknown, if it began after the state that was restored, or if it crashed
        before and `Tuner.restore(restart_errored=True)` runs it under a new id.
        """
        if trial_id in self.failed:
            self._restart(self.failed.pop(trial_id), trial_id)
        elif trial_id not in self.running and trial_id not in self.numbers and config:
            self._adopt(trial_id, config)
        if trial_id not in self.running:
            logger.debug("Trial %s is not running, so that its result is ignored.", trial_id)
        return self.running.get(trial_id)

    def keep_for_restart(self, trial_id: str) -> None:
        """Keep the number of a trial that had ended and crashed when Ray ran it once more.

        It counts as it has ended, until it is restarted under this or a new id.
        """
        number = self.numbers.get(trial_id)
        if number is not None:
            self.failed[trial_id] = number

    def hand_over(self, trial_id: str, successor: str) -> None:
        """Give the configuration of a running trial that Ray has forgotten to another trial."""
        del self.numbers[trial_id]
        self._restart(self.running.pop(trial_id).number, successor)

    def by_configuration(self, numbers: Mapping[str, int | None]) -> dict[Hashable, str]:
        """Return ids of trials by a key of their parameters, without constants."""
        names, trials = self.study.space.names, self.study.trials
        ids: dict[Hashable, str] = {}
        for trial_id, number in numbers.items():
            if number is not None:
                given = trials[number].configuration
                ids[match_key({name: given[name] for name in names if name in given})] = trial_id
        return ids

    def _keep(self, trial_id: str, number: int) -> None:
        self.numbers[trial_id], self.running[trial_id] = number, RunningTrial(number)

    def _restart(self, number: int, trial_id: str) -> None:
        self.study.restart(number)
        self._keep(trial_id, number)

    def _adopt(self, trial_id: str, config: Mapping[str, Any]) -> None:
        try:
            configuration = self.param_space.to_configuration(config)
            crashed = self.by_configuration(self.failed).get(match_key(configuration))
            if crashed is not None:
                self._restart(self.failed.pop(crashed), trial_id)
                return
            number = self.study.add(configuration, None, state=TrialState.RUNNING)
        except ValueError as error:
            self.numbers[trial_id] = None
            text = f"Nothing is learnt from trial {trial_id}, which this search did not suggest: "
            self.study.warn_once(f"{text}{error}", "unknown")
        else:
            self.study.withdraw(number)  # a point to evaluate need not run again
            self._keep(trial_id, number)

    def _report(self, trial: RunningTrial, result: Mapping[str, Any]) -> None:
        """Report an intermediate value; with several objectives only final values count."""
        iteration = number_of(result.get(TRAINING_ITERATION))
        value = self.reader.value_in(result)
        if trial.delivered and iteration < number_of(trial.delivered[0]):
            # It goes on from an earlier checkpoint, or begins anew, after a crash or a pause.
            self.study.restart(trial.number, iteration)
        if isinstance(value, float) and math.isfinite(iteration):
            self.study.report(trial.number, iteration, value)
