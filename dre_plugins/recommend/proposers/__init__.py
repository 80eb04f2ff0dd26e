"""What proposes configurations: space-filling points, the ensemble, and the universal prior.

To add one, write a class with the two methods of `Proposer`, give it turns in `schedule.py`, and
make it in `surrogates.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.schedule import Turn
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen

Units = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Say what is wanted of one call of `Recommender.suggest`, or of 16 suggestions of it.

    Args:
        evidence: What is known of the trials.
        numbers: Numbers of the suggestions.
        rule: Which configurations may be tried.
        fixed: Coordinates that are given `[P]`, NaN where they are free.
        candidates: Canonical coordinates of what may be suggested `[C, P]`; None: all there is.
        is_whole: Which of the trials that were given stand for all configurations that agree with
            them `[N]`, see `define_by_run`; None: none.
        shares_fit: Whether all suggestions come from one fit.
        may_repeat: Whether a configuration may be suggested again.
    """

    evidence: Evidence
    numbers: range
    rule: Rule
    fixed: Units
    candidates: Units | None = None
    is_whole: NDArray[np.bool_] | None = None
    shares_fit: bool = False
    may_repeat: bool = False

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
    """Say what is wanted of a proposer.

    Args:
        index: Number of the suggestion.
        turn: Whose turn it is, and what for.
        seen: Configurations not to suggest again, unless nothing else is left.
        fixed: Coordinates that are given `[P]`, NaN where they are free.
        branch: Coordinates `[P]` that lead into the branch where the suggestion must lie, NaN
            elsewhere; None: anywhere.
        taken: Canonical coordinates of what the same fit has chosen before `[T, P]`, near which
            nothing is chosen; None where a fit follows each suggestion.
    """

    index: int
    turn: Turn
    seen: Seen
    fixed: Units
    branch: Units | None = None
    taken: Units | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold a chosen candidate.

    Args:
        units: Coordinates `[P]`, NaN or anything for inactive parameters.
        is_new: Whether the configuration was never evaluated.
        explanation: In which turn it was chosen, and what is expected of it.
    """

    units: Units
    is_new: bool
    explanation: Explanation


class Proposer(Protocol):
    """Describe what chooses candidates (for type checking; do not subclass)."""

    def fantasize(self, pending: Units) -> None:
        """Take the expected outcome of pending trials `[U, P]` for granted from now on."""

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest acquisition."""
