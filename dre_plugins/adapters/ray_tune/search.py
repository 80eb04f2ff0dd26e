"""Deep Ranking Ensembles as a search algorithm of Ray Tune.

`DRESearch` translates: a parameter space → a search space, Ray's results → reports of trials,
a suggestion → a nested configuration. It decides nothing about the search;
`dre_plugins.recommend` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ray.tune.result import DEFAULT_METRIC, TIME_TOTAL_S

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.options import DURATION, Options, checked_cost_name, seed_from
from dre_plugins.adapters.common.past_tasks import learnt_prior
from dre_plugins.adapters.ray_tune.arguments import (
    Evaluated,
    PastResults,
    check_objectives,
    directions_of,
    in_flat_form,
    only,
    past_tasks,
    warm_start,
)
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.history import Running, logger, numbers_of
from dre_plugins.adapters.ray_tune.state import RestorableSearcher
from dre_plugins.engine.settings import require
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.memory import GivenMemory
from dre_plugins.recommend.prior import AUTO, GivenPrior, LoadedPrior
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import TrialState, number_of
from dre_plugins.space.rules import Valid
from dre_plugins.space.search_space import SearchSpace


class DRESearch(RestorableSearcher):
    """Search algorithm that alternates a universal prior and a deep ranking ensemble.

    The first four trials are points of a scrambled Sobol sequence; if `prior="auto"` recognises
    the learner by its parameters, three of them complement each other over past data sets. Then
    a *universal prior*, a network meta-trained on synthetic functions, proposes by expected
    improvement. After twenty trials it has every second one, and a *deep ranking ensemble* (Khazi,
    Pineda Arango and Grabocka, ICLR 2023) the others: networks learn to rank, and the candidate
    with the largest expected improvement of its rank is proposed.

    Use it where a trial takes much longer than a second, for tens to a few hundred trials, alone
    or beside a scheduler that stops trials early.

    - Every domain of Ray Tune is searched as it is: quantised ones on their grid, `tune.randn`,
      choices of any values, domains in dictionaries and lists. A choice of dictionaries with
      domains inside makes conditional parameters, each of which is modelled where it exists.
      `tune.sample_from` is left to Ray.
    - Only the order of the metric's values counts, so that their scale and outliers do no harm.
    - Running trials are taken into account, and no configuration is suggested twice (see
      `allow_duplicates`). A finite space ends the experiment when it is used up.
    - Reports of running trials are learnt from at once. Trials that a scheduler has stopped are
      compared with others at the iterations that they reported.
    - Failed trials, those that report NaN and those without the metric rank last.
    - A suggestion depends only on the trials so far and `seed`. An experiment that was killed
      and restored with `Tuner.restore` goes on as if it had never stopped.
    - If a model fails, a Sobol point takes its place: one warning, and
      `search.stats["fallbacks"]` counts.

    Example:
        ```python
        from ray import tune
        from dre_plugins.adapters.ray_tune import DRESearch

        def trainable(config):
            return {"loss": (config["x"] - 2) ** 2}

        tuner = tune.Tuner(
            trainable,
            param_space={"x": tune.uniform(-10, 10)},
            tune_config=tune.TuneConfig(
                search_alg=DRESearch(), metric="loss", mode="min", num_samples=30
            ),
        )
        results = tuner.fit()
        ```

    Args:
        space: Parameter space, as for the `param_space` of the Tuner; None takes that one. With
            a space here, the Tuner's may have constants and `tune.sample_from` only, or the same
            domains. Objects to choose from (functions, for example) are known to the search by
            themselves only if the space is given here: a Tuner hides them.
        metric: Name of the metric, with "/" between nested keys; a list for several objectives.
            None takes that of the `TuneConfig`, which is one. Ray hands it on only if there is a
            `param_space`.
        mode: "min" or "max", or a list of these; None takes that of the `TuneConfig`.
        points_to_evaluate: Configurations to run first, in order: nested as a trial gets them or
            with "/" between the keys, complete or in part; the rest is then chosen to go with
            them.
        evaluated_rewards: Values of the metric at `points_to_evaluate`, which are then learnt
            from and not run.
        seed: Non-negative seed; None draws one.
        prior: "auto" takes the portfolio of the learner that the parameters belong to, where names
            and ranges tell, for three of the first four; the others are those of "universal", as
            all are where nothing is recognised. "universal" alternates the universal prior
            and an ensemble from random weights; None is the ensemble alone. A trained prior is
            the name of one that ships with the package (`dre priors list`), its path, or a
            `dre_plugins.Prior`: it proposes the first trial, even if the search spaces differ,
            and the ensemble starts from its weights. With several metrics a list with one for
            each, None where there is none.
        past_results: Experiments of the same kind to learn from: what `Tuner.fit` has returned,
            an `ExperimentAnalysis`, a folder of experiments, several of these, or a
            `dre_plugins.MetaDataset`. Their metric has the same name. Learning takes some
            seconds, once. For more than about 20 of them train a prior (`Prior.train`,
            `dre meta-train`).
        constraints: Limits on other metrics that trials report, by name: the highest value
            allowed, or a pair of the lowest and the highest, where None is no limit. A trial is
            chosen by what it may gain and how likely it keeps within all of them.
        cost: What a trial costs: "duration" (Ray's `time_total_s`) or the name of another metric,
            a number above 0. Once three trials have ended by themselves and said it, what a trial
            may gain is weighed against what it is expected to cost.
        n_startup_trials: Trials that must have ended before the surrogate takes over; until then
            configurations are points of a scrambled Sobol sequence. Points to evaluate and
            evaluated ones count. None: 10 (universal prior: 4), 0 with one of past tasks.
        allow_duplicates: Whether a configuration may be suggested again, as one may want when
            the metric is noisy. Then a finite space does not end the experiment.
        failed: "worst" ranks failed trials below all others, "ignore" leaves them out.
        stopped: What a trial counts as that was not the one that got furthest, and ended neither
            by returning nor by a limit in `RunConfig(stop={…})`. Ray does not tell whether a
            scheduler has stopped it or a class has said that it is done: "pruned" compares it
            with others at the iterations that it reported, as is right beside a scheduler,
            "complete" takes its last value.
        settings: What most users leave as it is, see `dre_plugins.Settings`: acquisition, preset,
            device, threads, how many trials are fitted, whether numeric choices are ordered.
        memory: Where studies of any framework are recorded, and found by later ones that tune
            some of the same parameters: True (a folder of the user's data), the path of a folder,
            a `dre_plugins.Memory`, False (none), or None (the folder that the environment
            variable DRE_MEMORY names, if any). With `past_results` or a prior other than
            "auto" and "universal" the study is only recorded.
        valid: Says of a configuration, as a trial gets it, whether it may be tried, such as
            `lambda config: config["low"] <= config["high"]`: a rule known beforehand. All that is
            suggested satisfies it; points to evaluate are tried all the same (one warning,
            `stats["invalid"]` counts). It is saved with the search, lambdas too.

    Raises:
        ValueError: If an argument is invalid, there is nothing to learn from in the past results,
            or `valid` raises or holds for nothing that was tried; here, or in `Tuner.fit` before
            the first trial for what needs the space.
        UnsupportedDomainError: If a domain cannot be searched (a ValueError, too).
    """

    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        metric: str | list[str] | None = None,
        mode: str | list[str] | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        evaluated_rewards: Sequence[Any] | None = None,
        *,
        seed: int | None = None,
        prior: GivenPrior = AUTO,
        past_results: PastResults | None = None,
        constraints: Mapping[str, Any] | None = None,
        cost: str | None = None,
        n_startup_trials: int | None = None,
        allow_duplicates: bool = False,
        failed: str = "worst",
        stopped: str = "pruned",
        settings: Settings | None = None,
        memory: GivenMemory = None,
        valid: Valid | None = None,
    ) -> None:
        check_objectives(metric, mode)
        super().__init__(metric, mode)
        require(stopped in ("pruned", "complete"), "stopped", stopped, "'pruned' or 'complete'")
        self._seed = None if seed is None else seed_from(seed)
        self._stopped = stopped
        options = Options(
            prior=prior,
            n_startup_trials=n_startup_trials,
            allow_duplicates=allow_duplicates,
            failed=failed,
            settings=settings,
            memory=memory,
            valid=valid,
        )
        options.check_past("past_results", past_results)
        self._prior = options.load_prior()
        # The loaded prior would make every saved state larger.
        self._options = replace(options, prior=None)
        self._past_results = past_results
        self._limits = Limits.of(constraints)
        name = checked_cost_name(cost, "a metric")
        self._cost = TIME_TOTAL_S if name == DURATION else name
        self._points, self._evaluated = warm_start(points_to_evaluate, evaluated_rewards)
        self._param_space = None if space is None else self._converted(space)
        if self._param_space is not None and metric and mode:
            self._begin(self._param_space)

    @property
    def stats(self) -> Counter[str]:
        """Count "suggestions", among them "random", "model" and others, and "fallbacks".

        The sources are those of `dre_plugins.Recommender`; "enqueued" counts points to evaluate,
        "unsaved" states that could not be written.
        """
        stats = Counter() if self._study is None else Counter(self._study.stats)
        return stats + Counter(unsaved=self._n_unsaved)

    @property
    def study(self) -> AskTell:
        """What the search knows, to look into; `dre_plugins.plots` takes it.

        Raises:
            ValueError: If the search has not begun.
        """
        if self._study is None:
            raise ValueError("The search has not begun.")
        return self._study

    def explain(self, trial_id: str) -> Explanation:
        """Say where the configuration of a trial came from and what was expected of it.

        It is part of the state, so that it is there after `restore_from_dir`.

        Raises:
            ValueError: If the search knows no such trial.
        """
        require(trial_id in self._numbers, "trial_id", trial_id, "that of a trial of this search")
        number = self._numbers[trial_id]
        return Explanation("unknown") if number is None else self.study.explain(number)

    # ---- setting up

    def set_search_properties(
        self, metric: Any, mode: Any, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take the metric, the mode and the parameter space of a Tuner.

        Raises:
            ValueError: If they contradict what was given before, or something is missing.
        """
        check_objectives(metric, mode)
        metric = only("metric", self._metric, metric)
        mode = only("mode", self._mode, mode)
        given = self._converted(config)
        ours = self._param_space
        if ours is None:
            param_space = given
        elif not given.space.n_parameters or given.searches_like(ours):
            param_space = ours.beside(given)
        else:
            raise ValueError(
                f"DRESearch searches {list(ours.space.names)} already, and the param_space of the "
                f"Tuner has other domains, of {list(given.space.names)}; give all of them in one "
                "place, and use a new DRESearch for a new param_space."
            )
        self._metric, self._mode, self._param_space = metric, mode, param_space
        stop = spec.get("stop")
        self._stop_criteria = dict(stop) if isinstance(stop, Mapping) else {}
        if self._study is None:
            self._begin(param_space)
        return True

    def _begin(self, param_space: ParamSpace) -> None:
        """Check what can be checked, and begin the study if nothing has to be learnt first.

        `Tuner.restore` comes here before it restores the state, which knows what was learnt from
        past results; they need not be there any more.
        """
        self._require_objective(param_space)
        if self._past_results is None:
            self._set_up(param_space)

    def _converted(self, space: Mapping[str, Any]) -> ParamSpace:
        if not isinstance(space, Mapping):
            raise ValueError(f"space must be a dictionary of Ray Tune's domains, got {space!r}.")
        return ParamSpace.of(space, order_numeric_choices=self._options.order_numeric_choices)

    def _set_up(self, param_space: ParamSpace) -> AskTell:
        """Begin the study, now that the parameter space is known."""
        self._require_objective(param_space)
        is_empty = not param_space.space.n_parameters
        if is_empty:
            logger.warning("There are constants only: all trials get the same configuration.")
        study = AskTell(
            param_space.space,
            direction=directions_of(self._mode),
            seed=self._seed,
            prior=None if is_empty else self._knowledge(param_space.space),
            logger=logger,
            framework="ray-tune",
            name=self._metric if isinstance(self._metric, str) else "",
            **in_flat_form(self._options, param_space).for_study(),
        )
        for point in self._points:
            study.enqueue(param_space.to_configuration(point))
        for evaluated in self._evaluated:
            evaluated.add_to(study, param_space)
        self._study, self._param_space = study, param_space
        # The study has them now; they would make every saved state larger.
        self._points, self._evaluated, self._prior, self._past_results = [], [], None, None
        return study

    def _require_objective(self, param_space: ParamSpace) -> None:
        if self._metric is None and self._mode is not None:
            self._metric = DEFAULT_METRIC  # what trainables report that return a number
        if param_space.space.n_parameters and not (self._metric and self._mode):
            raise ValueError(
                f"DRESearch needs a metric and a mode, got {self._metric!r} and {self._mode!r}: "
                "DRESearch(metric=..., mode='min'), or tune.TuneConfig(metric=..., mode='min') "
                "of a Tuner with a param_space."
            )

    def _knowledge(self, space: SearchSpace) -> LoadedPrior:
        if self._past_results is None:
            return self._prior
        tasks = past_tasks(self._past_results, self._metric, self._mode, space)
        return learnt_prior(tasks, logger)

    # ---- suggesting

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return the configuration of a new trial, or `FINISHED` if there is none left."""
        study = self._study
        if self._param_space is None:
            raise ValueError(
                "DRESearch has nothing to search: give it a space, or the Tuner a param_space "
                "(Tuner.restore too, if the state of the experiment could not be read)."
            )
        if study is None:
            study = self._set_up(self._param_space)
        self._take_over(trial_id)
        if trial_id in self._running:
            configuration = study.trials[self._running[trial_id].number].configuration
            return self._param_space.to_config(configuration)
        if study.is_exhausted:
            return self.FINISHED  # type: ignore[return-value]  # what Ray documents
        number, configuration = study.ask()
        self._numbers[trial_id] = number
        self._running[trial_id] = Running(number)
        return self._param_space.to_config(configuration)

    # ---- what was evaluated elsewhere

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float | tuple[float, ...],
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Learn from a configuration that was evaluated elsewhere.

        Args:
            parameters: The complete configuration, nested or flat, with constants or without.
            value: Value of the metric; NaN if there is none.
            error: Whether it failed.
            pruned: Whether it was stopped early; it then counts by its intermediate values if
                there are any, otherwise by `value`.
            intermediate_values: Values of the metric at the training iterations from the first.

        Raises:
            ValueError: If the configuration is not complete or not of the space.
        """
        values = [number_of(reported) for reported in intermediate_values or ()]
        rungs = {float(iteration): reported for iteration, reported in enumerate(values, start=1)}
        state = TrialState.FAILED if error else TrialState.PRUNED if pruned and rungs else None
        point = Evaluated(dict(parameters), numbers_of(value), state, rungs)
        if self._study is None or self._param_space is None:
            self._evaluated.append(point)
        else:
            point.add_to(self._study, self._param_space)
