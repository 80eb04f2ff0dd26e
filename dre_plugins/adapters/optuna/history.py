"""Optuna's trials in the recommender's form, cached for ended trials.

An ended trial never changes, and Optuna's storages return the same object for it as long as they
live. So the identity of the object validates the cache: another study of the same name has other
objects. A storage that creates new objects at each read is converted anew.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import Study as Study, StudyDirection  # pictures are of a Study, too
from optuna.trial import FrozenTrial, TrialState as OptunaState

from dre_plugins.adapters.common.options import DURATION, cost_from
from dre_plugins.adapters.optuna import conversion
from dre_plugins.adapters.optuna.attributes import constraints_of, stored_trials
from dre_plugins.checks import require
from dre_plugins.recommend.trials import Trial, number_of
from dre_plugins.space.base import Mask, match_key
from dre_plugins.space.search_space import SearchSpace


@dataclass(frozen=True, slots=True)
class _Ended:
    """A trial that has ended, its parameters in internal representation, and its conversion."""

    source: FrozenTrial
    numbers: Mapping[str, float]
    converted: Trial | str  # or why there is none


class History:
    """Convert the trials of a study, those that have ended only once.

    One study and one search space are cached at a time, so that memory is bounded by the present
    study. If a sampler alternates between studies, their trials are converted each time. Threads
    may share it: entries are only added, and at worst converted twice. A copy begins empty.
    """

    def __init__(self, cost: str | None = None) -> None:
        self._cost = cost
        self._kept: tuple[Hashable, dict[int, _Ended]] = (None, {})

    def __reduce__(self) -> tuple[type[History], tuple[str | None]]:
        return History, (self._cost,)

    def readable(
        self,
        trials: Sequence[FrozenTrial],
        search_space: Mapping[str, BaseDistribution],
        directions: Sequence[StudyDirection],
    ) -> tuple[list[FrozenTrial], list[Trial], str]:
        """Return the trials that can be converted, their conversions, and a warning.

        The warning is about the first trial that cannot be converted, empty if all can.
        """
        key, (kept_key, kept) = _key(search_space, directions), self._kept
        are_same = all(kept[t.number].source is t for t in trials if t.number in kept)
        if key != kept_key or not are_same:  # another space, or another study of the same name
            kept = {}
        self._kept = key, kept
        read: list[FrozenTrial] = []
        history: list[Trial] = []
        problem = ""
        for trial in trials:
            ended = kept.get(trial.number)
            if ended is None or ended.source is not trial:  # a thread has another study's
                try:
                    converted: Trial | str = trial_of(trial, search_space, directions, self._cost)
                except ValueError as error:
                    converted = str(error)
                ended = _Ended(trial, conversion.internal_numbers(trial), converted)
                if trial.state.is_finished():
                    kept[trial.number] = ended
            if isinstance(ended.converted, Trial):
                read.append(trial)
                history.append(ended.converted)
            else:
                problem = problem or (
                    f"Nothing is learnt from trial {trial.number}: {ended.converted}, which it "
                    "cannot be. Further trials of this kind are not mentioned."
                )
        return read, history, problem

    def numbers(self, trial: FrozenTrial) -> Mapping[str, float]:
        """Return the parameters of a trial in internal representation, see `internal_numbers`."""
        ended = self._kept[1].get(trial.number)
        if ended is not None and ended.source is trial:
            return ended.numbers
        return conversion.internal_numbers(trial)

    def agree(self, trials: Sequence[FrozenTrial], numbers: Mapping[str, float]) -> Mask:
        """Return which trials have each of these numbers, or no value of its parameter `[N]`."""
        agree = [
            all(held.get(name, n) == n for name, n in numbers.items())
            for held in map(self.numbers, trials)
        ]
        return np.array(agree, dtype=np.bool_)


def read(
    trials: Sequence[FrozenTrial], directions: Sequence[StudyDirection]
) -> tuple[SearchSpace, list[FrozenTrial], list[Trial]]:
    """Return the search space of trials, those of them that can be read, and their history.

    Conditions of the search space are learnt from the trials. Its ranges are those of all trials:
    values beyond the newest range, in which a sampler searches, would be clipped.
    """
    distributions = conversion.covering(conversion.union_of_distributions(trials), trials)
    readable, history, _ = History().readable(trials, distributions, directions)
    space, _ = conversion.learnt_space(distributions, readable, history)
    return space, readable, history


def begun_in(study: Study) -> tuple[SearchSpace, list[FrozenTrial], list[Trial]]:
    """Return what `read` does of the trials that have begun, those that have parameters."""
    require(hasattr(study, "directions"), "study", study, "a study of Optuna")
    begun = [trial for trial in stored_trials(study) if trial.state in conversion.STATES]
    space, begun, history = read(begun, study.directions)
    rows = [row for row, converted in enumerate(history) if converted.configuration]
    return space, [begun[row] for row in rows], [history[row] for row in rows]


def trial_of(
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    directions: Sequence[StudyDirection],
    cost: str | None = None,
) -> Trial:
    """Return the recommender's form of a trial that is not waiting, see `configuration_of`."""
    signs = [1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in directions]
    values = (trial.values or []) if trial.state is OptunaState.COMPLETE else []
    if len(values) != len(signs):  # without values, a failure
        values = []
    signed = tuple(sign * number_of(value) for sign, value in zip(signs, values, strict=False))
    is_one = len(signs) == 1
    return Trial(
        configuration=conversion.configuration_of(trial, search_space),
        state=conversion.STATES[trial.state],
        value=signed[0] if is_one and signed else None,
        rungs={
            number_of(step): signs[0] * number_of(value)
            for step, value in trial.intermediate_values.items()
            if math.isfinite(number_of(step))
        },
        objectives=() if is_one else signed,
        constraints=constraints_of(trial),
        cost=cost_of(trial, cost),
    )


def cost_of(trial: FrozenTrial, name: str | None) -> float | None:
    """Return what a trial has cost, in seconds where that is its duration; None if unknown."""
    if name is None:
        return None
    if name != DURATION:
        return cost_from(trial.user_attrs.get(name))
    # Trials that were added by hand begin and end at once: their cost is unknown.
    return None if trial.duration is None else cost_from(trial.duration.total_seconds())


def _key(
    search_space: Mapping[str, BaseDistribution], directions: Sequence[StudyDirection]
) -> Hashable:
    """Return what a conversion depends on beside the trial.

    The range of a number is not part of it: a define-by-run study may move it at every trial.
    """
    kinds = {
        name: match_key(d.choices) if isinstance(d, CategoricalDistribution) else type(d)
        for name, d in search_space.items()
    }
    return tuple(kinds.items()), tuple(directions)
