"""Which branch of a conditional space the next suggestion must look into.

A categorical parameter that decides whether others are active opens a branch with each of its
values. A surrogate that saw two poor configurations of a branch expects little of all others, and
a greedy acquisition never corrects it. So branches are compared by how they develop, as rising
bandits compare learners (Li et al., AAAI 2020), but by order only: a branch is beaten once its
best value is below that of another one and its last ⌈log₂ n⌉ trials, of n, did not improve it.
While any is not, every second suggestion goes to the one of them that has the fewest trials. As n
grows, a beaten branch is tried again ever more rarely. Figures: docs/decisions/branch-guard.md.

Notation: see docs/architecture.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.lists import final_values
from dre_plugins.recommend.trials import Trial, TrialState, feasible
from dre_plugins.space.search_space import SearchSpace

Units = NDArray[np.float64]

# Trials that may fail to improve a branch before it is beaten, at least.
MIN_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class _Branch:
    """Hold what is known of one value of a choice."""

    column: int  # column of the choice
    place: float  # coordinate of the value
    n_trials: int  # how many trials have it, running ones included
    best: float  # its best value, minus infinity without any
    n_since: int  # how many of its trials have ended since the best one began


def branch_to_try(
    space: SearchSpace,
    history: Sequence[Trial],
    units: Units,
    may_hold: Callable[[Units], bool],
) -> Units | None:
    """Return coordinates `[P]` that lead into the branch with the fewest trials, NaN elsewhere.

    None says that all branches but the leading one are beaten, or the space has none. Trials come
    in the order in which they began; `may_hold` says whether a branch, coordinates `[P]`, has any
    configuration that may be tried.
    """
    if not space.choices:
        return None
    values = _values(history)
    has_ended = np.array([trial.state is not TrialState.RUNNING for trial in history], dtype=bool)
    best_first = units[np.argsort(-values, kind="stable")]
    live: list[_Branch] = []
    beaten: list[Units] = []
    for column in space.choices:
        branches = _branches(space, column, units[:, column], values, has_ended)
        leader = max(branches, key=lambda branch: (branch.best, branch.n_trials))
        patience = _patience(sum(branch.n_trials for branch in branches))
        for branch in branches:
            if branch.best < leader.best and branch.n_since >= patience:
                beaten.append(space.leading_to(column, branch.place, best_first))
            elif branch.n_trials < leader.n_trials:
                live.append(branch)
    for branch in sorted(live, key=lambda branch: branch.n_trials):
        led = space.leading_to(branch.column, branch.place, best_first)
        is_beaten = any(is_within(led[None], other)[0] for other in beaten)
        if not is_beaten and may_hold(led):
            return led
    return None


def is_within(units: Units, branch: Units) -> NDArray[np.bool_]:
    """Say which canonical coordinates `[N, P]` lie in the branch that `branch` `[P]` leads to."""
    given = ~np.isnan(branch)
    return np.asarray((units[:, given] == branch[given]).all(axis=1))


def _values(history: Sequence[Trial]) -> NDArray[np.float64]:
    """Return final values `[N]`, minus infinity for trials without one and infeasible ones."""
    values = final_values(history)
    return np.where(feasible(history) & ~np.isnan(values), values, -math.inf)


def _branches(
    space: SearchSpace,
    column: int,
    places: Units,
    values: NDArray[np.float64],
    has_ended: NDArray[np.bool_],
) -> list[_Branch]:
    """Return what is known of each value of the choice in a column."""
    domain = space.domains[space.names[column]]
    found = []
    for place in domain.centres(np.arange(domain.n_values or 0, dtype=np.float64)).tolist():
        rows = np.flatnonzero(places == place)
        best = values[rows].max(initial=-math.inf)
        # The first of its best trials; all of them count where none has a value.
        first = int(np.argmax(values[rows])) + 1 if best > -math.inf else 0
        n_since = int(has_ended[rows[first:]].sum())
        found.append(_Branch(column, place, len(rows), best, n_since))
    return found


def _patience(n_trials: int) -> int:
    """Return how many trials may fail to improve a branch, of all that made the choice."""
    return max(MIN_PATIENCE, math.ceil(math.log2(max(2, n_trials))))
