"""The results of a study: pure functions over its trials, larger values are better."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dre_plugins.engine.settings import require
from dre_plugins.recommend.directions import values_of
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.trials import Trial, TrialState, feasible
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import distinct


def as_ended(history: Sequence[Trial], trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials as they count if they have ended, see `trials.as_of_now`."""
    return [
        trial if trial.state is TrialState.RUNNING else counted
        for counted, trial in zip(history, trials, strict=True)
    ]


def valid_positions(history: Sequence[Trial], trials: Sequence[Trial]) -> list[int]:
    """Return where the complete trials are that meet all constraints and have a value.

    Args:
        history: The trials as they count, see `trials.as_of_now`.
        trials: The same trials as they are: those that still run are left out.
    """
    states = zip(as_ended(history, trials), feasible(history), strict=True)
    return [
        place
        for place, (trial, is_met) in enumerate(states)
        if is_met and trial.state is TrialState.COMPLETE and _has_value(trial)
    ]


def valid_trials(history: Sequence[Trial], trials: Sequence[Trial]) -> list[Trial]:
    """Return the complete trials that meet all constraints and have a value.

    Args:
        history: The trials as they count, see `trials.as_of_now`.
        trials: The same trials as they are: those that still run are left out.
    """
    ended = as_ended(history, trials)
    return [ended[place] for place in valid_positions(history, trials)]


def _has_value(trial: Trial) -> bool:
    values = values_of(trial)
    return bool(values) and not any(map(math.isnan, values))


def best(valid: Sequence[Trial], n_objectives: int) -> Trial:
    """Return the trial of the best value.

    Raises:
        ValueError: If there is none, or there are several objectives.
    """
    require(n_objectives == 1, "best", None, "best_trials where objectives are several")
    require(bool(valid), "best", None, "asked for after a trial is complete and feasible")
    return max(valid, key=lambda trial: trial.value or 0.0)


def best_trials(valid: Sequence[Trial]) -> list[Trial]:
    """Return the trials that no other one beats throughout."""
    if not valid:
        return []
    front = non_dominated(np.array([values_of(trial) for trial in valid]))
    return [trial for trial, is_best in zip(valid, front, strict=True) if is_best]


def has_tried_all(rule: Rule, trials: Sequence[Trial]) -> bool:
    """Return whether every valid configuration of a finite space is among the trials'."""
    space, n = rule.space, rule.n_configurations
    if not space.n_parameters or n is None or len(trials) < n:
        return False
    inside = [trial.configuration for trial in trials if space.contains(trial.configuration)]
    valid = rule.kept(space.to_units(inside))
    return int(distinct(valid).sum()) >= n
