"""Which branch of a conditional space the next suggestion must come from.

Each value of a categorical parameter that decides whether others are active is a branch. After two
poor configurations of a branch, a surrogate expects little of the whole branch, and a greedy
acquisition never corrects that. So branches are compared by their progress, as rising bandits
compare learners (Li et al., AAAI 2020), but by order only: a branch is beaten once its best value
is below another branch's and its last ⌈log₂ n⌉ trials, of n, did not improve it. While a branch
other than the leading one is not beaten, every second suggestion goes to the one with the fewest
trials. As n grows, a beaten branch is tried again ever more rarely. Figures:
docs/decisions/branch-guard.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dre_plugins.recommend.lists import final_values
from dre_plugins.recommend.trials import Trial, TrialState, constraint_states, may_be_feasible
from dre_plugins.space.base import Mask, Units
from dre_plugins.space.search_space import SearchSpace

# Smallest number of trials without improvement after which a branch is beaten
# (lab/2026-11-23-branches.md).
MIN_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class _Branch:
    """Hold the progress of one branch: a value of a choice."""

    column: int  # column of the choice
    place: float  # coordinate of the value
    n_trials: int  # number of trials with it, running ones included
    best: float  # its best value, minus infinity without any
    n_since: int  # number of its trials that have ended since its best one began


def branch_to_try(
    space: SearchSpace, history: Sequence[Trial], units: Units, may_hold: Callable[[Units], bool]
) -> Units | None:
    """Return coordinates `[P]` that lead into the branch with the fewest trials, NaN elsewhere.

    None means that all branches but the leading one are beaten, or that the space has none. Trials
    are in the order in which they began. `may_hold` says whether a branch, given by coordinates
    `[P]`, has any valid configuration.
    """
    if not space.choices:
        return None
    values = final_values(history)
    may_be_best = may_be_feasible(constraint_states(history), ~np.isnan(values))
    values = np.where(may_be_best, values, -math.inf)
    has_ended = np.array([trial.state is not TrialState.RUNNING for trial in history], dtype=bool)
    best_first = units[np.argsort(-values, kind="stable")]
    live: list[_Branch] = []
    beaten: list[Units] = []
    for column in space.choices:
        branches = _branches(space, column, units[:, column], values, has_ended)
        leader = max(branches, key=lambda branch: (branch.best, branch.n_trials))
        n_trials = sum(branch.n_trials for branch in branches)
        patience = max(MIN_PATIENCE, math.ceil(math.log2(max(2, n_trials))))
        for branch in branches:
            if branch.best < leader.best and branch.n_since >= patience:
                beaten.append(space.leading_to(column, branch.place, best_first))
            elif branch.n_trials < leader.n_trials:
                live.append(branch)
    for branch in sorted(live, key=lambda branch: branch.n_trials):
        coordinates = space.leading_to(branch.column, branch.place, best_first)
        is_beaten = any(is_within(coordinates[None], other)[0] for other in beaten)
        if not is_beaten and may_hold(coordinates):
            return coordinates
    return None


def is_within(units: Units, branch: Units) -> Mask:
    """Say which canonical coordinates `[N, P]` lie in the branch that `branch` `[P]` leads to."""
    is_set = ~np.isnan(branch)
    return np.asarray((units[:, is_set] == branch[is_set]).all(axis=1))


def preferring(branch: Units | None, units: Units, eligible: Mask) -> Mask:
    """Return which eligible trials `[N]` lie in a branch `[P]`, all eligible ones if none does."""
    if branch is None:
        return eligible
    within: Mask = eligible & is_within(units, branch)
    return within if within.any() else eligible


def _branches(
    space: SearchSpace, column: int, places: Units, values: Units, has_ended: Mask
) -> list[_Branch]:
    """Return the progress of each value of the choice in a column."""
    domain = space.domains[space.names[column]]
    branches = []
    for place in domain.centres(np.arange(domain.n_values or 0, dtype=np.float64)).tolist():
        rows = np.flatnonzero(places == place)
        best = values[rows].max(initial=-math.inf)
        # The first of its best trials; all of them count where none has a value.
        first = int(np.argmax(values[rows])) + 1 if best > -math.inf else 0
        n_since = int(has_ended[rows[first:]].sum())
        branches.append(_Branch(column, place, len(rows), best, n_since))
    return branches
