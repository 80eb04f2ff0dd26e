"""Who proposes a suggestion: start-up points, the ensemble, or the universal prior.

All that this depends on is read from the trials once (`Evidence`) and from what the user chose
(`TurnRules`); `proposer_for` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dre_plugins.recommend.lists import final_value, last_step
from dre_plugins.recommend.trials import ConstraintState, Trial, TrialState, constraint_states

Proposer: TypeAlias = Literal["random", "model", "universal-prior"]

# Space-filling trials from which random weights learn enough to be worth asking.
N_STARTUP_TRIALS = 10
# The universal prior is worth asking earlier, in its turns between them (docs/decisions.md).
N_UNIVERSAL_STARTUP_TRIALS = 5
# Beside a prior of past tasks, which knows better for a while (docs/decisions.md).
N_PRIOR_TRIALS = 10
# Of a study's suggestions, one of so many is the universal prior's.
UNIVERSAL_EVERY = 2
# Of so many consecutive suggestions the last half, one of each proposer, may be led into a branch
# of a conditional space: however many choices there are, half is left to the acquisition.
BRANCH_PERIOD = 4


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold what the trials of a study tell about whose turn it is.

    Args:
        n_ended: Trials that have ended.
        can_rank: Whether any of them can be ranked, in a space that has parameters.
        n_objectives: How many objectives there are.
        is_violated: Whether any trial is known to violate a constraint.
    """

    n_ended: int
    can_rank: bool
    n_objectives: int
    is_violated: bool

    @classmethod
    def of(
        cls, history: Sequence[Trial], *, n_objectives: int, has_parameters: bool = True
    ) -> Evidence:
        """Return what a history tells, of trials with a single value each."""
        is_any = any(
            final_value(trial) is not None or last_step(trial) is not None for trial in history
        )
        return cls(
            n_ended=sum(trial.state is not TrialState.RUNNING for trial in history),
            can_rank=has_parameters and is_any,
            n_objectives=n_objectives,
            is_violated=ConstraintState.VIOLATED in constraint_states(history),
        )


@dataclass(frozen=True, slots=True)
class TurnRules:
    """Hold what the user chose about turns.

    Args:
        n_startup_trials: Trials that must have ended before the ensemble is asked, 0 or more;
            None takes 10, or 0 with a prior of past tasks.
        has_prior: Whether there is a prior of past tasks.
        is_universal: Whether the universal prior is wanted.
        preset_turns: Whether the preset has turns for it.
    """

    n_startup_trials: int | None = None
    has_prior: bool = False
    is_universal: bool = True
    preset_turns: bool = True

    @property
    def n_before_ensemble(self) -> int:
        """Return how many trials must end before the ensemble is asked."""
        if self.n_startup_trials is not None:
            return self.n_startup_trials
        return 0 if self.has_prior else N_STARTUP_TRIALS

    @property
    def n_before_universal(self) -> int:
        """Return how many trials must end before the universal prior is asked."""
        if self.has_prior:
            return max(self.n_startup_trials or 0, N_PRIOR_TRIALS)
        if self.n_startup_trials is not None:
            return self.n_startup_trials
        return N_UNIVERSAL_STARTUP_TRIALS


def proposer_for(index: int, evidence: Evidence, rules: TurnRules) -> Proposer:
    """Return who proposes the suggestion of a number: start-up points are "random"."""
    if is_universal_due(index, evidence, rules) and not hindrance(evidence, rules):
        return "universal-prior"
    knows_beforehand = rules.has_prior and rules.n_before_ensemble == 0
    is_ready = evidence.can_rank and evidence.n_ended >= rules.n_before_ensemble
    return "model" if knows_beforehand or is_ready else "random"


def is_universal_due(index: int, evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether a turn is the universal prior's unless there is a `hindrance`."""
    is_ready = evidence.can_rank and evidence.n_ended >= rules.n_before_universal
    return rules.is_universal and is_ready and is_universal_turn(index)


def is_universal_turn(index: int) -> bool:
    """Return whether the suggestion of a number is in a turn of the universal prior."""
    return index % UNIVERSAL_EVERY == UNIVERSAL_EVERY - 1


def is_branch_turn(index: int) -> bool:
    """Return whether the suggestion of a number may be led into a branch, see `branches`."""
    return index % BRANCH_PERIOD >= BRANCH_PERIOD // 2


def hindrance(evidence: Evidence, rules: TurnRules) -> str | None:
    """Return why the universal prior takes no turns although it is wanted; None if it does.

    With several objectives and under violated constraints, turns are level with the ensemble
    alone (docs/decisions.md).
    """
    if not rules.preset_turns:
        return "the preset has none"
    if evidence.n_objectives > 1:
        return "there are several objectives"
    if evidence.is_violated:
        return "trials violate constraints"
    return None
