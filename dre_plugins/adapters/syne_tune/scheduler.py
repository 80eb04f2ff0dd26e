"""Deep Ranking Ensembles as schedulers of Syne Tune, in the manner of its `baselines`.

They are Syne Tune's own schedulers with a `DRESearcher`. In addition they tell it the id of a
trial when it begins, and whether it was stopped, has failed, or reported no metric.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import is_reverse_log_space
from syne_tune.constants import ST_WORKER_TIME
from syne_tune.optimizer.scheduler import SchedulerDecision, TrialScheduler
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving, Bracket
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.options import checked_cost_name, cost_in
from dre_plugins.adapters.common.past_tasks import Mode
from dre_plugins.adapters.syne_tune.history import StudySearcher, check_objective
from dre_plugins.adapters.syne_tune.prior import prior_from_evaluations
from dre_plugins.adapters.syne_tune.searcher import DRESearcher
from dre_plugins.adapters.syne_tune.sources import Source
from dre_plugins.checks import is_integer, is_real, require
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.trials import number_of
from dre_plugins.transfer.metadata import MetaDataset

_PLAIN = (str, int, float, bool, type(None))


class TellingScheduler(TrialScheduler):  # type: ignore[misc]
    """Base of our schedulers: tell the searcher all events of trials."""

    searcher: StudySearcher
    _limits: Limits
    _cost: str | None = None  # the name of what a trial costs
    _without_metric = "such reports are ignored"

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse, in the name of the class that was called, what its searcher does not have."""
        parameters = inspect.signature(StudySearcher).parameters
        unknown = [name for name in options if name not in parameters]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no arguments {unknown}.")

    @property
    def mode(self) -> str:
        """Return "min" or "max", for `AskTellScheduler.best_trial`.

        Raises:
            AttributeError: If some metrics are minimised and others maximised.
        """
        mode = self.metric_mode()
        if not isinstance(mode, str):
            raise AttributeError(
                f"{type(self).__name__} has no single mode: {self.metric_names()} are {mode}. Its "
                "searcher.best_trials is the front."
            )
        return mode

    def explain(self, trial_id: int) -> Explanation:
        """Say where the configuration of a trial came from and what was expected of it.

        Raises:
            ValueError: If there is no such trial.
        """
        return self.searcher.explain(trial_id)

    def on_trial_add(self, trial: Trial) -> None:
        """Learn which trial runs a suggestion."""
        self.searcher.on_trial_add(trial.trial_id, trial.config)

    def on_trial_error(self, trial: Trial) -> None:
        """Learn that a trial has failed."""
        self.searcher.on_trial_error(trial.trial_id, trial.config)
        super().on_trial_error(trial)

    def on_trial_remove(self, trial: Trial) -> None:
        """Learn that a trial was stopped or paused."""
        self.searcher.on_trial_stop(trial.trial_id, trial.config)

    def metadata(self) -> dict[str, Any]:
        """Return what is written beside the results, without the state of the search."""
        plain = {k: v for k, v in vars(self).items() if isinstance(v, _PLAIN) and k[0] != "_"}
        metadata = super().metadata()
        config_space = json.loads(metadata["config_space"])
        for name, domain in self.searcher.config_space.items():
            if is_reverse_log_space(domain):  # Syne Tune would write LogUniform
                config_space[name]["sampler_cls"] = "ReverseLogUniform"
        return {**metadata, "scheduler_kwargs": plain, "config_space": json.dumps(config_space)}

    def _has_all(self, trial: Trial, result: Mapping[str, Any], names: Sequence[str]) -> bool:
        """Say whether a report has what it should have; warn once if not."""
        missing = [name for name in names if name not in result]
        if missing:
            reported = sorted(name for name in result if not name.startswith("st_"))
            self.searcher.study.warn_once(
                f"Trial {trial.trial_id} reported {reported} without {missing}: "
                f"{self._without_metric}. Are the names those of the training script?",
                "missing",
            )
        return not missing

    def _tell(
        self, trial: Trial, result: Mapping[str, Any], value: Any, resource: float | None = None
    ) -> None:
        """Tell the searcher the value of a trial, and what its last report says beside it."""
        number, warn_once = trial.trial_id, self.searcher.study.warn_once
        violations = self._limits.violations_of(number, result, warn_once)
        cost = cost_in(result, self._cost, number, warn_once)
        self.searcher.on_trial_complete(number, trial.config, value, resource, violations, cost)


