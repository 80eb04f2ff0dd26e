"""The trials of a study in the recommender's terms.

The same trials occur in two sequences: `trials` have their present states, and in a `history` they
are as they count, running ones by their reports so far (`observed_trials`). `Observed` is made of
the former and has the latter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from dre_plugins.space.base import Mask


class TrialState(str, Enum):
    """State of a trial."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trial:
    """Hold a configuration that was evaluated, is running, or was stopped.

    Larger values are better. The trials that an `AskTell` returns have the values that it was
    told instead.

    Args:
        configuration: Parameter values by name; inactive parameters are absent.
        state: State of the trial.
        value: Final value. `None` or NaN on a complete trial means that it failed; infinities are
            ranked like any other value.
        rungs: Intermediate values by step (resource).
        objectives: Final values of several objectives; then `value` is None. A NaN among them
            means that the trial failed.
        constraints: How far each constraint is violated, by name; at most 0 where it is met. It is
            unknown where it is absent or NaN.
        cost: Cost of the trial, above 0, in any unit, such as seconds; None: unknown.
    """

    configuration: Mapping[str, Any]
    state: TrialState
    value: float | None = None
    rungs: Mapping[float, float] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    cost: float | None = None


def number_of(value: Any) -> float:
    """Return a reported value as a float, of whatever numeric type it is.

    Integers that no float can hold are infinite; anything that is no number is NaN.
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        return math.nan  # RuntimeError: a tensor of several elements


class ConstraintState(str, Enum):
    """Say whether a trial meets all constraints of its study."""

    MET = "met"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


def constraint_states(history: Sequence[Trial]) -> list[ConstraintState]:
    """Return whether each trial meets all constraints that any trial of the history states.

    A value above 0 violates. Otherwise a constraint that is absent or NaN leaves it unknown. In a
    history without constraints all trials meet them.
    """
    names = {name for trial in history for name in trial.constraints}
    if not names:
        return [ConstraintState.MET] * len(history)
    return [_constraint_state(trial, names) for trial in history]


def _constraint_state(trial: Trial, names: Collection[str]) -> ConstraintState:
    violations = [trial.constraints.get(name, math.nan) for name in names]
    if any(violation > 0.0 for violation in violations):
        return ConstraintState.VIOLATED
    if any(math.isnan(violation) for violation in violations):
        return ConstraintState.UNKNOWN
    return ConstraintState.MET


def feasible(history: Sequence[Trial]) -> Mask:
    """Return which trials are known to meet all constraints `[N]`, see `constraint_states`."""
    states = constraint_states(history)
    return np.array([state is ConstraintState.MET for state in states], dtype=np.bool_)


def may_be_feasible(states: Sequence[ConstraintState], candidates: Mask) -> Mask:
    """Return which candidates `[N]` are known to meet all constraints.

    If none is, these are the candidates whose constraints are unknown. There is a state for each
    trial `[N]`.
    """
    for wanted in (ConstraintState.MET, ConstraintState.UNKNOWN):
        eligible: Mask = candidates & np.array([state is wanted for state in states], np.bool_)
        if eligible.any():
            return eligible
    return np.zeros_like(candidates)


def observed_trials(trials: Sequence[Trial], stopped: Collection[int] = ()) -> list[Trial]:
    """Return the trials with running ones that have reported as if they were stopped now.

    Such a trial has failed if its last value is NaN, and is pruned if another one has reported a
    later step. Otherwise it is complete with its last value. Trials at `stopped` positions, which
    a scheduler has ended, count in the same way. A running trial is unchanged if it has no report,
    or lacks steps before its last one, which may be folds or problem instances in any order.
    """
    going = [trial for trial in trials if trial.state is not TrialState.FAILED]
    furthest = max((step for trial in going for step in trial.rungs), default=0.0)
    complete = (trial.rungs for trial in trials if trial.state is TrialState.COMPLETE)
    fullest = max(complete, key=len, default={})
    return [
        _stopped_now(trial, furthest)
        if trial.rungs
        and (
            number in stopped
            or (trial.state is TrialState.RUNNING and not _has_gaps(trial, fullest))
        )
        else trial
        for number, trial in enumerate(trials)
    ]


def _has_gaps(trial: Trial, fullest: Collection[float]) -> bool:
    """Return whether a trial lacks steps of `fullest` before its last one, and has no others.

    See lab/2026-11-27-optuna-ecosystem.md.
    """
    last = max(trial.rungs)
    has_known = all(step in fullest for step in trial.rungs)
    return has_known and sum(step <= last for step in fullest) > len(trial.rungs)


def _stopped_now(trial: Trial, furthest: float) -> Trial:
    last = max(trial.rungs)
    if math.isnan(trial.rungs[last]):
        return replace(trial, state=TrialState.FAILED)
    if last < furthest:
        return replace(trial, state=TrialState.PRUNED)
    return replace(trial, state=TrialState.COMPLETE, value=trial.rungs[last])


def as_ended(history: Sequence[Trial], trials: Sequence[Trial]) -> list[Trial]:
    """Return trials as they count in a history of `observed_trials`, running ones as they are."""
    return [
        trial if trial.state is TrialState.RUNNING else counted
        for counted, trial in zip(history, trials, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Observed:
    """Hold the trials of a study as they count, and which of them may be the best."""

    history: Sequence[Trial]  # see `observed_trials`
    # positions of the complete trials that meet all constraints and have a value; a running trial
    # is none of them, whatever it has reported
    valid: Sequence[int]

    @classmethod
    def of(cls, trials: Sequence[Trial], stopped: Collection[int] = ()) -> Observed:
        """Return what is observed of trials in their present states, see `observed_trials`."""
        history = observed_trials(trials, stopped)
        states = zip(as_ended(history, trials), feasible(history), strict=True)
        valid = [
            position
            for position, (trial, is_met) in enumerate(states)
            if is_met and trial.state is TrialState.COMPLETE
            if (values := values_of(trial)) and not any(map(math.isnan, values))
        ]
        return cls(history, valid)

    @property
    def valid_trials(self) -> list[Trial]:
        """Return the trials at valid positions."""
        return [self.history[position] for position in self.valid]


def values_of(trial: Trial) -> tuple[float, ...]:
    """Return the values of a trial, one for each objective; an empty tuple without any."""
    return trial.objectives or (() if trial.value is None else (trial.value,))
