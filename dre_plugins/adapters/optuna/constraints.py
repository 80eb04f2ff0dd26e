"""Constraints of Optuna's trials: read, and written where a function states them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.attributes import Notes, set_attributes
from dre_plugins.recommend.interruptions import is_from_signal_handler
from dre_plugins.recommend.trials import number_of
from dre_plugins.space.base import is_real

ConstraintsFunc: TypeAlias = Callable[[FrozenTrial], Sequence[float]]

CONSTRAINTS_KEY = "constraints"  # where Optuna's own samplers keep them


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Return how far a trial violates each constraint, by name; at most 0 where it is met.

    What is no number is unknown, NaN.
    """
    try:
        stated = getattr(trial, "constraints", None)  # since Optuna 5
        if stated is None:
            listed = trial.system_attrs.get(CONSTRAINTS_KEY) or ()
            stated = {str(place): violation for place, violation in enumerate(listed)}
    except TypeError:  # another program may have put anything there
        return {}
    return {name: number_of(violation) for name, violation in stated.items()}


def state_constraints(
    function: ConstraintsFunc | None,
    study: Study,
    trial: FrozenTrial,
    stats: Counter[str],
    notes: Notes,
) -> None:
    """Write what a function says of a trial that has ended; what fails must end no study."""
    if function is None:
        return
    try:
        # Integers beyond the floats are infinite.
        violations = [number_of(v) if is_real(v) else float(v) for v in function(trial)]
    except Exception as error:
        if is_from_signal_handler(error):
            raise
        stats["constraint_errors"] += 1
        notes.warn(
            study,
            "<constraints>",
            f"constraints_func failed in trial {trial.number}, whose constraints count as "
            f"unknown ({type(error).__name__}: {error}). Further failures are only counted.",
        )
        return
    problem = set_attributes(study, trial, {CONSTRAINTS_KEY: violations})
    text = "The constraints of trial {number} cannot be stored ({problem}): they are unknown."
    notes.warn_if(problem, study, trial, text)
