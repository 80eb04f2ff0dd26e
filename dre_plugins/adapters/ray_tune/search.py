"""Deep Ranking Ensembles as a search algorithm of Ray Tune: `DRESearch`."""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from dre_plugins.adapters.common.options import check_past, seed_from
from dre_plugins.adapters.ray_tune import arguments, state as states
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.history import RayTrials, ResultReader, logger
from dre_plugins.adapters.ray_tune.sources import check_sources
from dre_plugins.adapters.ray_tune.stored import catch_up, end_with_experiment
from dre_plugins.checks import require
from dre_plugins.memory.memory import Memory
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.prior import AUTO, GivenPrior
from dre_plugins.recommend.settings import Settings, checked_settings
from dre_plugins.recommend.trials import TrialState, number_of
from dre_plugins.space.rules import Valid
from dre_plugins.study.arguments import GivenMemory, is_wanted, prior_from
from dre_plugins.study.ask_tell import AskTell
from dre_plugins.transfer.metadata import MetaDataset


class DRESearch(Searcher):
    """Search algorithm using Deep Ranking Ensembles in turns with a universal prior.

    By default, the first three trials are spread over the space, or come from the portfolio of a
    common learner. Then a *universal prior* proposes, a network that was meta-trained on synthetic
    functions, later in turns with a *deep ranking ensemble* (Khazi, Pineda Arango and Grabocka,
    ICLR 2023): see docs/guide/method.md. Arguments that are not listed are those of `AskTell`.

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
            domains. As with Ray's own searchers, a domain here overrides a constant there. Choices
            that are functions or other objects can be told apart only if the space is given here,
            because a Tuner hides them from the search algorithm. With such choices, `valid` and
            `memory` need the space here, too.
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
        past_results: Past experiments from which the first 20 trials learn: what `Tuner.fit` has
            returned, an `ExperimentAnalysis`, a folder of experiments, several of these, or a
            `dre_plugins.MetaDataset`, of which the last 100 are read. The name of the metric must
            be the same. Their trials that break `constraints` have failed.
        constraints: Limits on other metrics that trials report, by name: the highest value
            allowed, or a pair of the lowest and the highest, where None is no limit. The expected
            improvement is multiplied by the probability that all limits are kept.
        cost: Cost of a trial, a number above 0: "duration" (Ray's `time_total_s`, in seconds) or
            the name of another metric. Once three trials that ended by themselves have reported
            it, expected gains are weighed against expected costs.
        n_startup_trials: Number of trials that must have ended before a model proposes, see
            `AskTell`; points to evaluate and evaluated ones are among them.
            None: 3 for the universal prior and 10 for the ensemble, or 0 with a trained prior.
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
            as a trial gets it, but without constants that only the Tuner has if `space`, `metric`
            and `mode` are given here. Points to evaluate are exempt. It is saved with the search,
            even if it is a lambda.

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
        super().__init__()
        self._reader = ResultReader.of(
            metric, mode, constraints=constraints, cost=cost, stopped=stopped
        )
        self.identity = secrets.token_hex()  # the same in all copies of a search
        options = {"n_startup_trials": n_startup_trials, "allow_duplicates": allow_duplicates}
        checked = checked_settings(settings).for_recommender(**options, failed=failed)
        seed = None if seed is None else seed_from(seed)
        Memory.of(memory)  # says what is wrong with it
        check_past("past_results", past_results, prior)
        if past_results is not None and not isinstance(past_results, MetaDataset):
            check_sources(past_results)
        self._given = arguments.StudyArguments(
            options={**options, "failed": failed, "settings": settings, "seed": seed},
            prior=prior_from(prior, checked.preset),
            past_results=past_results,
            points=arguments.initial_points(points_to_evaluate, evaluated_rewards),
            memory=memory,
            valid=valid,
        )
        self._files = states.StateFiles()
        self._trials: RayTrials | None = None
        self._ordered = checked.order_numeric_choices
        self._param_space = None if space is None else ParamSpace.of(space, ordered=self._ordered)
        if self._param_space is not None and self.metric and self.mode:
            self._begin(self._param_space)

    @property
    def metric(self) -> Any:
        """Return the metric, or those of several objectives, as Ray's wrappers ask for it."""
        return self._reader.metric

    @property
    def mode(self) -> Any:
        """Return "min" or "max", or one of these for each of several objectives."""
        return self._reader.mode

    @property
    def stats(self) -> Counter[str]:
        """Count "suggestions", among them "random", "model" and others, and "fallbacks".

        The sources are those of `dre_plugins.Recommender`; "enqueued" counts points to evaluate,
        "unsaved" states that could not be written.
        """
        stats = Counter() if self._trials is None else Counter(self._trials.study.stats)
        return stats + Counter(unsaved=self._files.n_unsaved)

    @property
    def study(self) -> AskTell:
        """The study of the search, for example for `dre_plugins.plots`.

        Raises:
            ValueError: If the search has not begun.
        """
        return self._begun().study

    def explain(self, trial_id: str) -> Explanation:
        """Say where the configuration of a trial came from and what was expected of it.

        It is part of the state, so that it is there after `restore_from_dir`.

        Raises:
            ValueError: If the search knows no such trial.
        """
        trials = self._begun()
        is_known = trial_id in [*trials.numbers]  # a list, as what is given may have no hash
        require(is_known, "trial_id", trial_id, "that of a trial of this search")
        number = trials.numbers[trial_id]
        return Explanation("unknown") if number is None else trials.study.explain(number)

    # ---- setting up

    def set_search_properties(
        self, metric: Any, mode: Any, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take the metric, the mode and the parameter space of a Tuner.

        Raises:
            ValueError: If they contradict what was given before, or something is missing.
        """
        self._reader = self._reader.of_tuner(metric, mode, spec.get("stop"))
        tuned = ParamSpace.of(config, ordered=self._ordered)
        param_space = tuned if self._param_space is None else self._param_space.joined(tuned)
        self._param_space = param_space
        if self._trials is None:
            self._begin(param_space)
        else:
            self._trials.param_space, self._trials.reader = param_space, self._reader
        return True

    def _begin(self, param_space: ParamSpace, *, may_wait: bool = True) -> None:
        """Check what can be checked, and begin the study unless it has to learn something first.

        `Tuner.restore` calls this before it restores the state. The state has the prior of past
        results, which may not exist any more, so they are read at the first suggestion only, as is
        a memory, which would take this for one more study that learns.
        """
        is_needed = param_space.space.n_parameters > 0
        self._reader = self._reader.with_default_metric(is_needed=is_needed)
        if may_wait:
            self._given = self._given.on(param_space)
            if self._given.past_results is not None or is_wanted(self._given.memory):
                self._given.check(param_space, self._reader)
                return
        study = self._given.begin(param_space, self._reader)
        self._trials = RayTrials(study, param_space, self._reader)
        # Without what the study has now, so that states are smaller.
        self._given = replace(self._given, prior=None, past_results=None, points=())

    def _begun(self) -> RayTrials:
        if self._trials is None:
            raise ValueError(
                "The search has not begun here. If Ray's client runs it elsewhere, "
                "DRESearch().restore_from_dir(FOLDER) reads it from the experiment."
            )
        return self._trials

    # ---- suggesting and learning

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return the configuration of a new trial, or `FINISHED` if none is left."""
        if self._param_space is None:
            raise ValueError(
                "DRESearch has nothing to search: give it a space, or the Tuner a param_space "
                "(Tuner.restore too, if the state of the experiment could not be read)."
            )
        if self._trials is None:
            self._begin(self._param_space, may_wait=False)
        config = self._begun().begin(trial_id)
        if config is None:
            logger.info("Every configuration was tried, so that no more trials begin.")
        return self.FINISHED if config is None else config  # type: ignore[return-value]

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Learn from an intermediate result of a trial."""
        if self._trials is not None:
            self._trials.report(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Learn from the end of a trial.

        Args:
            error: Whether it failed, whatever it reported before.
        """
        if self._trials is not None:
            self._trials.end(trial_id, result, error=error)

    def on_pause(self, trial_id: str) -> None:
        """Do nothing: a paused trial counts by what it has reported (`HyperBandForBOHB` asks)."""

    def on_unpause(self, trial_id: str) -> None:
        """Do nothing: a trial that goes on reports more (`HyperBandForBOHB` asks)."""

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
        is_mapping = isinstance(parameters, Mapping)
        require(is_mapping, "parameters", parameters, "a dictionary of parameters and values")
        reported = enumerate(map(number_of, intermediate_values or ()), start=1)
        rungs = {float(iteration): value for iteration, value in reported}
        state = TrialState.FAILED if error else TrialState.PRUNED if pruned and rungs else None
        final = arguments.checked_value("value", value)
        point = (dict(parameters), {"value": final, "state": state, "rungs": rungs})
        # Without the points to run, which may lack constants of the Tuner, and without a rule.
        added = replace(self._given, points=[point], valid=None)
        if self._trials is not None:
            added.add_points(self._trials.study, self._trials.param_space)
            return
        if self._param_space is not None and self.mode:
            added.check(self._param_space, self._reader)
        self._given = replace(self._given, points=[*self._given.points, point])

    # ---- the state on disk

    def get_state(self) -> dict[str, Any]:
        """Return a copy of everything that a search needs to go on in the same way."""
        return states.state_of(self.__dict__)

    def set_state(self, state: dict[str, Any]) -> None:
        """Become what `get_state` has returned, arguments included.

        Raises:
            ValueError: If it is no such state, or one of another version.
        """
        self.__dict__.update(states.attributes_in(state))

    def save(self, checkpoint_path: str) -> None:
        """Write the state to a file atomically.

        It is a pickle, as all states of Ray Tune are: restore none that you do not trust.
        """
        states.write(Path(checkpoint_path), self.get_state())

    def restore(self, checkpoint_path: str) -> None:
        """Read the state from a file that `save` wrote.

        Raises:
            ValueError: If it is the state of something else, of another version, or not whole.
        """
        self.set_state(states.read(Path(checkpoint_path)))
        states.RESTORED[self.identity] = self

    def save_to_dir(self, checkpoint_dir: str, session_str: str = "default") -> None:
        """Write the state into the folder of an experiment, and keep the previous one.

        If it cannot be written, the experiment goes on: one warning.
        """
        if self._trials is not None:
            end_with_experiment(self._trials, Path(checkpoint_dir))
        self._files.write(self, Path(checkpoint_dir), session_str)

    def restore_from_dir(self, checkpoint_dir: str) -> None:
        """Read the newest state in the folder of an experiment that is whole.

        Trials that ended later are learnt from Ray's own record.

        Raises:
            RuntimeError: If there is none.
        """
        folder = Path(checkpoint_dir)
        state, superseded = states.newest(folder)
        self.set_state(state)
        self._files.superseded = superseded
        states.RESTORED[self.identity] = self
        if self._trials is not None:
            may_repeat = self._given.options["allow_duplicates"]
            catch_up(self._trials, folder, allow_duplicates=may_repeat)