class DRE(TellingScheduler, SingleObjectiveScheduler):  # type: ignore[misc]
    """Tune with a `DRESearcher` and run every trial to its end.

    Use `ASHADRE` to stop poor trials early and `MODRE` for several metrics. Reports of a running
    trial are learnt from at once. A trial whose last report lacks the metric counts by its earlier
    reports; if there are none, it has failed.

    Args:
        config_space: Syne Tune's domains and constants by name.
        metric: Name of the metric.
        do_minimize: Whether small values are good.
        random_seed: Non-negative seed; None takes one from the operating system.
        points_to_evaluate: Configurations to run first, see `DRESearcher`.
        constraints: Limits on other metrics that trials report, by name: the highest value
            allowed, or a pair of the lowest and the highest, where None is no limit.
        cost: Cost of a trial, a number above 0 in its last report: "duration" (Syne Tune's
            `st_worker_time`, in seconds) or the name of another reported number. Once three
            complete trials have one, expected gains are weighed against expected costs.
        options: Further arguments of `DRESearcher`, by name: `prior`, `n_startup_trials`,
            `allow_duplicates`, `failed`, `settings`, `memory`, `valid`, `name`.

    Raises:
        ValueError: If an argument is invalid, or a domain cannot be searched.

    Example:
        ```python
        from syne_tune import StoppingCriterion, Tuner
        from syne_tune.backend import LocalBackend
        from syne_tune.config_space import loguniform, randint
        from dre_plugins.adapters.syne_tune import DRE

        config_space = {"lr": loguniform(1e-5, 1e-1), "layers": randint(1, 4), "epochs": 10}
        Tuner(
            trial_backend=LocalBackend("train.py"),
            scheduler=DRE(config_space, metric="loss"),
            stop_criterion=StoppingCriterion(max_num_trials_completed=30),
            n_workers=4,
        ).run()
        ```
    """

    searcher: DRESearcher

    def __init__(
        self,
        config_space: dict[str, Any],
        metric: str,
        do_minimize: bool = True,
        random_seed: int | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        *,
        constraints: Mapping[str, Any] | None = None,
        cost: str | None = None,
        **options: Any,
    ) -> None:
        self._check_options(options)
        check_objective(metric, do_minimize)
        self._limits = Limits.of(constraints)
        self._cost = checked_cost_name(cost, "a reported number", ST_WORKER_TIME)
        options.setdefault("name", metric)
        searcher = DRESearcher(config_space, points_to_evaluate, random_seed, **options)
        super().__init__(
            config_space=config_space,
            metric=metric,
            do_minimize=do_minimize,
            searcher=searcher,
            random_seed=searcher.random_seed,
        )
        self.metric = metric

    def metadata(self) -> dict[str, Any]:
        """Return what is written beside the results, without the state of the search."""
        return {**super().metadata(), "metric": self.metric}

    def on_trial_result(self, trial: Trial, result: Mapping[str, Any]) -> str:
        """Learn a report."""
        value = self._value_in(trial, result)
        self.searcher.on_trial_result(trial.trial_id, trial.config, value)
        return str(SchedulerDecision.CONTINUE)

    def on_trial_complete(self, trial: Trial, result: Mapping[str, Any]) -> None:
        """Learn the last report of a trial."""
        self._tell(trial, result, self._value_in(trial, result))

    def _value_in(self, trial: Trial, result: Mapping[str, Any]) -> float | None:
        if not self._has_all(trial, result, [self.metric]):
            return None
        return float(self.metric_multiplier * number_of(result[self.metric]))


class DRETransfer(DRE):
    """Tune like `DRE`, and learn from past experiments.

    Search spaces and ranges may differ from the present ones. `DRE`, `ASHADRE` and `DRESearcher`
    do the same with `prior=prior_from_evaluations(…)`.

    Arguments that are not listed are those of `DRE`.

    Args:
        transfer_learning_evaluations: `TransferLearningTaskEvaluations` by the name of the task,
            or past experiments, see `prior_from_evaluations`.
        past_metric: Name of the metric in the past experiments; None: the same as `metric`, or the
            only one there is.
        past_mode: "min" or "max" in the past experiments; None: what an experiment states, else as
            `do_minimize`.

    Raises:
        ValueError: If an argument is invalid, or there is nothing to learn from.
    """

    def __init__(
        self,
        config_space: dict[str, Any],
        metric: str,
        transfer_learning_evaluations: Source | Sequence[Source] | MetaDataset,
        do_minimize: bool = True,
        *args: Any,
        past_metric: str | None = None,
        past_mode: Mode | None = None,
        **options: Any,
    ) -> None:
        if "prior" in options:  # the past experiments are the prior
            raise TypeError(f"{type(self).__name__} has no arguments ['prior'].")
        is_read = isinstance(transfer_learning_evaluations, MetaDataset)
        prior = prior_from_evaluations(
            transfer_learning_evaluations,
            metric,
            do_minimize,
            past_metric=past_metric,
            past_mode=past_mode,
            constraints=None if is_read else options.get("constraints"),
        )
        super().__init__(config_space, metric, do_minimize, *args, prior=prior, **options)


