"""Who proposes a suggestion, what a proposer is asked, and what it answers.

`proposer_for` is a pure function of the number of the suggestion, the trials (`Evidence`) and the
user's choices (`TurnRules`). The first row that applies decides:

===================  ============================================================================
proposer             when
===================  ============================================================================
``universal-prior``  Once 3 trials have ended (10 beside a trained prior, 2 with past studies):
                     odd numbers, and all below 20 without a trained prior.
``past-studies``     With past studies, until then: numbers 0 and 1, and even ones below 20.
``random``           Until 10 trials have ended and values differ; never with a trained prior.
                     Points of the study's Sobol sequence, the first of which are drawn towards
                     the middle of ranges around 0 and of one that most numbers share
                     (`space.candidates.start_up_point`); with a recognised learner, three of
                     four are from its portfolio.
``contrast``         With a trained prior, while fewer contrasts than are due have tested it: a
                     space-filling point.
``prior``            With a trained prior, until a trial has ended with a value.
``exploration``      Without the universal prior, numbers 2, 5, 8, … if 8 or more trials have not
                     improved on the incumbent: the ensemble's choice far from all trials.
``model``            Otherwise: the ensemble's choice.
===================  ============================================================================

Below number 20, the universal prior adds what past studies expect to gain (`past_gains`), and
while 3 to 11 trials have ended, it reads what they expect. If all of them order the trials
otherwise, suggestions are as without them.

If `n_startup_trials` is given, it replaces the 10, the 3 and the 2, and both models take turns
from there on. In a conditional space, numbers 10, 11, 14, 15, 18, … may be restricted to a branch
(`branches`), whoever proposes them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.space.base import Array, Units
from dre_plugins.space.seen import Seen

Turn: TypeAlias = Literal[
    "random",
    "prior",
    "model",
    "contrast",
    "exploration",
    "universal-prior",
    "past-studies",
    "fallback",
]
Purpose: TypeAlias = Literal[
    "objective-weights", "space-filling", "ensemble", "universal-prior", "past-studies"
]

# Trials that must have ended before an ensemble with random initial weights proposes.
N_STARTUP_TRIALS = 10
# The universal prior is useful earlier, and better alone until the second of these numbers
# (docs/decisions/start-up-trials.md).
N_UNIVERSAL_STARTUP_TRIALS = 3
N_BEFORE_TURNS = 20
# With past studies it proposes when it has two trials to compare them by.
N_PAST_STARTUP_TRIALS = 2
# Numbers of trials that have ended at which it reads what they expect as a feature
# (lab/2026-11-29-what-past-studies-expect.md).
PAST_FEATURE_TRIALS = range(3, 12)
# A trained prior is better than the universal one until then (docs/decisions/prior-turns.md).
N_PRIOR_TRIALS = 10
# The last half of this many consecutive suggestions, one of each proposer, may be restricted to a
# branch of a conditional space; the other half follows the acquisition, whatever the choices.
BRANCH_PERIOD = 4
# Number of the first suggestion that may be restricted to a branch. Before it, studies are better
# if the universal prior chooses among all branches (docs/decisions/branch-guard.md).
N_BEFORE_BRANCHES = 10
# Trials without a new incumbent after which a study stagnates. If all members are certain of one
# region, an ensemble never leaves it (docs/decisions/exploration.md). Where two models alternate,
# exploring gains nothing (lab/2026-11-24-stagnation-guard.md).
EXPLORATION_PATIENCE = 8
# In a stagnating study, one of this many suggestions explores.
EXPLORATION_EVERY = 3
# A contrast is a trial that the trained prior ranks behind this share of the reference. Without
# contrasts, agreement of prior and trials is chance, as all trials are near its favourites.
CONTRAST_SHARE = 0.3
# Numbers of trials at which one more contrast is due; they cost a good prior little
# (docs/decisions/trust.md).
CONTRASTS_DUE = (2, 5, 12)
# Contrasts that are due once the prior is distrusted: the study has seen little but the prior's
# favourites and needs as many as a start-up design has.
STARTUP_CONTRASTS = 8
# A prior whose trust is below this is distrusted.
DISTRUSTED = 0.5


@dataclass(frozen=True, slots=True)
class TurnRules:
    """Hold what decides who proposes, beside number and evidence: mostly choices of the user."""

    # before the ensemble proposes; None: 10, or 0 with a prior
    n_startup_trials: int | None = None
    has_prior: bool = False  # whether there is a trained prior
    has_past_tasks: bool = False  # whether any, without a contradiction by the trials, count
    is_universal: bool = True  # whether the universal prior takes turns

    @property
    def n_before_ensemble(self) -> int:
        """Return how many trials must end before the ensemble proposes."""
        if self.n_startup_trials is not None:
            return self.n_startup_trials
        return 0 if self.has_prior else N_STARTUP_TRIALS

    @property
    def n_before_universal(self) -> int:
        """Return how many trials must end before the universal prior proposes."""
        if self.has_prior:
            return max(self.n_startup_trials or 0, N_PRIOR_TRIALS)
        if self.n_startup_trials is not None:
            return self.n_startup_trials
        return N_PAST_STARTUP_TRIALS if self.has_past_tasks else N_UNIVERSAL_STARTUP_TRIALS


def proposer_for(
    index: int,
    evidence: Evidence,
    rules: TurnRules,
    *,
    needs_contrast: bool = False,
    may_explore: bool = True,
) -> Turn:
    """Return the proposer of the suggestion with number `index`.

    `needs_contrast` says whether the trained prior must be tested, see `is_contrast_due`;
    `may_explore` whether the suggestion may lie anywhere in a space too large to enumerate.
    """
    if has_universal_turn(index, evidence, rules):
        return "universal-prior"
    if not is_ensemble_ready(evidence, rules):
        return "past-studies" if has_past_turn(index, rules) else "random"
    if needs_contrast:
        return "contrast"
    if not evidence.lists:
        return "prior"
    may_explore = may_explore and not rules.is_universal
    return "exploration" if may_explore and is_exploration_due(index, evidence) else "model"


def asks_model(numbers: Iterable[int], evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether any of the suggestions with these numbers is made by a model."""
    return is_ensemble_ready(evidence, rules) or any(
        has_universal_turn(number, evidence, rules) or has_past_turn(number, rules)
        for number in numbers
    )


