"""What follows from the trials of a study, computed once for each suggestion.

This is the only place that decides which trials are pending, which meet the constraints, and which
is the incumbent. Parts that only some proposers need are computed on first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dre_plugins.recommend.branches import preferring
from dre_plugins.recommend.lists import (
    FAILED_RANK,
    TrialList,
    dense_ranks,
    final_value,
    has_failed,
    joint_list,
    last_step,
    repetition_keys,
    subsample,
    trial_lists,
    without_noise,
)
from dre_plugins.recommend.pareto import scalarised_history, single_objective
from dre_plugins.recommend.trials import (
    ConstraintState,
    Trial,
    TrialState,
    constraint_states,
    may_be_feasible,
    observed_trials,
)
from dre_plugins.space.base import Array, Mask, Positions, Units
from dre_plugins.space.search_space import SearchSpace

# Largest number of modelled constraints: of more, similar ones are joined
# (lab/2026-11-24-joined-constraints.md).
MAX_MODELLED = 10


@dataclass(frozen=True)
class Evidence:
    """Hold the trials of a study and what follows from them.

    Larger values are better. Several objectives are scalarised to one value, running trials that
    have reported count as if they were stopped now, and values that differ by noise only are tied.
    """

    space: SearchSpace
    trials: tuple[Trial, ...]
    units: Units  # canonical coordinates of their configurations `[N, P]`
    weights: Array  # weights of the objectives in the scalarised value `[O]`
    failed: str  # what failed trials mean, see `settings.RecommenderSettings`
    max_history: int  # longest list of trials, see `lists.subsample`

    @classmethod
    def of(
        cls,
        space: SearchSpace,
        history: Sequence[Trial],
        *,
        weights: Array,
        failed: str = "model",
        max_history: int = 128,
    ) -> Evidence:
        """Return the evidence of trials in any state, larger values are better.

        A ValueError says that a configuration has a value that its parameter can never have.
        """
        trials = scalarised_history(observed_trials(history), weights)
        units = space.to_units([trial.configuration for trial in trials])
        levelled = without_noise(trials, repetition_keys(units))
        return cls(space, tuple(levelled), units, weights, failed, max_history)

    @property
    def n_objectives(self) -> int:
        """Return the number of objectives."""
        return len(self.weights)

    @cached_property
    def costs(self) -> tuple[Units, Array]:
        """Return the canonical coordinates of trials of known cost `[N, P]`, and costs `[N]`.

        Only the latest complete trials count: a trial that failed or was stopped may have cost
        less than a complete one.
        """
        costs = np.array(
            [t.cost if t.state is TrialState.COMPLETE else None for t in self.trials], dtype=float
        )
        known = np.flatnonzero(~np.isnan(costs))[-self.max_history :]
        return self.units[known], costs[known]

    # ---- states

    @cached_property
    def has_ended(self) -> Mask:
        """Return which trials are not running any more `[N]`."""
        is_running = [trial.state is TrialState.RUNNING for trial in self.trials]
        return ~np.array(is_running, dtype=np.bool_)

    @property
    def n_ended(self) -> int:
        """Return how many trials have ended."""
        return int(self.has_ended.sum())

    @property
    def pending(self) -> Units:
        """Return the canonical coordinates of the trials that still run `[U, P]`."""
        return self.units[~self.has_ended]

    @cached_property
    def constraint_states(self) -> list[ConstraintState]:
        """Return whether each trial meets all constraints, violates one, or is unknown."""
        return constraint_states(self.trials)

    @cached_property
    def violated_constraints(self) -> list[Constraint]:
        """Return the constraints that any trial violates, see `merged_constraints`.

        Success is one of them if failures are modelled.
        """
        constraints = constraints_of(self.trials)
        if self.failed == "model":
            constraints.append(success_of(self.trials))
        violated = [constraint for constraint in constraints if not constraint.is_met.all()]
        return merged_constraints(violated, len(self.trials))

    @cached_property
    def can_rank(self) -> bool:
        """Whether trials can be ranked, in a space that has parameters.

        Trials whose values are all equal cannot, even if others have failed: models would propose
        corners of the space alone (lab/2026-11-25-equal-trials.md).
        """
        n_valued = sum(
            final_value(trial) is not None or last_step(trial) is not None for trial in self.trials
        )
        if not n_valued or not self.space.n_parameters:
            return False
        values = (ranked.ranks[ranked.ranks > FAILED_RANK] for ranked in self.lists)
        differ = any(len(np.unique(ranks)) > 1 for ranks in values)
        return n_valued == 1 or differ or ConstraintState.VIOLATED in self.constraint_states

    # ---- orders

    @cached_property
    def lists(self) -> list[TrialList]:
        """Return the lists that an ensemble ranks, even if only failures, see `trial_lists`."""
        return self._lists_of(self.trials)

    @cached_property
    def objective_lists(self) -> tuple[list[TrialList], ...]:
        """Return the lists of each objective alone; none where there is one objective."""
        if len(self.weights) < 2:
            return ()
        repeats = repetition_keys(self.units)
        return tuple(
            self._lists_of(without_noise(single_objective(self.trials, number), repeats))
            for number in range(len(self.weights))
        )

    @cached_property
    def joint_list(self) -> tuple[TrialList, Array]:
        """Return one list of complete, pruned and failed trials, and its values `[N]`."""
        return joint_list(self.trials, failed=self.failed, max_length=self.max_history)

    def objective_values(self, trials: Positions) -> Array:
        """Return the values of all objectives of trials `[N, O]`, NaN where there is none."""
        none = (np.nan,) * self.n_objectives
        return np.array([self.trials[trial].objectives or none for trial in trials], dtype=float)

    def _lists_of(self, trials: Sequence[Trial]) -> list[TrialList]:
        return trial_lists(trials, failed=self.failed, max_length=self.max_history)

    # ---- incumbents

    @cached_property
    def may_be_incumbent(self) -> Mask:
        """Return which trials of the first list may be the incumbent `[N]`.

        These are the trials with a value that are known to meet all constraints, or, if there is
        none, those whose constraints are unknown. Failed trials count only if no trial has a
        value.
        """
        return self.may_be_incumbent_in(self.lists[0])

    def may_be_incumbent_in(self, ranked: TrialList) -> Mask:
        """Return which trials of any list may be the incumbent `[N]`, see `may_be_incumbent`."""
        has_value = ranked.ranks > FAILED_RANK
        candidates = has_value if has_value.any() else ~has_value
        return may_be_feasible([self.constraint_states[t] for t in ranked.trials], candidates)

    def incumbents(self, branch: Units | None = None) -> Positions:
        """Return the positions of the best trials that may be the incumbent, all of one rank.

        With coordinates `[P]` of a branch, these are trials of that branch if any may be the
        incumbent.
        """
        if not self.lists or not self.may_be_incumbent.any():
            return np.empty(0, dtype=np.intp)
        ranked = self.lists[0]
        eligible = preferring(branch, self.units[ranked.trials], self.may_be_incumbent)
        best: Positions = ranked.trials[eligible & (ranked.ranks == ranked.ranks[eligible].max())]
        return best

    @property
    def n_since_incumbent(self) -> int | None:
        """Return how many trials have ended since the incumbent began; None without one.

        Of several incumbents the first one counts.
        """
        best = self.incumbents()
        return int(self.has_ended[best.min() + 1 :].sum()) if len(best) else None


# ---- constraints


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
