"""How workers of one Optuna study avoid each other.

Optuna stores a parameter of a running trial when the objective asks for it, long after all were
chosen. So the sampler *claims* a configuration when it is chosen, by a system attribute in
Optuna's internal representation, and then looks whether another trial holds the same. Of two that
do, the later one (by number) moves and the earlier one waits for that; if the other has begun to
use its parameters, it moves itself. The earlier one may have looked before the later began, so
that the later waits for its claim. As in Lamport's bakery, a trial *announces* that it is choosing
before it looks: no other waits for a trial that has not begun to choose, as that one will see what
the others hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_plugins.adapters.optuna.attributes import set_attributes
from dre_plugins.adapters.optuna.conversion import CLAIM_KEY, number_of, numbers_of

# Seconds to wait, in turn, for a later trial to give way and an earlier one to claim; choosing and
# storing take less.
PATIENCE = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
# An earlier trial that has announced a claim, and began that long before, is no longer choosing:
# its worker was killed.
CHOOSING = timedelta(seconds=5)
# Of w workers in conflict one stays at each move, so w - 1 moves settle it.
MAX_MOVES = 20


def announce(study: Study, trial: FrozenTrial) -> str:
    """Let other workers see that a trial is about to choose: its claim is there, and empty."""
    return set_attributes(study, trial, {CLAIM_KEY: ""})


def claim(study: Study, trial: FrozenTrial, numbers: Mapping[str, float]) -> str:
    """Let other workers see what a trial is going to evaluate; see `set_attributes`."""
    return set_attributes(study, trial, {CLAIM_KEY: dict(numbers)})


def conflicting_trials(
    study: Study,
    trial: FrozenTrial,
    numbers: Mapping[str, float],
    search_space: Mapping[str, BaseDistribution] | None,
    held_by: Callable[[FrozenTrial], Mapping[str, float]] = numbers_of,
) -> list[FrozenTrial] | None:
    """Return the study's trials if another one holds what `trial` claims, else None.

    Only parameters of the search space are compared, all of them if it is None. `held_by` returns
    what a trial holds, for all trials of a study faster than `numbers_of`.
    """

    def holds(other: FrozenTrial) -> bool:
        held = held_by(other)
        if search_space is not None:
            held = {name: number for name, number in held.items() if name in search_space}
        return held == numbers

    for pause in PATIENCE:
        time.sleep(pause)
        trials = study.get_trials(deepcopy=False)
        rivals = [other for other in trials if other.number != trial.number and holds(other)]
        if rivals:
            is_settled = any(other.params or other.number < trial.number for other in rivals)
        else:
            # Independent parameters are chosen one by one, the first at any time: none is awaited.
            is_settled = search_space is None or not any(_is_choosing(t, trial) for t in trials)
        if is_settled:
            break
    return trials if rivals else None


def unclaimed(
    study: Study,
    trial: FrozenTrial,
    name: str,
    distribution: BaseDistribution,
    values: Iterable[Any],
    held_by: Callable[[FrozenTrial], Mapping[str, float]],
) -> tuple[Any, int, str]:
    """Claim values of a parameter of a trial, one after the other, until no other trial has all.

    The last value, and there must be one, is taken in any case.

    Returns:
        The value, how many others were in conflict, and why a claim was not written, if so.
    """
    so_far, n_conflicts, problem = numbers_of(trial), 0, ""
    for value in values:
        chosen = value
        if n_conflicts == MAX_MOVES:
            break
        numbers = {**so_far, name: number_of(distribution, value)}
        problem = claim(study, trial, numbers) or problem
        if conflicting_trials(study, trial, numbers, None, held_by) is None:
            break
        n_conflicts += 1
    return chosen, n_conflicts, problem


def _is_choosing(other: FrozenTrial, trial: FrozenTrial) -> bool:
    """Return whether an earlier trial may be about to claim what `trial` has claimed."""
    return (
        other.state is TrialState.RUNNING
        and other.number < trial.number
        and not other.params
        and other.system_attrs.get(CLAIM_KEY) == ""  # announced
        and other.datetime_start is not None
        and trial.datetime_start is not None
        # Zones, which other programs may have written, cannot be compared with none.
        and trial.datetime_start.replace(tzinfo=None) - other.datetime_start.replace(tzinfo=None)
        < CHOOSING
    )