class ASHADRE(TellingScheduler, AsynchronousSuccessiveHalving):  # type: ignore[misc]
    """Tune with a `DRESearcher` and stop poor trials early by asynchronous successive halving.

    Trials are compared at the resource levels that they reach, so stopped trials are learnt from
    as well as complete ones. Several brackets make it asynchronous Hyperband.

    Arguments that are not listed are those of `DRE`.

    Args:
        time_attr: Name of the resource in a report, such as "epoch".
        max_t: Resource at which a trial is complete.
        random_seed: Non-negative seed, of suggestions and of the brackets of trials; None takes
            one from the operating system.
        grace_period: Resource before which no trial is stopped, above 0.
        reduction_factor: One of this many trials continues at each rung; above 1.
        brackets: Number of brackets, each with a later first rung, at least 1.

    Raises:
        ValueError: If an argument is invalid, or a domain cannot be searched.
    """

    searcher: DRESearcher

    def __init__(
        self,
        config_space: dict[str, Any],
        metric: str,
        time_attr: str,
        max_t: int,
        do_minimize: bool = True,
        random_seed: int | None = None,
        grace_period: int = 1,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        reduction_factor: float = 3,
        brackets: int = 1,
        *,
        constraints: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        check_objective(metric, do_minimize)
        remedy = "left out: a trial that may be stopped costs what it is given; DRE takes a cost"
        require("cost" not in options, "cost", options.get("cost"), remedy)
        self._check_options(options)
        self._limits = Limits.of(constraints)
        require(isinstance(time_attr, str), "time_attr", time_attr, "the name of the resource")
        is_period = is_real(grace_period) and grace_period > 0
        require(is_period, "grace_period", grace_period, "a number above 0")
        is_above = is_real(max_t) and grace_period <= max_t < math.inf
        remedy = f"a number below infinity, of at least grace_period={grace_period}"
        require(is_above, "max_t", max_t, remedy)
        is_factor = is_real(reduction_factor) and reduction_factor > 1
        require(is_factor, "reduction_factor", reduction_factor, "a number above 1")
        is_count = is_integer(brackets) and brackets >= 1
        require(is_count, "brackets", brackets, "an integer of at least 1")
        options.setdefault("name", metric)
        searcher = DRESearcher(config_space, points_to_evaluate, random_seed, **options)
        super().__init__(
            config_space=config_space,
            metric=metric,
            do_minimize=do_minimize,
            searcher=searcher,
            time_attr=time_attr,
            max_t=max_t,
            grace_period=grace_period,
            reduction_factor=reduction_factor,
            brackets=brackets,
            random_seed=searcher.random_seed,
        )

    def on_trial_result(self, trial: Trial, result: Mapping[str, Any]) -> str:
        """Learn a report, and say whether the trial goes on."""
        report = self._report_in(trial, result)
        if report is None:
            return str(SchedulerDecision.CONTINUE)
        decision = super().on_trial_result(trial, self._comparable(result, *report))
        self.searcher.on_trial_result(trial.trial_id, trial.config, *report)
        if decision == SchedulerDecision.STOP:
            violations = self._limits.violations(result)
            self.searcher.on_trial_stop(trial.trial_id, trial.config, violations)
        return str(decision)

    def on_trial_complete(self, trial: Trial, result: Mapping[str, Any]) -> None:
        """Learn the last report of a trial."""
        report = self._report_in(trial, result)
        if report is not None:
            super().on_trial_complete(trial, self._comparable(result, *report))
        self.trial_info.pop(trial.trial_id, None)
        value, resource = report or (None, None)
        self._tell(trial, result, value, resource)

    def on_trial_error(self, trial: Trial) -> None:
        """Learn that a trial has failed."""
        super().on_trial_error(trial)
        self.trial_info.pop(trial.trial_id, None)

    def on_trial_remove(self, trial: Trial) -> None:
        """Learn that a trial was stopped or paused."""
        super().on_trial_remove(trial)
        self.trial_info.pop(trial.trial_id, None)

    def _report_in(self, trial: Trial, result: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return the value, small is good, and the resource of a report; None if it has none."""
        if not self._has_all(trial, result, [self.metric, self.time_attr]):
            return None
        resource = number_of(result[self.time_attr])
        if not math.isfinite(resource):  # as good as none: it cannot be compared
            self.searcher.study.warn_once(
                f"Trial {trial.trial_id} reported {self.time_attr}={result[self.time_attr]!r}, "
                "which is no finite number: such reports are ignored.",
                "resource",
            )
            return None
        if trial.trial_id not in self.trial_info:
            self.trial_info[trial.trial_id] = self._drawn_bracket(trial.trial_id)
        return self.metric_multiplier * number_of(result[self.metric]), resource

    def _drawn_bracket(self, trial_id: int) -> Bracket:
        """Return the bracket of a trial, with larger probability one with more rungs."""
        # Syne Tune would draw from NumPy's global generator.
        sizes = np.array([len(bracket.rungs) for bracket in self.brackets])
        shares = np.exp(sizes - sizes.max())
        rng = np.random.default_rng([self.random_seed, trial_id])
        return self.brackets[rng.choice(len(sizes), p=shares / shares.sum())]

    def _comparable(
        self, result: Mapping[str, Any], value: float, resource: float
    ) -> dict[str, Any]:
        """Return a report with the worst value in place of NaN, which has no rank in a rung."""
        comparable = math.inf if math.isnan(value) else value
        metric = self.metric_multiplier * comparable
        return {**result, self.metric: metric, self.time_attr: resource}
