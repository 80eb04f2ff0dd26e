"""How workers of one Optuna study avoid each other.

Optuna stores a parameter of a running trial only when the objective asks for it, long after the
sampler has chosen all parameters. So the sampler *claims* a configuration when it is chosen, by a
system attribute in Optuna's internal representation. Then it reads the study again to see whether
another trial has the same. If so, the later trial (by number) chooses another configuration, and
the earlier one waits for that; if the later one has already begun to use its parameters, the
earlier one chooses another. Models that choose at the same time find nearly the same maximum, so
a claim that the model did not know counts as the same if it is nearly the same. The earlier trial
may have read the study before the later one began, so the later one waits for its claim. As in
Lamport's bakery algorithm, a trial *announces* that it is choosing before it reads the study.
Nobody waits for a trial without an announcement, as that trial will see the claims of the others.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_plugins.adapters.optuna.attributes import set_attribute, stored_trials
from dre_plugins.adapters.optuna.conversion import CLAIM_KEY
from dre_plugins.space import Domain, Float, Integer, SearchSpace

# Seconds to wait for a later trial to choose again, and for an earlier one to claim, in turn;
# choosing and storing take less.
PATIENCE = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
# If a trial announced a claim, and began that long before, its worker counts as killed.
CHOOSING = timedelta(seconds=5)
# Of w workers in conflict one stays at each move, so w - 1 moves settle it.
MAX_MOVES = 20
# Of two suggestions made at the same time one is chosen again if all their units differ by less.
# Four workers that asked together were .0002 to .004 apart (lab/2026-11-26-workers-at-once.md).
NEAR = 0.005

# Whether a suggestion repeats another trial.
Repeats: TypeAlias = Callable[[FrozenTrial], bool]
# The parameters of a trial in internal representation, from a cache.
HeldBy: TypeAlias = Callable[[FrozenTrial], Mapping[str, float]]


def announce(study: Study, trial: FrozenTrial) -> str:
    """Announce to other workers that a trial is about to choose, by an empty claim."""
    return set_attribute(study, trial, CLAIM_KEY, "")


def claim(study: Study, trial: FrozenTrial, numbers: Mapping[str, float]) -> str:
    """Show other workers which configuration a trial is going to evaluate."""
    return set_attribute(study, trial, CLAIM_KEY, dict(numbers))


def conflicting_trials(
    study: Study, trial: FrozenTrial, repeats: Repeats, *, waits: bool = True
) -> list[FrozenTrial] | None:
    """Return the study's trials if what a trial has claimed repeats another one, else None.

    It `waits` for earlier trials that may be about to claim, but not where these choose
    independent parameters, which they do at any time.
    """
    for pause in PATIENCE:
        time.sleep(pause)
        trials = stored_trials(study)
        rivals = [other for other in trials if other.number != trial.number and repeats(other)]
        if rivals:
            is_settled = any(other.params or other.number < trial.number for other in rivals)
        else:
            is_settled = not (waits and any(_is_choosing(t, trial) for t in trials))
        if is_settled:
            break
    return trials if rivals else None


def repeats_of(
    numbers: Mapping[str, float],
    space: SearchSpace,
    trials: Sequence[FrozenTrial],
    names: Collection[str],
    held_by: HeldBy,
) -> Repeats:
    """Return a function that says whether a suggestion repeats a trial.

    The model knew the values of the `trials`, so that only the same values repeat them. Any other
    trial is repeated by near values, too. Only parameters with these `names` are compared.
    """
    ended = {trial.number for trial in trials if trial.state.is_finished()}
    read = {trial.number: held_by(trial) for trial in trials if trial.number not in ended}

    def repeats(other: FrozenTrial) -> bool:
        of_trial = held_by(other)
        held = {name: number for name, number in of_trial.items() if name in names}
        is_known = other.number in ended or read.get(other.number) == of_trial
        if is_known or held.keys() != numbers.keys():
            return held == numbers
        return all(_are_near(space.domains.get(n), numbers[n], held[n]) for n in numbers)

    return repeats


def _are_near(domain: Domain | None, number: float, other: float) -> bool:
    # Infinite numbers may have been enqueued.
    if not isinstance(domain, Float | Integer) or not math.isfinite(number - other):
        return number == other
    return abs(domain.to_unit(number) - domain.to_unit(other)) < NEAR


def _is_choosing(other: FrozenTrial, trial: FrozenTrial) -> bool:
    """Return whether an earlier trial may be about to claim what `trial` has claimed."""
    # Zones, which other programs may have written, cannot be compared with none.
    began = [t.datetime_start.replace(tzinfo=None) for t in (other, trial) if t.datetime_start]
    return (
        other.state is TrialState.RUNNING
        and other.number < trial.number
        and not other.params
        and other.system_attrs.get(CLAIM_KEY) == ""  # announced
        and len(began) == 2
        and abs(began[1] - began[0]) < CHOOSING  # either clock may be ahead
    )
