"""Past tasks on a study's search space, and the interface of past studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dre_plugins.space.base import Array, Features, Mask, Units
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.space import Domain


@dataclass(frozen=True, slots=True, eq=False)
class PastTask:
    """Hold the trials of a past task, by the parameters that it shares with a study."""

    name: str
    columns: Sequence[int]  # of these parameters among the features of the study's space
    features: Features  # of the trials, those of the columns, sketched `[N, D]`
    values: Array  # of the trials `[N]`; larger is better
    ranks: Array  # of the trials `[N]`, dense; larger is better
    # coordinates of the best trials in the study's space `[F, P]`, NaN for other parameters
    best: Units
    # features of trials that have ended, sketched `[M, D]`, and which of them have failed `[M]`;
    # empty if no trial of the task has failed
    ended: Features
    failed: Mask


@runtime_checkable
class KnowsParameters(Protocol):
    """Describe what knows parameters that a define-by-run study may ask for later."""

    def knows(self, name: str, domains: Mapping[str, Domain]) -> bool:
        """Return whether it has the parameter of a name.

        The other parameters of the study, which are in `domains`, may tell which learner is tuned.
        """

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the parameters that a define-by-run study has shown, and those to come."""


@runtime_checkable
class PastTasksLike(KnowsParameters, Protocol):
    """Describe the past studies that a study learns from without training (do not subclass)."""

    def tasks_on(self, space: SearchSpace) -> Sequence[PastTask]:
        """Return the tasks that share a parameter with a search space.

        A ValueError says that there are none.
        """

    def summary(self, space: SearchSpace) -> str:
        """Say in one line which parameters of a space they know."""
