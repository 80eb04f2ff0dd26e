"""Deep Ranking Ensembles as a searcher of Syne Tune.

`DRESearcher` translates: domains → domains, results → `AskTell`, a suggestion → a configuration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from syne_tune.optimizer.schedulers.searchers.single_objective_searcher import (
    SingleObjectiveBaseSearcher,
)

from dre_plugins.adapters.syne_tune.history import StudySearcher
from dre_plugins.recommend.trials import number_of


class DRESearcher(StudySearcher, SingleObjectiveBaseSearcher):  # type: ignore[misc]
    """Searcher that alternates a universal prior and a deep ranking ensemble.

    The first four trials are points of a scrambled Sobol sequence; if `prior="auto"` recognises
    the learner by its parameters, three of them complement each other over past data sets. Then
    a *universal prior*, a network meta-trained on synthetic functions, proposes by expected
    improvement. After twenty trials it has every second one, and a *deep ranking ensemble* (Khazi,
    Pineda Arango and Grabocka, ICLR 2023) the others: networks learn to rank, and the candidate
    with the largest expected improvement of its rank is proposed.

    Use it where a trial takes much longer than a second, for tens to a few hundred trials. It
    goes with every scheduler of Syne Tune that takes a searcher, and with
    `LastValueMultiFidelitySearcher` and `IndependentMultiFidelitySearcher`, which take the class.
    The schedulers `DRE`, `ASHADRE` and `DRETransfer` tell it more than those of Syne Tune: which
    trials failed without a report, and which were stopped.

    - Trials that run are taken into account: those that have reported count by their reports, the
      others are not suggested again. Nothing is suggested twice (see `allow_duplicates`) by one
      searcher; `IndependentMultiFidelitySearcher` has one for each level, which do not know of
      each other. When a finite space is used up, `suggest` returns None and the tuner ends.
    - Results with a resource level are compared at equal levels, others by their number.
    - Results of trials that it has not suggested count as well.
    - Choices that are numbers in ascending order, such as `[16, 32, 64]`, are treated as ordered.
    - If a model fails, a Sobol point takes its place: one warning, and
      `searcher.stats["fallbacks"]` counts.

    Example:
        ```python
        from syne_tune.config_space import loguniform, randint
        from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

        config_space = {"lr": loguniform(1e-5, 1e-1), "layers": randint(1, 4)}
        scheduler = AsynchronousSuccessiveHalving(
            config_space,
            metric="loss",
            time_attr="epoch",
            max_t=27,
            searcher=DRESearcher(config_space, random_seed=1),
        )
        ```

    Args:
        config_space: Syne Tune's domains and constants by name.
        points_to_evaluate: Configurations to begin with, in order. Parameters that are missing
            are chosen to go with the others; a number out of its range is tried as it is.
        random_seed: Non-negative seed; None takes one from the operating system.
        prior: "auto" takes the portfolio of the learner that the parameters belong to, where names
            and ranges tell, for three of the first four; the others are those of "universal", as
            all are where nothing is recognised. "universal" alternates the universal prior
            and an ensemble from random weights; None is the ensemble alone. A trained prior is
            the name of one that ships with the package (`dre priors list`), its path, or a
            `dre_plugins.Prior`: it proposes the first trial, even if the search spaces differ,
            and the ensemble starts from its weights; from the eleventh trial on the universal
            prior has its turns as well. The path of a file of `dre-bench train-universal` is
            another universal prior.
        n_startup_trials: Trials that must have ended before the surrogate takes over; until then
            suggestions are points of one scrambled Sobol sequence. None takes 10 for the
            ensemble and 4 for the universal prior, or 0 with a trained prior.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials below all others, "ignore" leaves them out.
        settings: What most users leave as it is, see `dre_plugins.Settings`: acquisition, preset,
            device, threads, how many trials are fitted, whether numeric choices are ordered.
        memory: Where studies of any framework are recorded, and found by later ones that tune
            some of the same parameters: True (a folder of the user's data), the path of a folder,
            a `dre_plugins.Memory`, False (none), or None (the folder that the environment
            variable DRE_MEMORY names, if any). With a prior other than "auto" and
            "universal" the study is only recorded.
        valid: Says of a configuration, with its constants, whether it may be tried, such as
            `lambda c: c["low"] <= c["high"]`: a rule known beforehand. All that is suggested
            satisfies it; points to evaluate are tried all the same (one warning,
            `stats["invalid"]` counts).

    Raises:
        ValueError: If an argument is invalid, a domain cannot be searched, the prior has no
            parameter in common with the space, or `valid` raises or holds for nothing tried.
    """

    def on_trial_result(
        self,
        trial_id: int,
        config: Mapping[str, Any],
        metric: float | None,
        resource_level: float | None = None,
    ) -> None:
        """Learn an intermediate result; the last one of a resource level counts.

        Args:
            metric: Its value, small is good; None if the report had none.
            resource_level: How far it got; None counts its reports.
        """
        number = self._reporting(trial_id, config)
        if number is None or metric is None:
            return
        self._n_reports[number] += 1
        step = number_of(resource_level)
        if not math.isfinite(step):
            step = self._n_reports[number]
        self._study.report(number, step, number_of(metric))

    def on_trial_complete(
        self,
        trial_id: int,
        config: Mapping[str, Any],
        metric: float | None,
        resource_level: float | None = None,
        constraints: Mapping[str, float] | None = None,
        cost: float | None = None,
    ) -> None:
        """Learn the final result of a trial; NaN says that it failed.

        Args:
            metric: Its value, small is good; None if the last report had none: then the trial
                counts by those before.
            resource_level: How far it got, if that is known.
            constraints: How far each constraint is violated, by name; at most 0 where it is met.
            cost: What the trial has cost, see `AskTell.tell`.
        """
        number = self._running(trial_id, config)
        if number is None:
            return
        if metric is None:
            self._study.stop(number, constraints=constraints)
            return
        value, step = number_of(metric), number_of(resource_level)
        if math.isfinite(step):
            self._study.report(number, step, value)
        self._study.tell(number, value, constraints=constraints, cost=cost)
