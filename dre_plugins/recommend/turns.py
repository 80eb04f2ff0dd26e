"""Whose turn a suggestion is: start-up points, then the ensemble and the universal prior."""

from __future__ import annotations

from collections.abc import Sequence

from dre_plugins.recommend.lists import final_value, has_failed
from dre_plugins.recommend.trials import Trial, TrialState

# Space-filling trials from which random weights learn enough to be worth asking.
N_STARTUP_TRIALS = 10
# The universal prior is worth asking earlier, in its turns between them (docs/decisions.md).
N_UNIVERSAL_STARTUP_TRIALS = 5
# Beside a prior of past tasks, which knows better for a while (docs/decisions.md).
N_PRIOR_TRIALS = 10
# Of a study's suggestions, one of so many is the universal prior's.
UNIVERSAL_EVERY = 2


def is_universal_turn(index: int) -> bool:
    """Say whether a suggestion of that number is the universal prior's."""
    return index % UNIVERSAL_EVERY == UNIVERSAL_EVERY - 1


def is_ready(history: Sequence[Trial], n_startup_trials: int) -> bool:
    """Say whether so many trials have ended, and any of them can be ranked."""
    n_ended = sum(trial.state is not TrialState.RUNNING for trial in history)
    return n_ended >= n_startup_trials and any(
        final_value(trial) is not None
        or (trial.state is TrialState.PRUNED and not has_failed(trial))
        for trial in history
    )
