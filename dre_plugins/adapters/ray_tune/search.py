"""Deep Ranking Ensembles as a search algorithm of Ray Tune.

`DRESearch` translates: a parameter space → a search space, Ray's results → reports of trials,
a suggestion → a nested configuration. It decides nothing about the search;
`dre_plugins.recommend` does.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.result import DEFAULT_METRIC, TIME_TOTAL_S

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.options import DURATION, check_past, checked_cost_name, seed_from
from dre_plugins.adapters.common.past_tasks import learnt_prior
from dre_plugins.adapters.ray_tune import arguments
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.history import Running, logger
from dre_plugins.adapters.ray_tune.state import RestorableSearcher
from dre_plugins.engine.settings import require
from dre_plugins.memory.memory import Memory
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.loading import prior_from
from dre_plugins.recommend.memory import GivenMemory, is_wanted
from dre_plugins.recommend.prior import AUTO, GivenPrior
from dre_plugins.recommend.settings import Settings, checked_settings
from dre_plugins.recommend.trials import TrialState, number_of
from dre_plugins.space.rules import Valid


class DRESearch(RestorableSearcher):
    """Search algorithm using Deep Ranking Ensembles in turns with a universal prior.

    By default, trials 0 to 3 are spread over the space; if the parameters are those of a common
    learner, three of them come from its portfolio. Trials 4 to 19 are proposed by a *universal
    prior*, a network that was meta-trained on synthetic functions. From trial 20 on it alternates
    with a *deep ranking ensemble* (Khazi, Pineda Arango and Grabocka, ICLR 2023), ten networks
    that are trained to rank the trials; see docs/guide/method.md. Arguments that are not listed
    are those of `AskTell`.

    Use it where a trial takes much longer than a second, for tens to a few hundred trials, alone
    or beside a scheduler that stops trials early.

    - Every domain of Ray Tune is searched as it is: quantised ones on their grid, `tune.randn`,
      choices of any values, domains in dictionaries and lists. A choice of dictionaries with
      domains inside makes conditional parameters, each of which is modelled where it exists.
      `tune.sample_from` is left to Ray.
    - Running trials are taken into account, and no configuration is suggested twice (see
      `allow_duplicates`). A finite space ends the experiment when it is used up.
    - Reports of running trials are learnt from at once. Trials that a scheduler has stopped are
      compared with others at the iterations that they reported.
    - Trials that end in an error, report NaN or lack the metric have failed, see `failed`.
    - A suggestion depends only on the trials so far and `seed`. An experiment that was killed
      can be continued with `Tuner.restore`.

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
        space: Parameter space, in the form of the Tuner's `param_space`; None takes that. If it is
            given here, the Tuner's may contain only constants and `tune.sample_from`, or the same
            domains. Choices that are functions or other objects can be told apart only if the
            space is given here, because a Tuner hides them from the search algorithm. With such
            choices, `valid` and `memory` need the space here, too.
        metric: Name of the metric, with "/" between nested keys; a list for several objectives.
            None takes the single metric of the `TuneConfig`, which Ray hands on only if the Tuner
            has a `param_space`.
        mode: "min" or "max", or a list of these; None takes that of the `TuneConfig`.
        points_to_evaluate: Configurations to run first, in order, nested or with "/" between the
            keys. Parameters that are missing are chosen by the model.
        evaluated_rewards: Values of the metric at `points_to_evaluate`, None or NaN for what has
            failed. These configurations are then learnt from instead of run.
        seed: Non-negative seed; None draws one from the operating system.
        prior: What is known before the first trial: "auto" recognises common learners, "universal"
            does not, None is the ensemble alone, and a trained prior is given by its name, as a
            path or as a `dre_plugins.Prior`, see `AskTell`. A list has a trained prior, or None,
            for each metric.
        past_results: Past experiments from which a prior is trained, once, in some seconds: what
            `Tuner.fit` has returned, an `ExperimentAnalysis`, a folder of experiments, several of
            these, or a `dre_plugins.MetaDataset`. The name of the metric must be the same. Their
            trials that break `constraints` have failed. If there are more than about 20, train a
            prior once (`Prior.train`, `dre meta-train`).
        constraints: Limits on other metrics that trials report, by name: the highest value
            allowed, or a pair of the lowest and the highest, where None is no limit. The expected
            improvement is multiplied by the probability that all limits are kept.
        cost: Cost of a trial, a number above 0: "duration" (Ray's `time_total_s`, in seconds) or
            the name of another metric. Once three trials that ended by themselves have reported
            it, expected gains are weighed against expected costs.
        n_startup_trials: Number of trials that must have ended before a model proposes, see
            `AskTell`; points to evaluate and evaluated ones are among them.
            None: 4 for the universal prior and 10 for the ensemble, or 0 with a trained prior.
        allow_duplicates: Whether a configuration may be suggested again, for noisy metrics. Then a
            finite space does not end the experiment.
        failed: "model" multiplies expected improvements by the predicted probability of success,
            "worst" ranks failed trials below all others, "ignore" leaves them out.
        stopped: How to count a trial that ended early, neither by returning nor by a limit in
            `RunConfig(stop={…})`. Ray does not tell whether a scheduler stopped it or a class
            reported `done=True`. "pruned" compares it with others at the iterations that it
            reported, as is right with a scheduler; "complete" takes its last value. If no
            other trial has got further, it is complete in either case.
        settings: Expert settings, see `dre_plugins.Settings`.
        memory: Folder in which studies are recorded, see `AskTell`. With `past_results` the study
            is recorded but does not learn from the folder.
        valid: Rule that configurations must satisfy, see `AskTell`: a function of a configuration
            as a trial gets it. Points to evaluate are exempt. It is saved with the search, even if
            it is a lambda.

    Raises:
        ValueError: If an argument is invalid, there is nothing to learn from in `past_results`, a
            trained prior shares no parameter with the space, or `valid` raises or holds for no
            configuration that was tried. What depends on the space is checked in `Tuner.fit`,
            before the first trial.
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
        past_results: arguments.PastResults | None = None,
        constraints: Mapping[str, Any] | None = None,
        cost: str | None = None,
        n_startup_trials: int | None = None,
        allow_duplicates: bool = False,
        failed: str = "model",
        stopped: str = "pruned",
        settings: Settings | None = None,
        memory: GivenMemory = None,
        valid: Valid | None = None,
    ) -> None:
        metric, mode = arguments.checked_objectives(metric, mode)
        super().__init__(metric, mode)
        self.identity = secrets.token_hex()
        require(stopped in ("pruned", "complete"), "stopped", stopped, "'pruned' or 'complete'")
        self._seed = None if seed is None else seed_from(seed)
        self._stopped = stopped
        options: dict[str, Any] = {
            "n_startup_trials": n_startup_trials,
            "allow_duplicates": allow_duplicates,
            "failed": failed,
        }
        checked = checked_settings(settings).for_recommender(**options)
        self._ordered = checked.order_numeric_choices
        Memory.of(memory)  # says what is wrong with it
        self._options: dict[str, Any] = {**options, "settings": settings, "memory": memory}
        self._valid = valid
        check_past("past_results", past_results, prior)
        self._prior = prior_from(prior, checked.preset)
        self._past_results = past_results
        self._limits = Limits.of(constraints)
        name = checked_cost_name(cost, "a metric")
        self._cost = TIME_TOTAL_S if name == DURATION else name
        self._points, self._evaluated = arguments.initial_points(
            points_to_evaluate, evaluated_rewards
        )
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
        """The study of the search, for example for `dre_plugins.plots`.

        Raises:
            ValueError: If the search has not begun.
        """
        if self._study is None:
            raise ValueError(
                "The search has not begun here. If Ray's client runs it elsewhere, "
                "DRESearch().restore_from_dir(FOLDER) reads it from the experiment."
            )
        return self._study

    def explain(self, trial_id: str) -> Explanation:
        """Say where the configuration of a trial came from and what was expected of it.

        It is part of the state, so that it is there after `restore_from_dir`.

        Raises:
            ValueError: If the search knows no such trial.
        """
        is_known = trial_id in [*self._numbers]  # a list, as what is given may have no hash
        require(is_known, "trial_id", trial_id, "that of a trial of this search")
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
        metric, mode = arguments.checked_objectives(metric, mode)
        metric = arguments.only("metric", self._metric, metric)
        mode = arguments.only("mode", self._mode, mode)
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

        `Tuner.restore` calls this before it restores the state. The state has the prior of past
        results, which may not exist any more, so they are not read here. Nor is a memory, which
        would take this for one more study that learns.
        """
        self._require_objective(param_space)
        arguments.check_rule(self._valid, param_space)
        self._options["memory"] = arguments.memory_for(self._options["memory"], param_space)
        if self._past_results is None and not is_wanted(self._options["memory"]):
            self._set_up(param_space)
        else:
            arguments.check_points(
                param_space, self._points, self._evaluated, self._mode, self._valid
            )

    def _converted(self, space: Mapping[str, Any]) -> ParamSpace:
        if not isinstance(space, Mapping):
            raise ValueError(f"space must be a dictionary of Ray Tune's domains, got {space!r}.")
        return ParamSpace.of(space, ordered=self._ordered)

    def _set_up(self, param_space: ParamSpace) -> AskTell:
        """Begin the study, now that the parameter space is known."""
        self._require_objective(param_space)
        is_empty = not param_space.space.n_parameters
        if is_empty:
            logger.warning("There are constants only: all trials get the same configuration.")
        prior = None if is_empty else self._prior
        if self._past_results is not None and not is_empty:
            past, space = self._past_results, param_space.space
            tasks = arguments.past_tasks(past, self._metric, self._mode, space, self._limits)
            prior = learnt_prior(tasks, logger)
        study = AskTell(
            param_space.space,
            direction=arguments.directions_of(self._mode),
            seed=self._seed,
            prior=prior,
            logger=logger,
            framework="ray-tune",
            name=self._metric if isinstance(self._metric, str) else "",
            valid=arguments.rule_on(self._valid, param_space),
            **self._options,
        )
        arguments.add_points(study, param_space, self._points, self._evaluated)
        self._study, self._param_space = study, param_space
        # Deleted, as the study has them now and they would make every saved state larger.
        self._points, self._evaluated, self._prior, self._past_results = [], [], None, None
        return study

    def _require_objective(self, param_space: ParamSpace) -> None:
        if self._metric is None and self._mode is not None:
            self._metric = DEFAULT_METRIC  # reported for trainables that return a number
        if param_space.space.n_parameters and not (self._metric and self._mode):
            raise ValueError(
                f"DRESearch needs a metric and a mode, got {self._metric!r} and {self._mode!r}: "
                "DRESearch(metric=..., mode='min'), or tune.TuneConfig(metric=..., mode='min') "
                "of a Tuner with a param_space."
            )

    # ---- suggesting

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return the configuration of a new trial, or `FINISHED` if none is left."""
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
            logger.info("Every configuration was tried, so that no more trials begin.")
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
            value: Value of the metric; None or NaN if there is none.
            error: Whether it failed.
            pruned: Whether it was stopped early; it then counts by its intermediate values if
                there are any, otherwise by `value`.
            intermediate_values: Values of the metric at the training iterations from the first.

        Raises:
            ValueError: If the configuration is not complete or not of the space, or the value is
                no number.
        """
        values = [number_of(reported) for reported in intermediate_values or ()]
        rungs = {float(iteration): reported for iteration, reported in enumerate(values, start=1)}
        state = TrialState.FAILED if error else TrialState.PRUNED if pruned and rungs else None
        given = arguments.checked_value("value", value)
        result: dict[str, Any] = {"value": given, "state": state, "rungs": rungs}
        if self._study is None or self._param_space is None:
            point = dict(parameters), result
            if self._param_space is not None and self._mode:
                arguments.check_points(self._param_space, [], [point], self._mode, None)
            self._evaluated.append(point)
        else:
            self._study.add(self._param_space.to_configuration(parameters), **result)
