"""What `constraints_func` says of Optuna's trials, written beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.attributes import Notes, set_attributes
from dre_plugins.adapters.optuna.history import CONSTRAINTS_KEY
from dre_plugins.recommend.interruptions import is_from_signal_handler
from dre_plugins.recommend.trials import Trial, number_of
from dre_plugins.space.base import is_real

ConstraintsFunc: TypeAlias = Callable[[FrozenTrial], Sequence[float]]


class StatedConstraints:
    """Write what a function says of ended trials, and remember what could not be written.

    Args:
        function: Returns how far each constraint is violated, at most 0 where it is met.
        stats: Counters to add to: "constraint_errors".
        notes: Where the user is told.
    """

    def __init__(
        self, function: ConstraintsFunc | None, stats: Counter[str], notes: Notes
    ) -> None:
        self._function = function
        self._stats = stats
        self._notes = notes
        self._unwritten: dict[tuple[str, int], dict[str, float]] = {}

    def state(self, study: Study, trial: FrozenTrial) -> None:
        """Evaluate and write the constraints of a trial; what fails must end no study."""
        if self._function is None:
            return
        try:
            violations = [_real(violation) for violation in self._function(trial)]
        except Exception as error:
            if is_from_signal_handler(error):
                raise
            self._stats["constraint_errors"] += 1
            self._notes.warn(
                study,
                "<constraints>",
                f"constraints_func failed in trial {trial.number}, whose constraints count as "
                f"unknown ({type(error).__name__}: {error}). Further failures are only counted.",
            )
            return
        problem = set_attributes(study, trial, {CONSTRAINTS_KEY: violations})
        if problem:
            named = {str(place): violation for place, violation in enumerate(violations)}
            self._unwritten[study.study_name, trial.number] = named
        text = (
            "The constraints of trial {number} cannot be stored ({problem}): this sampler "
            "remembers them, other processes and later ones do not know them."
        )
        self._notes.warn_if(problem, study, trial, text)

    def added(
        self, study: Study, trials: Sequence[FrozenTrial], history: Sequence[Trial]
    ) -> list[Trial]:
        """Return a history with the constraints that could not be written."""
        if not self._unwritten:
            return [*history]
        violated = [self._unwritten.get((study.study_name, trial.number)) for trial in trials]
        return [
            view if violations is None else replace(view, constraints=violations)
            for view, violations in zip(history, violated, strict=True)
        ]


def _real(violation: float) -> float:
    """Return a violation as a float: integers beyond the floats are infinite.

    Raises:
        TypeError, ValueError: If it is no number.
    """
    return number_of(violation) if is_real(violation) else float(violation)
