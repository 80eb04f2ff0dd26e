"""What a proposer is asked, what it answers, and the interface that all proposers have."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.schedule import Turn
from dre_plugins.space.base import Units
from dre_plugins.space.seen import Seen

Purpose: TypeAlias = Literal[
    "objective-weights", "space-filling", "ensemble", "universal-prior", "past-studies"
]


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
