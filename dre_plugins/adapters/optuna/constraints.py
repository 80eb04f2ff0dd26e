"""The constraints of trials: as Optuna stores them, and as a `DRESampler` states them."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TypeAlias

from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.attributes import TrialReporter, set_attribute
from dre_plugins.adapters.optuna.conversion import SUCCEEDED
from dre_plugins.engine.settings import require
from dre_plugins.recommend.interruptions import is_from_signal_handler
from dre_plugins.recommend.trials import Trial, number_of
from dre_plugins.space.base import is_real

ConstraintsFunc: TypeAlias = Callable[[FrozenTrial], Sequence[float]]

CONSTRAINTS_KEY = "constraints"  # where Optuna's own samplers keep them
UNKNOWN = (math.nan,)  # violations of a trial that may violate some constraint


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Return how far a trial violates each constraint, by name; at most 0 where it is met.

    A value that is no number becomes NaN, which means unknown.
    """
    try:
        violations = getattr(trial, "constraints", None)  # since Optuna 5
        if violations is None:
            violations = named(trial.system_attrs.get(CONSTRAINTS_KEY) or ())
    except TypeError:  # another program may have put anything there
        return {}
    return {name: number_of(violation) for name, violation in violations.items()}


def named(violations: Sequence[float]) -> dict[str, float]:
    """Return violations by name, which for those of a function is the position."""
    return {str(place): violation for place, violation in enumerate(violations)}


class StatedConstraints:
    """State the constraints of trials by a function; keep those that could not be written."""

    def __init__(self, function: ConstraintsFunc | None, reporter: TrialReporter) -> None:
        is_function = function is None or callable(function)
        require(is_function, "constraints_func", function, "a function of a trial, or None")
        self._function = function
        self._reporter = reporter
        self._unwritten: dict[tuple[str, int], dict[str, float]] = {}

    def evaluate(self, study: Study, trial: FrozenTrial) -> FrozenTrial:
        """Evaluate and write the constraints of a trial, and return the trial with them.

        A failure does not end the study; the constraints are unknown then, and not written, as
        Optuna's own samplers take no NaN.
        """
        if self._function is None:
            return trial
        stated = copy(trial)
        try:
            # Integers that no float can hold become infinite.
            violations = [number_of(v) if is_real(v) else float(v) for v in self._function(trial)]
        except Exception as error:
            if is_from_signal_handler(error):
                raise
            self._reporter.stats["constraint_errors"] += 1
            self._reporter.log(
                study,
                "<constraints>",
                f"constraints_func failed in trial {trial.number}, whose constraints count as "
                f"unknown ({type(error).__name__}: {error}). Further failures are only counted.",
            )
            stated.system_attrs = {CONSTRAINTS_KEY: UNKNOWN, **trial.system_attrs}
            return stated
        problem = set_attribute(study, trial, CONSTRAINTS_KEY, violations)
        if problem:
            self._unwritten[study.study_name, trial.number] = named(violations)
        text = (
            "The constraints of trial {number} cannot be stored ({problem}): this sampler "
            "remembers them, other processes and later ones do not know them."
        )
        self._reporter.warn_if(problem, study, trial, text)
        stated.system_attrs = {**trial.system_attrs, CONSTRAINTS_KEY: violations}
        return stated

    def known(
        self, study: Study, trials: Sequence[FrozenTrial], history: Sequence[Trial]
    ) -> list[Trial]:
        """Return a history with the constraints that could not be written.

        Where others are missing, they are unknown: the function has failed, or another process
        could not write them.
        """
        if self._function is None:
            return [*history]
        complete = [*history]
        for place, trial in enumerate(trials):
            violations = self._unwritten.get((study.study_name, trial.number))
            # A list of none is stated as well.
            is_stated = CONSTRAINTS_KEY in trial.system_attrs or history[place].constraints
            if violations is None and trial.state in SUCCEEDED and not is_stated:
                violations = named(UNKNOWN)
            if violations is not None:
                complete[place] = replace(history[place], constraints=violations)
        return complete
