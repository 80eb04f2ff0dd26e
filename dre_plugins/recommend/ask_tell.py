"""Tune without a framework: ask for a configuration, tell what it was worth.

The frameworks that keep no trials themselves (Ray Tune, Syne Tune) are served by this as well.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np

from dre_plugins.engine.settings import require
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.locking import locked
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.prior import UNIVERSAL, GivenPrior
from dre_plugins.recommend.recommender import LOGGER, Recommender
from dre_plugins.recommend.settings import Settings, checked_settings, takes_settings
from dre_plugins.recommend.suggestion import ANNOUNCEMENTS, Suggestion
from dre_plugins.recommend.trials import Trial, TrialState, as_of_now, feasible, number_of
from dre_plugins.space.base import is_real, match_key
from dre_plugins.space.domains import Domain, ordered_choices
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import keys

_SIGNS: Mapping[str, float] = {"maximize": 1.0, "minimize": -1.0}


class AskTell:
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
        prior: What is known beforehand: "universal" (of functions on any search space), None
            (nothing), or what past tasks taught, such as a `dre_plugins.Prior` or the
            `transfer.recognition.AutoPrior` of whatever learner is tuned; or a list with one for
            each objective, None where there is none.
        n_startup_trials: Trials that must have ended before the surrogate takes over; until then
            suggestions are points of one scrambled Sobol sequence. None takes 10 for the
            ensemble and 5 for the universal prior in its turns, or 0 with a trained prior.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials below all others, "ignore" leaves them out.
        settings: What most users leave as it is, see `dre_plugins.Settings`.
        logger: Where messages go, such as a framework's own; None takes "dre_plugins".

    Attributes:
        space: The search space.
        stats: Counters of `Recommender`, and how many "enqueued" configurations were asked for.

    Raises:
        ValueError: If an argument is invalid; the message names it.

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

    @takes_settings
    def __init__(
        self,
        space: SearchSpace | Mapping[str, Domain | Sequence[Any]],
        *,
        direction: str | Sequence[str] = "minimize",
        seed: int | None = None,
        prior: GivenPrior = UNIVERSAL,
        n_startup_trials: int | None = None,
        allow_duplicates: bool = False,
        failed: str = "worst",
        settings: Settings | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        directions = [direction] if isinstance(direction, str) else [*direction]
        is_known = bool(directions) and all(one in _SIGNS for one in directions)
        require(is_known, "direction", direction, "'minimize' or 'maximize', or a list of these")
        if not isinstance(space, SearchSpace):
            space = SearchSpace(
                {
                    name: domain if isinstance(domain, Domain) else ordered_choices(domain)
                    for name, domain in space.items()
                }
            )
        if seed is None:
            seed = int(np.random.default_rng().integers(2**32))
        self.space = space
        self.stats: Counter[str] = Counter()
        self._settings = checked_settings(settings).for_recommender(
            n_startup_trials=n_startup_trials, allow_duplicates=allow_duplicates, failed=failed
        )
        self._seed = seed
        self._prior = prior
        self._logger = LOGGER if logger is None else logger
        self._signs = tuple(_SIGNS[one] for one in directions)
        self._trials: list[Trial] = []
        self._explanations: dict[int, Explanation] = {}
        self._stopped: set[int] = set()
        self._queue: list[dict[str, Any]] = []
        self._warned: set[str] = set()
        self._lock = RLock()
        self._recommender = self._new_recommender()

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what is made of the rest of it.

        What other threads change is copied: pickling goes on after this.
        """
        return {
            name: copy(part) if isinstance(part, (dict, list, set)) else part
            for name, part in self.__dict__.items()
            if name not in ("_recommender", "_lock")
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # Older states have no explanations and no logger.
        self.__dict__.update({"_explanations": {}, "_logger": LOGGER, **state})
        self._lock = RLock()
        self._recommender = self._new_recommender()

    def _new_recommender(self) -> Recommender:
        return Recommender(
            self.space,
            self._settings,
            seed=self._seed,
            stats=self.stats,
            prior=self._prior,
            n_objectives=len(self._signs),
            logger=self._logger,
        )

    # ---- what there is

    @property
    def directions(self) -> tuple[str, ...]:
        """Return "minimize" or "maximize" for each objective."""
        return tuple("maximize" if sign > 0 else "minimize" for sign in self._signs)

    @property
    @locked
    def trials(self) -> tuple[Trial, ...]:
        """All trials so far, in order, with the values that were told."""
        return tuple(
            self._in_users_sign(trial if trial.state is TrialState.RUNNING else known)
            for trial, known in zip(self._trials, self.history(), strict=True)
        )

    @property
    @locked
    def best(self) -> Trial:
        """The complete trial of the best value among those that meet all constraints.

        Raises:
            ValueError: If there is no such trial, or there are several objectives.
        """
        require(len(self._signs) == 1, "best", None, "best_trials where objectives are several")
        good = [trial for trial in self._feasible_trials() if trial.value is not None]
        require(bool(good), "best", None, "asked for after a trial is complete and feasible")
        return self._in_users_sign(max(good, key=lambda one: one.value or 0.0))

    @property
    @locked
    def best_trials(self) -> tuple[Trial, ...]:
        """The complete trials that meet all constraints and that no other one beats throughout."""
        good = [trial for trial in self._feasible_trials() if _values(trial)]
        if not good:
            return ()
        front = non_dominated(np.array([_values(trial) for trial in good]))
        return tuple(self._in_users_sign(t) for t, is_in in zip(good, front, strict=True) if is_in)

    @property
    @locked
    def is_exhausted(self) -> bool:
        """Whether every configuration of a finite space was asked for, so that any repeats one."""
        n = self.space.n_configurations
        if self._queue or self._settings.allow_duplicates or not self.space.n_parameters:
            return False
        if n is None or len(self._trials) < n:
            return False
        inside = [t.configuration for t in self._trials if self.space.contains(t.configuration)]
        return len(set(keys(self.space.to_units(inside)))) >= n

    @locked
    def is_running(self, number: int) -> bool:
        """Say whether a trial was asked for and has not ended."""
        return 0 <= number < len(self._trials) and self._is_running(number)

    @locked
    def explain(self, number: int) -> Explanation:
        """Say where a configuration came from and what was expected of it.

        Args:
            number: What `ask` returned; a trial that was added is of source "unknown".

        Raises:
            ValueError: If there is no such trial.
        """
        self._require_number(number)
        return self._explanations.get(number, Explanation("unknown"))

    @locked
    def history(self) -> list[Trial]:
        """Return the trials as the recommender sees them: larger values are better.

        What has reported, and has not ended by itself, counts by what it reported.
        """
        return as_of_now(self._trials, self._stopped)

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
        if not first and self._recommender.about_priors:
            self._logger.info(self._recommender.about_priors)
        while self._queue and len(self._trials) < first + count:
            self._begin(self._completed(self._queue[0]), Explanation("enqueued"))
            # Only now: what is interrupted before must not lose what the user wants.
            del self._queue[0]
            self.stats["enqueued"] += 1
        missing = first + count - len(self._trials)
        if missing:
            for suggestion in self._suggest(missing, {}):
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
        require(len(self._signs) == 1, "report", number, "for one objective")
        level = number_of(step)
        require(_is_number(step) and math.isfinite(level), "step", step, "a finite number")
        require(_is_number(value), "value", value, "a number")
        rungs = {**trial.rungs, level: self._signs[0] * number_of(value)}
        self._trials[number] = replace(trial, rungs=rungs)

    @locked
    def tell(
        self,
        number: int,
        value: float | Sequence[float] | None,
        *,
        constraints: Mapping[str, float] | None = None,
    ) -> None:
        """Report the final value of a trial; None or NaN says that it failed.

        Args:
            number: What `ask` returned.
            value: The value; one for each objective, if there are several.
            constraints: How far each constraint is violated, by name; at most 0 where it is met,
                NaN where that is unknown.

        Raises:
            ValueError: If there is no such trial, it has been told before, or a value is no
                number.
        """
        trial = self._running(number)
        checked = _checked_constraints(constraints)
        ended = self._ended(trial.configuration, value, None, trial.rungs)
        self._trials[number] = replace(ended, constraints=checked)

    @locked
    def stop(self, number: int, *, constraints: Mapping[str, float] | None = None) -> None:
        """Say that a running trial was stopped, by a scheduler for example.

        It counts by what it has reported: as complete if no trial has got further, otherwise as
        pruned, which is compared with others at the steps that it reported. Without any report it
        has failed.

        Raises:
            ValueError: If there is no such trial, or it has ended.
        """
        trial, checked = self._running(number), _checked_constraints(constraints)
        self._trials[number] = replace(trial, state=TrialState.PRUNED, constraints=checked)
        self._stopped.add(number)

    @locked
    def restart(self, number: int) -> None:
        """Say that a trial runs again from its beginning, whatever became of it before.

        Raises:
            ValueError: If there is no such trial.
        """
        self._require_number(number)
        self._trials[number] = Trial(self._trials[number].configuration, TrialState.RUNNING)
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
    ) -> None:
        """Add a trial that was evaluated elsewhere.

        Args:
            configuration: Values of all active parameters; a number out of its parameter's range
                is kept, with one warning.
            value: Its value, or values; None or NaN if it has none.
            state: What became of it; None: complete, or failed without a value.
            rungs: Intermediate values by step.
            constraints: See `tell`.

        Raises:
            ValueError: If the configuration is not one of the space, or a value no number.
        """
        self._check(configuration)
        missing = self._missing(configuration)
        require(not missing, "configuration", dict(configuration), f"complete, it lacks {missing}")
        for step, reported in (rungs or {}).items():
            require(_is_number(step) and _is_number(reported), "rungs", rungs, "numbers by step")
        sign, checked = self._signs[0], _checked_constraints(constraints)
        signed = {number_of(step): sign * number_of(v) for step, v in (rungs or {}).items()}
        ended = self._ended(dict(configuration), value, state, signed)
        self._trials.append(replace(ended, constraints=checked))

    # ---- the rest

    def _feasible_trials(self) -> list[Trial]:
        """Return the complete trials that meet all constraints, larger values are better."""
        history = self.history()
        has_ended = (trial.state is not TrialState.RUNNING for trial in self._trials)
        return [
            trial
            for trial, is_over, is_met in zip(history, has_ended, feasible(history), strict=True)
            if is_over and is_met and trial.state is TrialState.COMPLETE
        ]

    def _suggest(self, count: int, fixed: Mapping[str, Any]) -> list[Suggestion]:
        suggestions = self._recommender.suggest(
            self.history(), count, index=len(self._trials), fixed=fixed
        )
        for suggestion in suggestions:
            if suggestion.source in ANNOUNCEMENTS and suggestion.source not in self._warned:
                self._warned.add(suggestion.source)
                self._logger.info(ANNOUNCEMENTS[suggestion.source].format(len(self._trials)))
        return suggestions

    def _completed(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is wanted, with the model's choice of what is missing."""
        if not self._missing(wanted):
            return {**self.space.constants, **self._active(wanted)}
        domains = self.space.domains
        fixed = {name: value for name, value in wanted.items() if domains[name].contains(value)}
        return {**self._suggest(1, fixed)[0].configuration, **wanted}

    def _begin(self, configuration: Mapping[str, Any], explanation: Explanation) -> None:
        self._explanations[len(self._trials)] = explanation
        self._trials.append(Trial(configuration, TrialState.RUNNING))

    def _check(self, configuration: Mapping[str, Any]) -> None:
        """Refuse what no parameter can have; warn once of what is only out of range."""
        domains = self.space.domains
        unknown = [name for name in configuration if name not in domains]
        require(not unknown, "configuration", unknown, f"made of {[*domains]}")
        for name, value in configuration.items():
            domain = domains[name]
            if name in self.space.constants:
                constant = self.space.constants[name]
                is_same = match_key(value) == match_key(constant)
                require(is_same, name, value, f"{constant!r}, which is a constant")
                continue
            try:
                domain.to_unit(value)
            except ValueError as error:
                raise ValueError(f"{name} must be in {domain}: {error}") from error
            if not domain.contains(value) and name not in self._warned:
                self._warned.add(name)
                self._logger.warning(
                    "%s=%r is not in %r: it counts as evaluated, but is never suggested.",
                    name,
                    value,
                    domain,
                )

    def _missing(self, configuration: Mapping[str, Any]) -> list[str]:
        """Return the parameters that a configuration should have and has not."""
        optional = self.space.optional
        active = self._active_names(configuration)
        return [name for name in active if name not in configuration and name not in optional]

    def _active(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        active = self._active_names(configuration)
        return {name: value for name, value in configuration.items() if name in active}

    def _active_names(self, configuration: Mapping[str, Any]) -> list[str]:
        active = self.space.active(self.space.to_units([configuration]))[0]
        return [name for name, is_on in zip(self.space.names, active, strict=True) if is_on]

    def _ended(
        self,
        configuration: Mapping[str, Any],
        value: float | Sequence[float] | None,
        state: TrialState | None,
        rungs: Mapping[float, float],
    ) -> Trial:
        values = self._signed(value)
        has_value = values is not None and not any(math.isnan(one) for one in values)
        if state is None:
            state = TrialState.COMPLETE if has_value else TrialState.FAILED
        if values is None or not has_value or state is not TrialState.COMPLETE:
            return Trial(configuration, state, None, rungs)
        if len(values) == 1:
            return Trial(configuration, state, values[0], rungs)
        return Trial(configuration, state, None, rungs, values)

    def _signed(self, value: float | Sequence[float] | None) -> tuple[float, ...] | None:
        """Return what was told, one number for each objective, larger is better."""
        if value is None:
            return None
        if len(self._signs) == 1:
            require(_is_number(value), "value", value, "a number or None")
            return (self._signs[0] * number_of(value),)
        wanted = f"{len(self._signs)} numbers, one for each objective, or None"
        is_list = isinstance(value, Sequence) and len(value) == len(self._signs)
        require(is_list and all(map(_is_number, value)), "value", value, wanted)  # type: ignore[arg-type]
        return tuple(
            sign * number_of(one)
            for sign, one in zip(self._signs, value, strict=True)  # type: ignore[arg-type]
        )

    def _is_running(self, number: int) -> bool:
        return self._trials[number].state is TrialState.RUNNING

    def _require_number(self, number: int) -> None:
        require(0 <= number < len(self._trials), "number", number, "a number that ask returned")

    def _running(self, number: int) -> Trial:
        self._require_number(number)
        require(self._is_running(number), "number", number, "a trial not told before")
        return self._trials[number]

    def _in_users_sign(self, trial: Trial) -> Trial:
        value = None if trial.value is None else self._signs[0] * trial.value
        rungs = {step: self._signs[0] * reported for step, reported in trial.rungs.items()}
        objectives = tuple(
            sign * one for sign, one in zip(self._signs, trial.objectives, strict=False)
        )
        return replace(trial, value=value, rungs=rungs, objectives=objectives)


def _values(trial: Trial) -> tuple[float, ...]:
    return trial.objectives or (() if trial.value is None else (trial.value,))


def _checked_constraints(constraints: Mapping[str, float] | None) -> dict[str, float]:
    checked = dict(constraints or {})
    is_numbers = all(_is_number(value) for value in checked.values())
    require(is_numbers, "constraints", constraints, "numbers by name")
    return {str(name): number_of(value) for name, value in checked.items()}


def _is_number(value: object) -> bool:
    return is_real(value)
