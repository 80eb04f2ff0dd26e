"""Values in the user's sign, and in ours, where larger is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dre_plugins.checks import is_real, require
from dre_plugins.recommend.trials import Trial, TrialState, number_of

SIGNS: Mapping[str, float] = {"maximize": 1.0, "minimize": -1.0}


@dataclass(frozen=True, slots=True)
class Directions:
    """Hold in which direction each objective is better."""

    signs: tuple[float, ...]  # 1 for an objective to maximise, -1 for one to minimise

    @classmethod
    def of(cls, direction: str | Sequence[str]) -> Directions:
        """Return the directions that an argument names; a ValueError says that it names none."""
        directions = [direction] if isinstance(direction, str) else direction
        names = [*directions] if isinstance(directions, Sequence) else []
        is_valid = bool(names) and all(isinstance(n, str) and n in SIGNS for n in names)
        require(is_valid, "direction", direction, "'minimize' or 'maximize', or a list of these")
        return cls(tuple(SIGNS[name] for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """Return "minimize" or "maximize" for each objective."""
        return tuple("maximize" if sign > 0 else "minimize" for sign in self.signs)

    def ended(
        self,
        configuration: Mapping[str, Any],
        value: float | Sequence[float] | None,
        state: TrialState | None,
        rungs: Mapping[float, float],
        constraints: Mapping[str, float] | None,
    ) -> Trial:
        """Return an ended trial with the values that the user told.

        In `rungs` larger is better already. Without a state the trial is complete, or failed if a
        value is None or NaN. A ValueError says that a value is no number, or that there are not as
        many values as objectives.
        """
        checked = checked_constraints(constraints)
        values = self._signed(value)
        has_value = values is not None and not any(map(math.isnan, values))
        if state is None:
            state = TrialState.COMPLETE if has_value else TrialState.FAILED
        names = [state.value for state in TrialState]
        require(state in names, "state", state, f"a TrialState, or one of {names}")
        state = TrialState(state)
        ended = Trial(configuration, state, None, rungs, constraints=checked)
        if values is None or not has_value or state is not TrialState.COMPLETE:
            return ended
        if len(values) == 1:
            return replace(ended, value=values[0])
        return replace(ended, objectives=values)

    def rungs(self, reported: Mapping[float, float]) -> dict[float, float]:
        """Return the reported values by step, larger is better.

        A ValueError says that a step is no finite number, or a value no number.
        """
        require(isinstance(reported, Mapping), "rungs", reported, "numbers by step")
        for step, value in reported.items():
            is_step = is_real(step) and math.isfinite(number_of(step))
            require(is_step and is_real(value), "rungs", reported, "numbers by finite step")
        sign = self.signs[0]
        return {number_of(step): sign * number_of(value) for step, value in reported.items()}

    def reported(self, step: float, value: float) -> dict[float, float]:
        """Return one intermediate value by its step, larger is better; NaN if there is none.

        A ValueError says that the step is no finite number, or the value no number.
        """
        require(is_real(step) and math.isfinite(number_of(step)), "step", step, "a finite number")
        require(is_real(value), "value", value, "a number")
        return {number_of(step): self.signs[0] * number_of(value)}

    def in_users_sign(self, trial: Trial) -> Trial:
        """Return a copy of a trial with the values that were told."""
        value = None if trial.value is None else self.signs[0] * trial.value
        rungs = {step: self.signs[0] * reported for step, reported in trial.rungs.items()}
        pairs = zip(self.signs, trial.objectives, strict=False)
        objectives = tuple(sign * objective for sign, objective in pairs)
        configuration = dict(trial.configuration)
        return replace(
            trial, configuration=configuration, value=value, rungs=rungs, objectives=objectives
        )

    def _signed(self, value: float | Sequence[float] | None) -> tuple[float, ...] | None:
        """Return the values that the user told, larger is better, one for each objective."""
        if value is None:
            return None
        if len(self.signs) == 1:
            require(is_real(value), "value", value, "a number or None")
            return (self.signs[0] * number_of(value),)
        remedy = f"{len(self.signs)} numbers, one for each objective, or None"
        values = [*value] if isinstance(value, (Sequence, np.ndarray)) else []
        is_valid = len(values) == len(self.signs) and all(map(is_real, values))
        require(is_valid, "value", value, remedy)
        pairs = zip(self.signs, values, strict=True)
        return tuple(sign * number_of(objective) for sign, objective in pairs)


def checked_constraints(constraints: Mapping[str, float] | None) -> dict[str, float]:
    """Return how far each constraint is violated; a ValueError says that one is no number."""
    violations = {} if constraints is None else constraints
    are_numbers = isinstance(violations, Mapping) and all(map(is_real, violations.values()))
    require(are_numbers, "constraints", constraints, "numbers by name")
    return {str(name): number_of(value) for name, value in violations.items()}


def checked_cost(cost: float | None) -> float | None:
    """Return the cost of a trial; None if it is unknown: NaN, infinite or 0.

    A ValueError says that it is negative or no number.
    """
    is_cost = cost is None or (is_real(cost) and not number_of(cost) < 0.0)
    require(is_cost, "cost", cost, "a number of at least 0, such as seconds, or None")
    paid = math.nan if cost is None else number_of(cost)
    return paid if 0.0 < paid < math.inf else None
