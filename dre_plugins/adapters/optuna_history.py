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

from dre_plugins.adapters.optuna_conversion import numbers_of, trial_of
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.base import match_key


@dataclass(frozen=True, slots=True)
class _Ended:
    """A trial that has ended, its parameters in internal representation, and its conversion."""

    source: FrozenTrial
    numbers: Mapping[str, float]
    trial: Trial


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

    def converted(
        self,
        trials: Sequence[FrozenTrial],
        search_space: Mapping[str, BaseDistribution],
        directions: Sequence[StudyDirection],
    ) -> list[Trial]:
        """Return the recommender's view of trials that are not waiting, see `trial_of`."""
        key = _key(search_space, directions)
        kept_key, kept = self._kept
        if key != kept_key:
            kept = {}
            self._kept = key, kept
        history = []
        for trial in trials:
            known = kept.get(trial.number)
            if known is not None and known.source is trial:
                history.append(known.trial)
                continue
            history.append(trial_of(trial, search_space, directions))
            if trial.state.is_finished():
                if known is not None:  # of another study, of which nothing may stay behind
                    kept = {}
                    self._kept = key, kept
                kept[trial.number] = _Ended(trial, numbers_of(trial), history[-1])
        return history

    def numbers(self, trial: FrozenTrial) -> Mapping[str, float]:
        """Return the parameters of a trial in internal representation, see `numbers_of`."""
        known = self._kept[1].get(trial.number)
        return known.numbers if known is not None and known.source is trial else numbers_of(trial)


def _key(
    search_space: Mapping[str, BaseDistribution], directions: Sequence[StudyDirection]
) -> Hashable:
    """Return what a conversion depends on beside the trial.

    The range of a number is not part of it: a define-by-run study may move it at every trial.
    """
    decoding = tuple(
        (name, match_key(one.choices) if isinstance(one, CategoricalDistribution) else type(one))
        for name, one in search_space.items()
    )
    return decoding, tuple(directions)
