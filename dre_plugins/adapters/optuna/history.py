"""What the trials of a study were converted to, kept for those that have ended.

A trial that has ended never changes, and the storages of Optuna hand out the same object for it
as long as they live. So the object itself tells whether what is kept is still true: another study
of the same name has other objects, and so has a storage that makes them anew, whose trials are
converted anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.conversion import numbers_of, trial_of
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.base import match_key


@dataclass(frozen=True, slots=True)
class _Ended:
    """A trial that has ended, its parameters in internal representation, and its conversion."""

    source: FrozenTrial
    numbers: Mapping[str, float]
    trial: Trial | None


class History:
    """Convert the trials of a study, those that have ended only once.

    One study and one search space are kept at a time, so that memory is bounded by the study that
    goes on; whoever takes turns between studies pays for conversion each time. Threads may share
    it: entries are only added, and at worst converted twice. A copy begins empty.
    """

    def __init__(self) -> None:
        self._kept: tuple[Hashable, dict[int, _Ended]] = (None, {})

    def __reduce__(self) -> tuple[type[History], tuple[()]]:
        return History, ()

    def readable(
        self,
        trials: Sequence[FrozenTrial],
        search_space: Mapping[str, BaseDistribution],
        directions: Sequence[StudyDirection],
    ) -> tuple[list[FrozenTrial], list[Trial], str]:
        """Return the trials that can be read, the recommender's view of them, and what is wrong.

        Args:
            trials: Trials that are not waiting.
            search_space: See `trial_of`.
            directions: See `trial_of`.

        Returns:
            Trials, their views, and of the first one that is left out, because it has a value
            which its parameter cannot have, a sentence that says so; empty if there is none.
        """
        views = self.converted(trials, search_space, directions)
        read = [trial for trial, view in zip(trials, views, strict=True) if view is not None]
        left_out = [trial for trial, view in zip(trials, views, strict=True) if view is None]
        problem = _problem(left_out[0], search_space, directions) if left_out else ""
        return read, [view for view in views if view is not None], problem

    def converted(
        self,
        trials: Sequence[FrozenTrial],
        search_space: Mapping[str, BaseDistribution],
        directions: Sequence[StudyDirection],
    ) -> list[Trial | None]:
        key = _key(search_space, directions)
        kept_key, kept = self._kept
        if key != kept_key:
            kept = {}
            self._kept = key, kept
        history: list[Trial | None] = []
        for trial in trials:
            ended = kept.get(trial.number)
            if ended is not None and ended.source is trial:
                history.append(ended.trial)
                continue
            history.append(_readable(trial, search_space, directions))
            if trial.state.is_finished():
                if ended is not None:  # of another study, of which nothing may stay behind
                    kept = {}
                    self._kept = key, kept
                kept[trial.number] = _Ended(trial, numbers_of(trial), history[-1])
        return history

    def numbers(self, trial: FrozenTrial) -> Mapping[str, float]:
        """Return the parameters of a trial in internal representation, see `numbers_of`."""
        ended = self._kept[1].get(trial.number)
        return ended.numbers if ended is not None and ended.source is trial else numbers_of(trial)


def _readable(
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    directions: Sequence[StudyDirection],
) -> Trial | None:
    try:
        return trial_of(trial, search_space, directions)
    except ValueError:
        return None


def _problem(
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    directions: Sequence[StudyDirection],
) -> str:
    try:
        trial_of(trial, search_space, directions)
    except ValueError as error:
        return f"Nothing is learnt of trial {trial.number}: {error}, which it cannot be."
    return ""


def _key(
    search_space: Mapping[str, BaseDistribution], directions: Sequence[StudyDirection]
) -> Hashable:
    """Return what a conversion depends on beside the trial.

    The range of a number is not part of it: a define-by-run study may move it at every trial.
    """
    decoding = tuple((name, _kind_of(distribution)) for name, distribution in search_space.items())
    return decoding, tuple(directions)


def _kind_of(distribution: BaseDistribution) -> Hashable:
    if isinstance(distribution, CategoricalDistribution):
        return match_key(distribution.choices)
    return type(distribution)
