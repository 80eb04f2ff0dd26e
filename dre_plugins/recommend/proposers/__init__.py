"""What proposes configurations: space-filling points, the ensemble, and the universal prior.

To add one, write a class with the two methods of `Proposer`, give it turns in `schedule.py`, and
make it in `surrogates.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.schedule import Turn
from dre_plugins.space.base import Units
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen

Purpose: TypeAlias = Literal["objective-weights", "space-filling", "ensemble", "universal-prior"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Say what is wanted of one call of `Recommender.suggest`, or of 16 suggestions of it."""

    evidence: Evidence
    numbers: range  # of the suggestions
    rule: Rule  # which configurations may be tried
    fixed: Units  # coordinates that are given `[P]`, NaN where they are free
    # canonical coordinates of what may be suggested `[C, P]`; None: all there is
    candidates: Units | None = None
    # which given trials stand for all that agree with them `[N]`, see `Recommender.suggest`
    is_whole: NDArray[np.bool_] | None = None
    shares_fit: bool = False  # whether all suggestions come from one fit
    may_repeat: bool = False  # whether a configuration may be suggested again
    # coordinates `[P]` that a prior has planned, by number, NaN where it says nothing
    planned: Mapping[int, Units] = field(default_factory=dict)

    def seen(self) -> Seen:
        """Return what is not to be suggested again, before the first suggestion."""
        if self.may_repeat:
            return Seen()
        units = self.evidence.units
        whole = np.zeros(len(units), dtype=np.bool_)
        if self.is_whole is not None:
            whole[: len(self.is_whole)] = self.is_whole
        return Seen.of(self.evidence.space, units, whole)


@dataclass(frozen=True, slots=True)
class Request:
    """Say what is wanted of a proposer."""

    index: int  # number of the suggestion
    turn: Turn
    seen: Seen  # not to be suggested again, unless nothing else is left
    fixed: Units  # coordinates that are given `[P]`, NaN where they are free
    # coordinates `[P]` that lead into the branch where it must lie, NaN elsewhere; None: anywhere
    branch: Units | None = None
    # chosen from the same fit before `[T, P]`, near which nothing is chosen; None: each has a fit
    taken: Units | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold a chosen candidate."""

    units: Units  # coordinates `[P]`, NaN or anything for inactive parameters
    is_new: bool  # whether the configuration was never evaluated
    explanation: Explanation  # in which turn it was chosen, and what is expected of it


class Proposer(Protocol):
    """Describe what chooses candidates (for type checking; do not subclass)."""

    def fantasize(self, pending: Units) -> None:
        """Take the expected outcome of pending trials `[U, P]` for granted from now on."""

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest acquisition."""


def stream(purpose: Purpose, seed: int, index: int) -> np.random.Generator:
    """Return the generator of a purpose, of a study with this seed, for a suggestion's number.

    A resumed study goes on as if it had never stopped, and no draw depends on another purpose's.
    """
    key = (get_args(Purpose).index(purpose), index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
