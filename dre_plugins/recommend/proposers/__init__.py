"""What proposes configurations: space-filling points, the ensemble, and the universal prior.

To add one, write a class with the two methods of `Proposer`, give it turns in `schedule.py`, and
make it in `recommender.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.schedule import Turn
from dre_plugins.space.seen import Seen

Units = NDArray[np.float64]


# Who serves each turn; all others are the ensemble's.
SERVED_BY: Mapping[Turn, str] = {
    "random": "space-filling",
    "contrast": "space-filling",
    "fallback": "space-filling",
    "universal-prior": "universal-prior",
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Say what is wanted of one call of `Recommender.suggest`, or of 16 suggestions of it.

    Args:
        evidence: What is known of the trials.
        numbers: Numbers of the suggestions.
        fixed: Coordinates that are given `[P]`, NaN where they are free.
        candidates: Canonical coordinates of what may be suggested `[C, P]`; None: all there is.
        is_whole: Which of the trials that were given stand for all configurations that agree with
            them `[N]`, see `define_by_run`; None: none.
        shares_fit: Whether all suggestions come from one fit.
    """

    evidence: Evidence
    numbers: range
    fixed: Units
    candidates: Units | None = None
    is_whole: NDArray[np.bool_] | None = None
    shares_fit: bool = False


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
        prior_weight: Weight of the trained priors that a contrast is to check.
    """

    index: int
    turn: Turn
    seen: Seen
    fixed: Units
    branch: Units | None = None
    taken: Units | None = None
    prior_weight: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Hold a chosen candidate.

    Args:
        units: Coordinates `[P]`, NaN or anything for inactive parameters.
        is_new: Whether the configuration was never evaluated.
        turn: What chose it, and what for.
        predicted_rank: Mean rank against the reference, 1 = best; None without a model.
        spread: Standard error of that rank; None without a model.
        n_reference: Number of reference points; None without a model.
        prior_weight: Share of an ensemble's members that came from a trained prior.
    """

    units: Units
    is_new: bool
    turn: Turn
    predicted_rank: float | None = None
    spread: float | None = None
    n_reference: int | None = None
    prior_weight: float | None = None


class Proposer(Protocol):
    """Describe what chooses candidates (for type checking; do not subclass)."""

    def fantasize(self, pending: Units) -> None:
        """Take the expected outcome of pending trials `[U, P]` for granted from now on."""

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest acquisition."""


class Proposers:
    """Fit proposers when they are asked, and tell all of them the same fantasies.

    Args:
        fit: How each is made, by name.
    """

    def __init__(self, fit: Mapping[str, Callable[[], Proposer]]) -> None:
        self._fit = fit
        self._fitted: dict[str, Proposer] = {}
        self._pending: list[Units] = []
        self._n_told: Counter[str] = Counter()

    def fantasize(self, pending: Units) -> None:
        """Let all proposers know of pending trials, canonical coordinates `[U, P]`."""
        if len(pending):
            self._pending.append(pending)

    def propose(self, request: Request) -> Choice:
        """Return the choice of the proposer whose turn it is, in the branch if it has any left."""
        proposer = self._up_to_date(SERVED_BY.get(request.turn, "ensemble"))
        choice = proposer.propose(request)
        if request.branch is not None and not choice.is_new:
            choice = proposer.propose(replace(request, branch=None))
        return choice

    def _up_to_date(self, name: str) -> Proposer:
        if name not in self._fitted:
            self._fitted[name] = self._fit[name]()
        for pending in self._pending[self._n_told[name] :]:
            self._fitted[name].fantasize(pending)
        self._n_told[name] = len(self._pending)
        return self._fitted[name]
