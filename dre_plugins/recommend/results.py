"""The results of a study: pure functions over its trials, larger values are better."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dre_plugins.recommend.trials import Trial, TrialState, feasible
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import distinct


def as_ended(history: Sequence[Trial], trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of `trials.observed_trials` that have ended; running ones as they are."""
    return [
        trial if trial.state is TrialState.RUNNING else counted
        for counted, trial in zip(history, trials, strict=True)
    ]


def feasible_positions(history: Sequence[Trial], trials: Sequence[Trial] | None) -> list[int]:
    """Return the positions of the complete trials that meet all constraints and have a value.

    Args:
        history: The trials as they count, see `trials.observed_trials`.
        trials: The same trials in their present states: running ones are left out. None: all have
            ended.
    """
    ended = history if trials is None else as_ended(history, trials)
    states = zip(ended, feasible(history), strict=True)
    return [
        position
        for position, (trial, is_met) in enumerate(states)
        if is_met and trial.state is TrialState.COMPLETE and _has_value(trial)
    ]


def values_of(trial: Trial) -> tuple[float, ...]:
    """Return the values of a trial, one for each objective; an empty tuple without any."""
    return trial.objectives or (() if trial.value is None else (trial.value,))


def _has_value(trial: Trial) -> bool:
    values = values_of(trial)
    return bool(values) and not any(map(math.isnan, values))


def has_tried_all(rule: Rule, trials: Sequence[Trial]) -> bool:
    """Return whether every valid configuration of a finite space is among the trials'."""
    space, n = rule.space, rule.n_configurations
    if not space.n_parameters or n is None or len(trials) < n:
        return False
    inside = [trial.configuration for trial in trials if space.contains(trial.configuration)]
    valid = rule.kept(space.to_units(inside))
    return int(distinct(valid).sum()) >= n
