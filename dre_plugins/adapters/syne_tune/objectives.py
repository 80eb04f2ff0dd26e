"""Several objectives in Syne Tune: `MODRE`, a scheduler, and its searcher."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.scheduler import SchedulerDecision
from syne_tune.optimizer.schedulers.single_fidelity_scheduler import SingleFidelityScheduler

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.syne_tune.history import StudySearcher
from dre_plugins.adapters.syne_tune.scheduler import TellingScheduler
from dre_plugins.checks import is_integer, require
from dre_plugins.recommend.trials import Trial as StudyTrial, number_of


class MultiObjectiveDRESearcher(StudySearcher):
    """Search for the Pareto front of several objectives.

    It works with Syne Tune's `SingleFidelityScheduler`, which minimises all metrics or maximises
    all of them. `MODRE` has a direction for each metric and reports failed trials. Trials count by
    their last results only. Everything else is as in `DRESearcher`.

    Arguments that are not listed are those of `DRESearcher`.

    Args:
        n_objectives: Number of metrics of the scheduler, at least 2.
        options: Further arguments of `DRESearcher`. `prior` may be a list with a trained prior, or
            None, for each objective. With `memory` the study is recorded but does not learn from
            others.

    Raises:
        ValueError: If an argument is invalid, or a domain cannot be searched.

    Example:
        ```python
        from syne_tune.config_space import loguniform, randint
        from syne_tune.optimizer.schedulers.single_fidelity_scheduler import (
            SingleFidelityScheduler,
        )

        config_space = {"lr": loguniform(1e-5, 1e-1), "layers": randint(1, 4)}
        scheduler = SingleFidelityScheduler(
            config_space,
            metrics=["loss", "size"],
            searcher=MultiObjectiveDRESearcher(config_space, random_seed=1),
        )
        ```
    """

    def __init__(
        self,
        config_space: Mapping[str, Any],
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        random_seed: int | None = None,
        *,
        n_objectives: int = 2,
        **options: Any,
    ) -> None:
        is_several = is_integer(n_objectives) and n_objectives >= 2
        remedy = "an integer of at least 2 (one objective is for DRESearcher)"
        require(is_several, "n_objectives", n_objectives, remedy)
        self._direction = ["minimize"] * int(n_objectives)
        super().__init__(config_space, points_to_evaluate, random_seed, **options)

    @property
    def best_trials(self) -> tuple[StudyTrial, ...]:
        """The Pareto front of the trials that meet all constraints.

        Small values are good, even of metrics that the scheduler maximises.
        """
        return self._study.best_trials


class MODRE(TellingScheduler, SingleFidelityScheduler):  # type: ignore[misc]
    """Tune several metrics with a `MultiObjectiveDRESearcher` and run every trial to its end.

    Trials count by their last reports only. A trial whose last report lacks a metric, or has NaN
    for it, has failed. `scheduler.searcher.best_trials` is the Pareto front, with small values
    good.

    Where some metrics are minimised and others maximised, the summary that a tuner of Syne Tune
    prints at its end takes the first one as maximised; `Tuner.best_config(metric)` is right.

    Arguments that are not listed are those of `DRE`.

    Args:
        metrics: Names of at least two metrics.
        do_minimize: Whether small values are good: one flag for all metrics, or a list.
        options: Further arguments of `MultiObjectiveDRESearcher`, by name; there is no `cost`.

    Raises:
        ValueError: If an argument is invalid, or a domain cannot be searched.

    Example:
        ```python
        from syne_tune.config_space import loguniform, randint
        from dre_plugins.adapters.syne_tune import MODRE

        config_space = {"lr": loguniform(1e-5, 1e-1), "layers": randint(1, 4), "epochs": 10}
        # for a Tuner, as in the example of DRE
        scheduler = MODRE(config_space, ["accuracy", "size"], do_minimize=[False, True])
        ```
    """

    searcher: MultiObjectiveDRESearcher
    _without_metric = "such trials count as failed"

    def __init__(
        self,
        config_space: dict[str, Any],
        metrics: Sequence[str],
        do_minimize: bool | Sequence[bool] = True,
        random_seed: int | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        *,
        constraints: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._check_options(options)
        names = _checked_metrics(metrics)
        are_small = _flag_by_metric(do_minimize, names)
        self._limits = Limits.of(constraints)
        searcher = MultiObjectiveDRESearcher(
            config_space, points_to_evaluate, random_seed, n_objectives=len(names), **options
        )
        super().__init__(
            config_space=config_space,
            metrics=names,
            searcher=searcher,
            random_seed=searcher.random_seed,
        )
        # One for each metric, where Syne Tune has one for all of them.
        self.do_minimize = are_small
        self.metric_multiplier = [1 if is_small else -1 for is_small in are_small]

    def metric_mode(self) -> str | list[str]:
        """Return "min" or "max", or a list of these where the metrics differ."""
        modes = ["min" if is_small else "max" for is_small in self.do_minimize]
        return modes if len({*modes}) > 1 else modes[0]

    def on_trial_result(self, trial: Trial, result: Mapping[str, Any]) -> str:
        """Learn that a trial runs."""
        self.searcher.on_trial_result(trial.trial_id, trial.config, None)
        return str(SchedulerDecision.CONTINUE)

    def on_trial_complete(self, trial: Trial, result: Mapping[str, Any]) -> None:
        """Learn the last report of a trial."""
        self._has_all(trial, result, self.metrics)  # warns if any is missing
        signed = zip(self.metric_multiplier, self.metrics, strict=True)
        values = [sign * number_of(result.get(name)) for sign, name in signed]
        self._tell(trial, result, values)


def _checked_metrics(metrics: Any) -> list[str]:
    is_list = isinstance(metrics, Sequence) and not isinstance(metrics, str)
    names = [*metrics] if is_list else []
    are_names = all(isinstance(name, str) for name in names)
    remedy = "the names of at least two metrics, all different (one metric is for DRE)"
    require(are_names and len({*names}) == len(names) >= 2, "metrics", metrics, remedy)
    return names


def _flag_by_metric(do_minimize: Any, metrics: Sequence[str]) -> list[bool]:
    is_list = isinstance(do_minimize, Sequence)
    flags = [*do_minimize] if is_list else [do_minimize] * len(metrics)
    are_bools = all(isinstance(flag, (bool, np.bool_)) for flag in flags)
    remedy = f"True or False, or a list of these, one for each of {[*metrics]}"
    require(are_bools and len(flags) == len(metrics), "do_minimize", do_minimize, remedy)
    return [bool(flag) for flag in flags]
