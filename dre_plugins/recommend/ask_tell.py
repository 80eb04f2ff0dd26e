"""Tune without a framework: ask for a configuration, tell what it was worth.

The frameworks that keep no trials themselves (Ray Tune, Syne Tune) are served by this as well.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dre_plugins.engine.settings import require
from dre_plugins.recommend import configurations
from dre_plugins.recommend.directions import Directions, checked_constraints, checked_cost
from dre_plugins.recommend.explanation import ANNOUNCEMENTS, Explanation, Suggestion
from dre_plugins.recommend.kept_trials import KeptTrials, locked
from dre_plugins.recommend.loading import prior_from
from dre_plugins.recommend.memory import GivenMemory, Recommenders, memory_of_study, remembered
from dre_plugins.recommend.prior import AUTO, UNIVERSAL, FoundPrior, GivenPrior
from dre_plugins.recommend.recommendation import Recommendation, recommended
from dre_plugins.recommend.recommender import LOGGER, Recommender
from dre_plugins.recommend.results import has_tried_all
from dre_plugins.recommend.settings import Settings, checked_settings
from dre_plugins.recommend.stopping import ExpectedGain, expected_gain
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Domain
from dre_plugins.space.rules import Rule, Valid
from dre_plugins.space.search_space import SearchSpace


class AskTell(KeptTrials):
    """Keep the trials of one study in memory and suggest the next ones.

    A trial is `ask`ed for and then ends by `tell` (it ended by itself) or by `stop` (something
    else has ended it). What it `report`s before counts at once: a trial that is still running
    counts like one that was stopped by now. One that has reported nothing yet is believed at its
    predicted rank, so that no worker gets the same. Several threads may use one study: one at a
    time is let in, so that what is told while another one asks counts for the next suggestion.

    Args:
        space: A `SearchSpace`, or a domain or a list of choices by parameter name; choices that
            are numbers in ascending order are treated as ordered.
        direction: "minimize" or "maximize"; a list of these for several objectives.
        seed: Non-negative seed of everything random; None draws one.
        prior: What is known beforehand: "auto" (the prior of the learner that is tuned, if it is
            recognised and its prior ships, otherwise "universal"), "universal" (of functions on
            any search space), None (nothing), or what past tasks taught: a `dre_plugins.Prior`,
            its name or its path; or a list with one for each objective, None where there is none.
        n_startup_trials: Trials that must have ended before the surrogate takes over; until then
            suggestions are points of one scrambled Sobol sequence. None takes 10 for the
            ensemble and 4 for the universal prior, or 0 with a trained prior.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials below all others, "ignore" leaves them out.
        settings: What most users leave as it is, see `dre_plugins.Settings`.
        logger: Where messages go, such as a framework's own; None takes "dre_plugins".
        memory: Where all studies are recorded and learnt from, see `dre_plugins.Memory`: True (a
            folder of the user's data), the path of a folder, a `Memory`, False (none), or None
            (the folder that the environment variable DRE_MEMORY names, if any). A prior other
            than "auto" and "universal" takes precedence: then the study is only recorded.
        valid: Says of a configuration, a dictionary of its active parameters, whether it may be
            tried: a rule known beforehand, such as `lambda c: c["low"] <= c["high"]`. All that is
            suggested satisfies it; what is enqueued is tried all the same (one warning,
            `stats["invalid"]` counts). It is asked thousands of times a suggestion, and must
            answer the same each time. To pickle the study, it must be picklable.
        name: Name of the study in the memory, for people.
        framework: What tunes, for people.

    Attributes:
        space: The search space.
        stats: Counters of `Recommender`, how many "enqueued" configurations were asked for, the
            number of "past_studies" that the memory offered, how many suggestions did without
            them as the trials contradict them ("memory_contradicted"), and "memory_errors".

    Raises:
        ValueError: If an argument is invalid; the message names it. If `valid` raises, or holds
            for no configuration that was tried.

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

    DERIVED = ("_recommenders", "_rule")

    def __init__(
        self,
        space: SearchSpace | Mapping[str, Domain | Sequence[Any]],
        *,
        direction: str | Sequence[str] = "minimize",
        seed: int | None = None,
        prior: GivenPrior = AUTO,
        n_startup_trials: int | None = None,
        allow_duplicates: bool = False,
        failed: str = "worst",
        settings: Settings | None = None,
        logger: logging.Logger | None = None,
        memory: GivenMemory = None,
        valid: Valid | None = None,
        name: str = "",
        framework: str = "ask-tell",
    ) -> None:
        super().__init__(configurations.space_of(space), Directions.of(direction))
        self.stats: Counter[str] = Counter()
        self._settings = checked_settings(settings).for_recommender(
            n_startup_trials=n_startup_trials, allow_duplicates=allow_duplicates, failed=failed
        )
        self._seed = int(np.random.default_rng().integers(2**32)) if seed is None else seed
        self._logger = LOGGER if logger is None else logger
        self._valid = valid
        self._queue: list[dict[str, Any]] = []
        self._warned: set[str] = set()
        self._memory = memory_of_study(
            memory,
            name=name,
            framework=framework,
            directions=self.directions,
            stats=self.stats,
            logger=self._logger,
        )
        self._remembered = remembered(self._memory, prior, self.space)
        self._prior = self._remembered or prior_from(prior, self._settings.preset)
        if isinstance(self._prior, FoundPrior) and len(self.directions) > 1:
            self._prior = UNIVERSAL  # what was found is good by one objective
        self._recommenders = self._new_recommenders()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        if self._memory is not None:
            self._memory.stats = self.stats
        self._recommenders = self._new_recommenders()

    def _new_recommenders(self) -> Recommenders:
        self._rule = Rule(self.space, self._valid, seed=self._seed)
        recommender = partial(
            Recommender,
            self.space,
            self._settings,
            seed=self._seed,
            stats=self.stats,
            n_objectives=len(self.directions),
            logger=self._logger,
            rule=self._rule,
        )
        return Recommenders(recommender, self._prior, self._memory, self._remembered)

    @property
    @locked
    def is_exhausted(self) -> bool:
        """Whether every configuration of a finite space was asked for, so that any repeats one."""
        may_differ = bool(self._queue) or self._settings.allow_duplicates
        return not may_differ and has_tried_all(self._rule, self._trials)

    @locked
    def recommend(self) -> Recommendation[Trial]:
        """Return the trial that is best by the model, which noise favoured less than `best`.

        The universal prior reads all trials; of the complete ones that meet all constraints the
        one of the best expected value is returned, with that expectation and its doubt.

        Raises:
            ValueError: If there is no such trial, or there are several objectives.
        """
        history, n_objectives = self.history(), len(self.directions)
        chosen = recommended(self.space, history, self._trials, n_objectives=n_objectives)
        trial = self._directions.in_users_sign(history[chosen.trial])
        return chosen.as_of(trial, self._directions.signs[0])

    @locked
    def expected_gain(self, n_ahead: int = 10) -> ExpectedGain | None:
        """Return what the next trials are expected to gain, to end the study when it is little.

        Args:
            n_ahead: How many next trials, at least 1.

        Returns:
            The gain in the unit of the metric; None before ten complete, feasible trials.

        Raises:
            ValueError: If there are several objectives, or `n_ahead` is below 1.
        """
        require(len(self.directions) == 1, "the number of objectives", len(self.directions), "1")
        require(n_ahead >= 1, "n_ahead", n_ahead, "at least 1")
        return expected_gain(self.space, self.history(), self._trials, n_ahead=n_ahead)

    # ---- asking

    def ask(self) -> tuple[int, dict[str, Any]]:
        """Return the number and the configuration of a new trial."""
        return self.ask_batch(1)[0]

    @locked
    def ask_batch(self, count: int) -> list[tuple[int, dict[str, Any]]]:
        """Return several new trials, different from each other.

        Up to 16 cost about half of as many calls of `ask`, further ones a seventh: each of the
        first 16 is followed by a short fit, of the others 16 share one and are kept apart.

        Raises:
            ValueError: If `count` is below 1.
        """
        require(count >= 1, "count", count, "at least 1")
        first = len(self._trials)
        if not first and self._recommenders.about_priors:
            self._logger.info(self._recommenders.about_priors)
        while self._queue and len(self._trials) < first + count:
            self._begin(self._completed(self._queue[0]), Explanation("enqueued"))
            # Only now: what is interrupted before must not lose what the user wants.
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
            configuration: Values by name; parameters that are missing are chosen to go with them.
                A number out of its parameter's range is kept, with one warning.

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
            step: How far the trial got, such as an epoch.
            value: The value; NaN if there is none.

        Raises:
            ValueError: If the trial is not running, step or value is no number, or there are
                several objectives.
        """
        trial = self._running(number)
        require(len(self.directions) == 1, "report", number, "for one objective")
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
            cost: What the trial has cost, such as seconds; None or NaN where that is unknown.
                Once three costs are known, what a trial may gain is weighed against what it is
                expected to cost.

        Raises:
            ValueError: If there is no such trial, it has been told before, a value is no
                number, or the cost is negative.
        """
        trial, paid = self._running(number), checked_cost(cost)
        ended = self._directions.ended(trial.configuration, value, None, trial.rungs, constraints)
        self._end(number, replace(ended, cost=paid))

    @locked
    def stop(self, number: int, *, constraints: Mapping[str, float] | None = None) -> None:
        """Say that a running trial was stopped, by a scheduler for example.

        It counts by what it has reported: as complete if no trial has got further, otherwise as
        pruned, which is compared with others at the steps that it reported. Without any report it
        has failed.

        Raises:
            ValueError: If there is no such trial, or it has ended.
        """
        trial, checked = self._running(number), checked_constraints(constraints)
        self._stopped.add(number)
        self._end(number, replace(trial, state=TrialState.PRUNED, constraints=checked))

    @locked
    def restart(self, number: int) -> None:
        """Say that a trial runs again from its beginning, whatever became of it before.

        Raises:
            ValueError: If there is no such trial.
        """
        self._trials[number] = Trial(self._trial(number).configuration, TrialState.RUNNING)
        self._stopped.discard(number)

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
    ) -> None:
        """Add a trial that was evaluated elsewhere.

        Args:
            configuration: Values of all active parameters; a number out of its parameter's range
                is kept, with one warning.
            value: Its value, or values; None or NaN if it has none.
            state: What became of it; None: complete, or failed without a value.
            rungs: Intermediate values by step.
            constraints: See `tell`.
            cost: See `tell`.

        Raises:
            ValueError: If the configuration is not one of the space, a value no number, or the
                cost negative.
        """
        paid = checked_cost(cost)
        self._check(configuration)
        lacking = configurations.missing(self.space, configuration)
        require(not lacking, "configuration", dict(configuration), f"complete, it lacks {lacking}")
        signed = self._directions.rungs(rungs or {})
        ended = self._directions.ended(dict(configuration), value, state, signed, constraints)
        self._trials.append(ended)
        self._end(len(self._trials) - 1, replace(ended, cost=paid))

    def _end(self, number: int, trial: Trial) -> None:
        """Keep what became of a trial, and write it to the memory."""
        self._trials[number] = trial
        is_stopped, source = number in self._stopped, self.explain(number).source
        self._recommenders.record(number, trial, is_stopped=is_stopped, source=source)

    def _suggest(self, count: int, fixed: Mapping[str, Any]) -> list[Suggestion]:
        index = len(self._trials)
        suggestions = self._recommenders.suggest(self.history(), count, index=index, fixed=fixed)
        for suggestion in suggestions:
            if suggestion.source in ANNOUNCEMENTS:
                announcement = ANNOUNCEMENTS[suggestion.source].format(index)
                self._say_once(logging.INFO, suggestion.source, announcement)
        return suggestions

    def _completed(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is wanted, with the model's choice of what is missing."""
        if not configurations.missing(self.space, wanted):
            whole = {**self.space.constants, **configurations.active_part(self.space, wanted)}
            self._recommenders.check(whole)
            return whole
        fixed = configurations.wanted_part(self.space, wanted)
        return {**self._suggest(1, fixed)[0].configuration, **wanted}

    def _begin(self, configuration: Mapping[str, Any], explanation: Explanation) -> None:
        self._explanations[len(self._trials)] = explanation
        self._trials.append(Trial(configuration, TrialState.RUNNING))

    def _check(self, configuration: Mapping[str, Any]) -> None:
        """Refuse what no parameter can have; warn once of what is only out of range."""
        for name, warning in configurations.out_of_range(self.space, configuration).items():
            self._say_once(logging.WARNING, name, warning)

    def _say_once(self, level: int, what: str, text: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            self._logger.log(level, text)

    def _running(self, number: int) -> Trial:
        trial = self._trial(number)
        require(trial.state is TrialState.RUNNING, "number", number, "a trial not told before")
        return trial