def is_ensemble_ready(evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether the ensemble can propose where the universal prior has no turn."""
    knows_beforehand = rules.has_prior and rules.n_before_ensemble == 0
    is_ready = evidence.n_ended >= rules.n_before_ensemble and evidence.can_rank
    return knows_beforehand or is_ready


def has_universal_turn(index: int, evidence: Evidence, rules: TurnRules) -> bool:
    """Return whether the universal prior proposes: odd numbers, or all while it is alone."""
    is_ready = evidence.n_ended >= rules.n_before_universal and evidence.can_rank
    is_alone = not rules.has_prior and rules.n_startup_trials is None and index < N_BEFORE_TURNS
    return rules.is_universal and is_ready and (is_alone or index % 2 == 1)


def uses_past_tasks(index: int, rules: TurnRules) -> bool:
    """Return whether the suggestion with this number may use what past studies tell."""
    return rules.has_past_tasks and index < N_BEFORE_TURNS


def reads_past_tasks(evidence: Evidence) -> bool:
    """Return whether the universal prior of one objective reads what past studies expect."""
    return evidence.n_objectives <= 1 and evidence.n_ended in PAST_FEATURE_TRIALS


def has_past_turn(index: int, rules: TurnRules) -> bool:
    """Return whether past studies propose the suggestion, if the universal prior cannot yet."""
    is_turn = index < N_PAST_STARTUP_TRIALS or index % 2 == 0
    return is_turn and not rules.n_startup_trials and uses_past_tasks(index, rules)


def is_branch_turn(index: int) -> bool:
    """Return whether the suggestion with this number may be restricted to a branch."""
    return index >= N_BEFORE_BRANCHES and index % BRANCH_PERIOD >= BRANCH_PERIOD // 2


def is_exploration_due(index: int, evidence: Evidence) -> bool:
    """Return whether an ensemble's suggestion should look far from all trials.

    This is never so with several objectives, where the incumbent differs between suggestions, nor
    if constraints are violated, as feasibility is least certain far from all trials
    (docs/decisions/exploration.md).
    """
    is_off = evidence.n_objectives > 1 or evidence.violated_constraints
    if is_off or evidence.n_since_incumbent is None:
        return False
    is_turn = index % EXPLORATION_EVERY == EXPLORATION_EVERY - 1
    return is_turn and evidence.n_since_incumbent >= EXPLORATION_PATIENCE


def is_contrast_due(expected: Array, trust: float) -> bool:
    """Return whether the next trial should be a contrast.

    `expected` has the prior's rank of each trial, unfinished ones included, as a share of the
    reference `[N]`, 0 = best.
    """
    n_contrasts = int((expected > CONTRAST_SHARE).sum())
    n_due = sum(len(expected) >= due for due in CONTRASTS_DUE)
    return n_contrasts < (STARTUP_CONTRASTS if trust < DISTRUSTED else n_due)


# ---- what a proposer is asked, and what it answers


@dataclass(frozen=True, slots=True)
class Request:
    """Hold what a proposer must know of one suggestion."""

    index: int  # number of the suggestion
    turn: Turn
    seen: Seen  # not to be suggested again, unless nothing else is left
    fixed: Units  # coordinates that are given `[P]`, NaN where they are free
    # coordinates `[P]` of the branch that it must lie in, NaN elsewhere; None: anywhere
    branch: Units | None = None
    # earlier choices of the same fit, to keep away from `[T, P]`; None: each choice has a fit
    taken: Units | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold a chosen candidate."""

    units: Units  # coordinates `[P]`, NaN or anything for inactive parameters
    is_new: bool  # whether the configuration was never evaluated
    explanation: Explanation  # its turn and prediction


class Proposer(Protocol):
    """Describe what chooses configurations of a batch (for type checking; do not subclass)."""

    def fantasize(self, pending: Units) -> None:
        """Add pending trials `[U, P]` at their predicted outcomes, as fantasies."""

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest acquisition."""


def stream(purpose: Purpose, seed: int, index: int) -> np.random.Generator:
    """Return a random generator for one purpose of one suggestion of a study.

    It depends on nothing else, so a resumed study goes on as if it had never stopped.
    """
    key = (get_args(Purpose).index(purpose), index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
