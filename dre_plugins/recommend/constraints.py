"""The constraints of a study, as observed in its trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dre_plugins.recommend.lists import dense_ranks, has_failed, subsample
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Array, Mask, Positions

# Largest number of modelled constraints: of more, similar ones are joined
# (lab/2026-11-24-joined-constraints.md).
MAX_MODELLED = 10


@dataclass(frozen=True, slots=True)
class Constraint:
    """Hold the observed violations of one constraint."""

    trials: Positions  # positions in the history of the trials that state it `[N]`
    violations: Array  # how far they violate it `[N]`; at most 0 is met

    @property
    def is_met(self) -> Mask:
        """Which of the trials meet it `[N]`."""
        return self.violations <= 0.0

    def nearest(self, max_length: int) -> Constraint:
        """Return the constraint with at most `max_length` trials, most of them near the limit.

        Of those that meet it, and of those that violate it, one is kept if there are any.
        """
        sizes = np.abs(self.violations)
        kept = subsample(dense_ranks(-sizes), max_length)
        for side in (self.is_met, ~self.is_met):
            if side.any() and not side[kept].any():
                kept[-1] = np.flatnonzero(side)[sizes[side].argmin()]
        return Constraint(self.trials[kept], self.violations[kept])

    def places(self, n_trials: int) -> Array:
        """Return the place of each trial relative to the limit, by order alone `[n_trials]`.

        It is up to 1 above the limit, down to -1 below it, 0 at the limit and NaN where unknown.
        """
        ranks = dense_ranks([*self.violations, 0.0])
        steps = ranks[:-1] - ranks[-1]
        n_steps = np.where(steps > 0.0, steps.max(), -steps.min())
        places = np.full(n_trials, math.nan)
        places[self.trials] = steps / np.maximum(n_steps, 1.0)
        return places


def constraints_of(history: Sequence[Trial]) -> list[Constraint]:
    """Return the constraints of a history in the order of their names."""
    names = sorted({name for trial in history for name in trial.constraints})
    constraints = []
    for name in names:
        violations = np.array([trial.constraints.get(name, math.nan) for trial in history])
        trials = np.flatnonzero(~np.isnan(violations))
        if len(trials):
            constraints.append(Constraint(trials, violations[trials]))
    return constraints


def success_of(history: Sequence[Trial]) -> Constraint:
    """Return success as a constraint: all trials that have ended meet or violate it."""
    ended = [i for i, trial in enumerate(history) if trial.state is not TrialState.RUNNING]
    violations = [1.0 if has_failed(history[i]) else -1.0 for i in ended]
    return Constraint(np.array(ended, dtype=np.intp), np.array(violations))


def merged_constraints(constraints: Sequence[Constraint], n_trials: int) -> list[Constraint]:
    """Return the constraints; of more than `MAX_MODELLED`, similar ones are joined."""
    if len(constraints) <= MAX_MODELLED:
        return [*constraints]
    from scipy.cluster.hierarchy import fcluster, linkage  # takes long to import

    places = np.stack([constraint.places(n_trials) for constraint in constraints])
    tree = linkage(np.nan_to_num(places), method="ward")
    groups = fcluster(tree, MAX_MODELLED, criterion="maxclust")
    return [_merged(places[groups == group]) for group in dict.fromkeys(groups.tolist())]


def _merged(places: Array) -> Constraint:
    """Return the constraint that is met where all are, of `Constraint.places` `[J, N]`.

    It is violated by the sum of the violations, and met by the narrowest margin.
    """
    excess = np.nansum(np.maximum(places, 0.0), axis=0)
    violations = np.where(excess > 0.0, excess, places.max(axis=0))
    trials = np.flatnonzero(~np.isnan(violations))
    return Constraint(trials, violations[trials])
