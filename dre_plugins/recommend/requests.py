"""What a proposer is asked, what it answers, and the interface that all proposers have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.schedule import Turn
from dre_plugins.space.base import Mask, Units
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen

Purpose: TypeAlias = Literal[
    "objective-weights", "space-filling", "ensemble", "universal-prior", "past-studies"
]


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold a call of `Recommender.suggest`, or the part of it that shares a fit.

    A call for 20 suggestions has two batches. In the first, of 16, each choice is a fantasy of the
    proposers before the next choice is made. In the second, of 4, those 16 are pending trials, and
    the choices share a fit: they keep a distance from each other instead.
    """

    evidence: Evidence
    numbers: range  # of the suggestions
    rule: Rule  # which configurations may be tried
    fixed: Units  # coordinates that are given `[P]`, NaN where they are free
    seed: int  # of the study
    # canonical coordinates of all configurations that may be suggested `[C, P]`; None: any
    candidates: Units | None = None
    # trials that stand for all that agree with them `[N]`, see `Recommender.suggest`
    is_whole: Mask | None = None
    # trials whose configurations may not be suggested again `[N]`; None: all
    is_evaluated: Mask | None = None
    shares_fit: bool = False  # whether all suggestions come from one fit
    may_repeat: bool = False  # whether a configuration may be suggested again
    # coordinates `[P]` from a portfolio, by number, NaN where they leave a parameter open
    portfolio: Mapping[int, Units] = field(default_factory=dict)
    learner: str = ""  # whose portfolio it is; empty without one

    def seen(self) -> Seen:
        """Return the configurations that may not be suggested again."""
        if self.may_repeat:
            return Seen()
        units = self.evidence.units
        whole = np.zeros(len(units), dtype=np.bool_)
        evaluated = ~whole
        if self.is_whole is not None:
            whole[: len(self.is_whole)] = self.is_whole
        if self.is_evaluated is not None:
            evaluated[: len(self.is_evaluated)] = self.is_evaluated
        return Seen.of(self.evidence.space, units[evaluated], whole[evaluated])


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
    """Describe a model that chooses candidates (for type checking; do not subclass)."""

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
