"""Who proposes a suggestion.

`proposer_for` is a pure function of the number of the suggestion, of what the trials tell
(`Evidence`) and of what the user chose (`TurnRules`). The first row that applies decides:

===================  ============================================================================
proposer             when
===================  ============================================================================
``universal-prior``  Once 4 trials have ended (10 beside a trained prior), with one objective: odd
                     numbers, and all below 20 without a trained prior where no choice opens
                     branches.
``random``           Until 10 trials have ended and one can be ranked; never with a prior of past
                     tasks. The portfolio of a prior that the study has found by its
                     parameters, then points of the study's Sobol sequence.
``contrast``         With a trained prior of which too little was checked: a space-filling
                     point where the prior may expect little.
``prior``            With a trained prior, until a trial has ended with a value.
``exploration``      Without the universal prior, numbers 2, 5, 8, … while 8 trials have not
                     improved on the incumbent: the ensemble's choice far from all trials.
``model``            Otherwise: the ensemble's choice.
===================  ============================================================================

A prior that a study has found in its memory counts in some even numbers: all others are as without
a trained prior (`transfer.found`).

With `n_startup_trials` given, it replaces the 10 and the 4, and both models take turns from there
on. In a conditional space, numbers 2, 3, 6, 7, … may be led into a branch (`branches`), whoever
proposes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.evidence import Evidence

Turn: TypeAlias = Literal[
    "random", "prior", "model", "contrast", "exploration", "universal-prior", "fallback"
]

# Space-filling trials from which random weights learn enough to be worth asking.
N_STARTUP_TRIALS = 10
# The universal prior is worth asking earlier, and is better alone for a while
# (docs/decisions/start-up-trials.md).
N_UNIVERSAL_STARTUP_TRIALS = 4
N_UNIVERSAL_ALONE = 20
# Beside a trained prior, which knows better for a while (docs/decisions/prior-turns.md).
N_PRIOR_TRIALS = 10
# Of a study's suggestions, one of so many is the universal prior's.
UNIVERSAL_EVERY = 2
# Of so many consecutive suggestions the last half, one of each proposer, may be led into a branch
# of a conditional space: however many choices there are, half is left to the acquisition.
BRANCH_PERIOD = 4
# Trials without a new incumbent after which a study stagnates. Members that are all sure of one
# region never leave it, however long nothing improves (docs/decisions/exploration.md). Where two
# models alternate, exploring gains nothing (lab/2026-11-24-stagnation-guard.md).
EXPLORATION_PATIENCE = 8
# Of the suggestions of a stagnating study, one of so many explores.
EXPLORATION_EVERY = 3
# A contrast is a trial that the trained prior places behind this share of the reference.
# Without any, an agreement among its favourites is chance.
CONTRAST_SHARE = 0.3
# As many contrasts are due as there are entries that the number of trials has reached.
CONTRASTS_DUE = (2, 5, 12)
# A prior that has lost its credit leaves a study that has seen little but its favourites: then as
# many contrasts are due as make a start-up design.
STARTUP_CONTRASTS = 8
# A prior that is trusted less than this has lost its credit.
DISTRUSTED = 0.5


@dataclass(frozen=True, slots=True)
class TurnRules:
    """Hold what the user chose about turns."""

    # before the ensemble is asked; None: 10, or 0 with a prior
    n_startup_trials: int | None = None
    has_prior: bool = False  # whether there is a trained prior
    is_universal: bool = True  # whether the universal prior is wanted
    preset_turns: bool = True  # whether the preset has turns for it
    has_branches: bool = False  # whether a choice decides which parameters there are

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

    @property
    def n_universal_alone(self) -> int:
        """Return the number before which all turns are the universal prior's."""
        takes_turns = self.has_prior or self.has_branches or self.n_startup_trials is not None
        return 0 if takes_turns else N_UNIVERSAL_ALONE


def proposer_for(
    index: int,
    evidence: Evidence,
    rules: TurnRules,
    *,
    needs_contrast: bool = False,
    may_explore: bool = True,
) -> Turn:
    """Return who proposes the suggestion of a number.

    `needs_contrast` says whether the trained prior must be checked, see `is_contrast_due`;
    `may_explore` whether the suggestion may lie anywhere in a space too large to enumerate.
    """
    if has_universal_turn(index, evidence, rules):
        return "universal-prior"
    if not is_ensemble_ready(evidence, rules):
        return "random"
    if needs_contrast:
        return "contrast"
    if not evidence.has_lists:
        return "prior"
    may_explore = may_explore and not (rules.is_universal and rules.preset_turns)
    return "exploration" if may_explore and is_exploration_due(index, evidence) else "model"


def asks_model(numbers: Iterable[int], evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether any of the suggestions with these numbers is made by a model."""
    return is_ensemble_ready(evidence, rules) or any(
        has_universal_turn(number, evidence, rules) for number in numbers
    )


def is_ensemble_ready(evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether the ensemble is asked where the universal prior has no turn."""
    knows_beforehand = rules.has_prior and rules.n_before_ensemble == 0
    is_ready = evidence.can_rank and evidence.n_ended >= rules.n_before_ensemble
    return knows_beforehand or is_ready


def has_universal_turn(index: int, evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether a turn is the universal prior's."""
    return is_universal_due(index, evidence, rules) and not hindrance(evidence, rules)


def is_universal_due(index: int, evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether a turn is the universal prior's unless there is a `hindrance`."""
    is_ready = evidence.can_rank and evidence.n_ended >= rules.n_before_universal
    is_turn = is_universal_turn(index) or index < rules.n_universal_alone
    return rules.is_universal and is_ready and is_turn


def is_universal_turn(index: int) -> bool:
    """Return whether a number is the universal prior's where both models take turns."""
    return index % UNIVERSAL_EVERY == UNIVERSAL_EVERY - 1


def is_branch_turn(index: int) -> bool:
    """Return whether the suggestion of a number may be led into a branch, see `branches`."""
    return index % BRANCH_PERIOD >= BRANCH_PERIOD // 2


def hindrance(evidence: Evidence, rules: TurnRules) -> str | None:
    """Return why the universal prior takes no turns although it is wanted; None if it does.

    With several objectives, turns are level with the ensemble alone (docs/decisions/one-list.md).
    """
    if not rules.preset_turns:
        return "the preset is the ensemble alone"
    if evidence.n_objectives > 1:
        return "there are several objectives"
    return None


def is_exploration_due(index: int, evidence: Evidence) -> bool:
    """Return whether an ensemble's suggestion should look far from all trials.

    Not with several objectives, where each suggestion has another incumbent, nor under violated
    constraints, which are least known far from all trials (docs/decisions/exploration.md).
    """
    if evidence.n_objectives > 1 or evidence.is_violated or evidence.n_since_incumbent is None:
        return False
    is_turn = index % EXPLORATION_EVERY == EXPLORATION_EVERY - 1
    return is_turn and evidence.n_since_incumbent >= EXPLORATION_PATIENCE


def is_contrast_due(expected: NDArray[np.float64], trust: float) -> bool:
    """Return whether the next trial should be one of which the prior expects little.

    `expected` is the prior's rank of each trial, unfinished ones included, as a share of the
    reference `[N]`, 0 = best.
    """
    n_contrasts = int((expected > CONTRAST_SHARE).sum())
    n_due = sum(len(expected) >= due for due in CONTRASTS_DUE)
    return n_contrasts < (STARTUP_CONTRASTS if trust < DISTRUSTED else n_due)
