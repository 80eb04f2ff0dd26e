"""Tune without a framework: ask for a configuration, tell its value.

The adapters of Ray Tune and Syne Tune use it as well, as these frameworks keep no trials.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np

from dre_plugins.checks import is_integer, require
from dre_plugins.recommend.directions import Directions, checked_constraints, checked_cost
from dre_plugins.recommend.explanation import ANNOUNCEMENTS, Explanation, Suggestion
from dre_plugins.recommend.prior import AUTO, GivenPrior, checked, yields_to_memory
from dre_plugins.recommend.recommender import LOGGER, Recommender
from dre_plugins.recommend.settings import Settings, checked_settings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Domain
from dre_plugins.space.rules import Rule, Valid
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study import configurations
from dre_plugins.study.arguments import GivenMemory, memory_of_study, prior_from
from dre_plugins.study.favourites import with_favourites
from dre_plugins.study.kept_trials import KeptTrials, locked
from dre_plugins.study.stopping import ExpectedGain, check_n_ahead, expected_gain


class AskTell(KeptTrials):
    """Keep the trials of one study and suggest the next ones.

    `ask` begins a trial; `tell` ends it with its value, and `stop` says that a scheduler has ended
    it. Values that a running trial passes to `report` count at once, as if it were stopped now. A
    trial without reports is pending: it is assumed to end at its predicted rank, and its
    configuration is not suggested again. Threads may share a study: its methods run one at a time.

    Args:
        space: A `SearchSpace`, or a domain or a list of choices by parameter name; choices that
            are numbers in ascending order are treated as ordered.
        direction: "minimize" or "maximize"; a list of these for several objectives.
        seed: Non-negative seed of everything random; None draws one.
        prior: What is known before the first trial. "auto" recognises common learners by the names
            and ranges of their parameters and takes the first three trials from the
            portfolio of the learner; all else is as with "universal", the universal prior and an
            ensemble with random initial weights. None is this ensemble alone. A trained prior is
            given by its name (`dre priors list`), as a path, or as a `dre_plugins.Prior`: it
            proposes the first trial, even if the search spaces differ, the ensemble starts from
            its weights, and the universal prior takes turns once ten trials have ended. The path
            of a file that `dre-bench train-universal` wrote replaces the universal prior. A list
            has a trained prior, or None, for each objective. From `dre_plugins.PastTasks`, past
            studies of one objective such as `PastTasks([finished.task()])`, the first 20 trials
            learn.
        n_startup_trials: Number of trials that must have ended before a model proposes; until
            then, Sobol points. None means 3 for the universal prior and 10 for the ensemble, or 0
            with a trained prior.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "model" multiplies expected improvements by the predicted probability of success,
            "worst" ranks failed trials below all others, "ignore" leaves them out.
        settings: Expert settings, see `dre_plugins.Settings`: acquisition, preset, device,
            threads, how many trials are fitted, whether numeric choices are ordered.
        logger: Logger of all messages; None takes "dre_plugins".
        memory: Folder in which studies of all frameworks are recorded, and from which later ones
            with some of the same parameters learn: True (that of DRE_MEMORY, or one in the user's
            data folder), a path, a `dre_plugins.Memory`, False (none), or None (that of the
            environment variable DRE_MEMORY, if it is set). With a prior other than "auto" and
            "universal", the study is recorded but does not learn from the folder.
        valid: Rule that configurations must satisfy: a function of a dictionary of the active
            parameters, such as `lambda c: c["low"] <= c["high"]`. It is called thousands of times
            a suggestion and must always answer the same. Enqueued configurations are exempt;
            `stats["invalid"]` counts those that break it. Pickling a study pickles its rule.
        name: Name of the study in the memory, and as a past one.
        framework: Framework that the memory shows beside the name.

    Attributes:
        space: The search space.
        name: The name of the study.
        rule: Which configurations may be tried, by `valid`.
        is_recorded: Whether a memory records the trials that end from now on.
        stats: Counters of `Recommender` and "enqueued" configurations that were asked for. With a
            memory also "past_studies" and "memory_errors".

    Raises:
        ValueError: If an argument is invalid (the message names it), the prior shares no parameter
            with the space, or `valid` raises or holds for no configuration that was tried.

    Examples:
        >>> from dre_plugins.space import Float
        >>> study = AskTell({"x": Float(-1.0, 1.0)}, direction="minimize", seed=0)
        >>> number, configuration = study.ask()
        >>> study.tell(number, configuration["x"] ** 2)
        >>> study.best.configuration == configuration
        True
        >>> print(study.explain(number))
        random: a space-filling start-up point
    """

    is_recorded = True

    def __init__(
        self,
        space: SearchSpace | Mapping[str, Domain | Sequence[Any]],
        *,
        direction: str | Sequence[str] = "minimize",
        seed: int | None = None,
        prior: GivenPrior = AUTO,
        n_startup_trials: int | None = None,
        allow_duplicates: bool = False,
        failed: str = "model",
        settings: Settings | None = None,
        logger: logging.Logger | None = None,
        memory: GivenMemory = None,
        valid: Valid | None = None,
        name: str = "",
        framework: str = "ask-tell",
    ) -> None:
        self._settings = checked_settings(settings).for_recommender(
            n_startup_trials=n_startup_trials, allow_duplicates=allow_duplicates, failed=failed
        )
        ordered = self._settings.order_numeric_choices
        searched = configurations.space_of(space, ordered=ordered)
        super().__init__(searched, Directions.of(direction), name)
        self.stats: Counter[str] = Counter()
        self._seed = int(np.random.default_rng().integers(2**32)) if seed is None else seed
        self._logger = LOGGER if logger is None else logger
        self._valid = valid
        self._warned: set[str] = set()
        self._memory = memory_of_study(
            memory,
            name=name,
            framework=framework,
            directions=self.directions,
            stats=self.stats,
            logger=self._logger,
        )
        self._prior = prior_from(prior, self._settings.preset)
        if self._memory is not None and yields_to_memory(prior):
            # Past studies tell more than the names of parameters.
            self._prior = self._memory.past_tasks_for(self.space) or self._prior
        self._prior = checked(self._prior, len(self.directions))
        self._derive()

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Return the state with copies of collections: other threads may change them meanwhile."""
        return {
            name: copy(part) if isinstance(part, (dict, list, set)) else part
            for name, part in self.__dict__.items()
            if name not in ("_lock", "_recommender", "rule")
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()
        if self._memory is not None:
            self._memory.stats = self.stats
        self._derive()

    def _derive(self) -> None:
        """Make the attributes that follow from the others, which are not pickled."""
        self.rule = Rule(self.space, self._valid, seed=self._seed)
        self._recommender = Recommender(
            self.space,
            self._settings,
            seed=self._seed,
            stats=self.stats,
            n_objectives=len(self.directions),
            logger=self._logger,
            rule=self.rule,
            prior=self._prior,
        )
        self._recommender.check_rule()

    @property
    @locked
    def is_exhausted(self) -> bool:
        """Whether every configuration of a finite space was asked for."""
        may_differ = bool(self._queue) or self._settings.allow_duplicates
        return not may_differ and configurations.has_tried_all(self.rule, self._trials)

    @locked
    def expected_gain(self, n_ahead: int = 10) -> ExpectedGain | None:
        """Return the gain that is expected of the next trials; if it is small, end the study.

        A formula that was fitted to recorded studies turns the expected improvement of the
        universal prior's best candidate into this gain.

        Args:
            n_ahead: Number of next trials, at least 1.

        Returns:
            The gain in the unit of the metric; None before ten complete, feasible trials.

        Raises:
            ValueError: If there are several objectives, or `n_ahead` is out of range.
        """
        require(len(self.directions) == 1, "the number of objectives", len(self.directions), "1")
        check_n_ahead(n_ahead)
        return expected_gain(self.rule, self.observed(), n_ahead=n_ahead)

    # ---- asking

    def ask(self) -> tuple[int, dict[str, Any]]:
        """Return the number and the configuration of a new trial."""
        return self.ask_batch(1)[0]

    @locked
    def ask_batch(self, count: int) -> list[tuple[int, dict[str, Any]]]:
        """Return several new trials, different from each other.

        Each of the first 16 is followed by a short fit, which takes half of the time of a call of
        `ask`. Further ones share a fit, 16 at a time, and take a seventh.

        Raises:
            ValueError: If `count` is below 1.
        """
        require(is_integer(count) and count >= 1, "count", count, "an integer of at least 1")
        first = len(self._trials)
        if not first and self._recommender.prior_summary:
            self._logger.info(self._recommender.prior_summary)
        while self._queue and len(self._trials) < first + count:
            self._begin(self._completed(self._queue[0]), Explanation("enqueued"))
            # Only now, so that an interruption loses no enqueued configuration.
            del self._queue[0]
            self.stats["enqueued"] += 1
        n_missing = first + count - len(self._trials)
        for suggestion in self._suggest(n_missing, {}) if n_missing else ():
            self._begin(suggestion.configuration, suggestion.explanation)
        return [(n, dict(self._trials[n].configuration)) for n in range(first, first + count)]

    @locked
    def enqueue(self, configuration: Mapping[str, Any]) -> None:
        """Evaluate a configuration before any other, after those enqueued earlier.

        Args:
            configuration: Values by name; parameters that are missing are chosen by the model. A
                number outside its range is kept, with one warning.

        Raises:
            ValueError: If there is no such parameter, or it can never have such a value.
        """
        self._check(configuration)
        self._queue.append(dict(configuration))

    # ---- telling

    @locked
    def report(self, number: int, step: float, value: float) -> None:
        """Report an intermediate value of a running trial; the last one of a step counts.

        Args:
            number: What `ask` returned.
            step: Resource that the trial has reached, such as an epoch.
            value: The value; NaN if there is none.

        Raises:
            ValueError: If the trial is not running, step or value is no number, or there are
                several objectives.
        """
        trial = self._running(number)
        require(len(self.directions) == 1, "directions", self.directions, "one for a report")
        rungs = {**trial.rungs, **self._directions.reported(step, value)}
        self._trials[number] = replace(trial, rungs=rungs)

    @locked
    def tell(
        self,
        number: int,
        value: float | Sequence[float] | None,
        *,
        constraints: Mapping[str, float] | None = None,
        cost: float | None = None,
    ) -> None:
        """Report the final value of a trial; None or NaN says that it failed.

        Args:
            number: What `ask` returned.
            value: The value; one for each objective, if there are several.
            constraints: How far each constraint is violated, by name; at most 0 where it is met,
                NaN where that is unknown.
            cost: Cost of the trial, such as seconds; unknown if None, NaN or 0. Once three
                complete trials have one, expected gains are weighed against expected costs.

        Raises:
            ValueError: If no such trial runs, a value is no number, or the cost is negative.
        """
        trial, paid = self._running(number), checked_cost(cost)
        ended = self._directions.ended(trial.configuration, value, None, trial.rungs, constraints)
        self._end(number, replace(ended, cost=paid))

    @locked
    def stop(self, number: int, *, constraints: Mapping[str, float] | None = None) -> None:
        """Say that a running trial was stopped, by a scheduler for example.

        If no trial has reported a later step, it is complete with its last value. Otherwise it is
        pruned: compared with others at the steps that it reported. Without a report, or with NaN
        as the last one, it has failed.

        Raises:
            ValueError: If there is no such trial, or it has ended.
        """
        trial, checked = self._running(number), checked_constraints(constraints)
        self._stopped.add(number)
        self._end(number, replace(trial, state=TrialState.PRUNED, constraints=checked))

    @locked
    def add(
        self,
        configuration: Mapping[str, Any],
        value: float | Sequence[float] | None,
        *,
        state: TrialState | None = None,
        rungs: Mapping[float, float] | None = None,
        constraints: Mapping[str, float] | None = None,
        cost: float | None = None,
    ) -> int:
        """Add a trial that was evaluated elsewhere, and return its number.

        Args:
            configuration: Values of all active parameters; a number outside its range is kept,
                with one warning.
            value: Its value, or values; None or NaN if it has none.
            state: Its state; None: complete, or failed without a value.
            rungs: Intermediate values by step.
            constraints: See `tell`.
            cost: See `tell`.

        Raises:
            ValueError: If the configuration is not one of the space, a value no number, or the
                cost negative.
        """
        paid = checked_cost(cost)
        self._check(configuration)
        whole = configurations.complete(self.space, configuration)
        signed = self._directions.rungs(rungs or {})
        ended = self._directions.ended(whole, value, state, signed, constraints)
        self._trials.append(ended)
        return self._end(len(self._trials) - 1, replace(ended, cost=paid))

    @locked
    def record_running(self) -> None:
        """Record running trials in the memory as if they were stopped now, until they end."""
        for number, trial in enumerate(self._trials):
            if trial.state is TrialState.RUNNING and trial.rungs:
                self._record(number, replace(trial, state=TrialState.PRUNED), is_stopped=True)

    def _end(self, number: int, trial: Trial) -> int:
        self._trials[number] = trial
        self._record(number, trial, is_stopped=number in self._stopped)
        return number

    def _record(self, number: int, trial: Trial, *, is_stopped: bool) -> None:
        if self.is_recorded and self._memory is not None and trial.state is not TrialState.RUNNING:
            plain, source = int(number), self.explain(number).source  # JSON has no NumPy integers
            made = trial, self.space
            self._memory.record(plain, lambda: made, is_stopped=is_stopped, source=source)

    def _suggest(self, count: int, fixed: Mapping[str, Any]) -> list[Suggestion]:
        index, history = len(self._trials), self.history()
        suggestions = self._recommender.suggest(history, count, index=index, fixed=fixed)
        suggestions = with_favourites(suggestions, self._recommender, self._prior, history, fixed)
        for number, source in enumerate((s.source for s in suggestions), index):
            if source in ANNOUNCEMENTS:  # "<": a parameter may have the source's name
                self._say_once(logging.INFO, f"<{source}>", ANNOUNCEMENTS[source].format(number))
        return suggestions

    def _completed(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration with the model's choice of the missing parameters."""
        if configurations.missing(self.space, configuration):
            near = configurations.nearest(self.space, configuration)
            configuration = {**self._suggest(1, near)[0].configuration, **configuration}
        whole = self.space.constants | configurations.active_part(self.space, configuration)
        if not self.rule.allows(whole):
            self._recommender.count_invalid()
        return whole

    def _check(self, configuration: Mapping[str, Any]) -> None:
        """Refuse values that a parameter can never have; warn once of those out of range."""
        for name, warning in configurations.out_of_range(self.space, configuration).items():
            self._say_once(logging.WARNING, name, warning)

    def warn_once(self, text: str, topic: str) -> None:
        """Warn of the first event of a topic, as an adapter does."""
        self._say_once(logging.WARNING, f"<{topic}>", f"{text} Further ones are not mentioned.")

    def _say_once(self, level: int, what: str, text: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self._logger.log(level, text)
