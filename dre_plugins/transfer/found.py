"""Priors that a study has found by itself, in its memory or by its parameters: when they count.

Both take even suggestions only: odd ones are in the turns of the universal prior, which finds most
of what a study gains in its first ten trials, so that a prior that misleads takes the place of
space-filling points only (lab/2026-11-24-memory-harm.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.ensemble.trust import agreement
from dre_plugins.recommend.lists import final_value, has_failed
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.schedule import N_STARTUP_TRIALS, is_universal_turn
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.spaces.alignment import align

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

Array: TypeAlias = NDArray[np.float64]

# Random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256
# Fewer trials judge no past task: of two, a third of the related ones would be left out.
MIN_JUDGED = 4
# Nearest evaluations of a past task that tell what it expects of a configuration.
N_NEIGHBOURS = 5
# Trials confirm a prior if their concordance is that many standard errors above chance
# (lab/2026-11-24-auto-harm.md).
CONFIRMED = 1.5
# Count suggestions that do without past studies, or without the prior of the learner.
CONTRADICTED, UNCONFIRMED = "memory_contradicted", "prior_unconfirmed"


class FadingPrior:
    """Start from those past tasks that the trials of a study do not contradict.

    Tasks are judged by the first 4, 8, 16, … trials that have ended, so that a study trains few
    priors. Which are kept is a function of the trials only (lab/2026-11-24-memory-fading.md).

    Args:
        whole: The prior of all tasks.
        tasks: What was evaluated on each.
        train: Returns the prior of some of them, None if there is none.
    """

    def __init__(
        self, whole: Prior, tasks: MetaDataset, train: Callable[[MetaDataset], Prior | None]
    ) -> None:
        self.whole = whole
        self._tasks = tasks
        self._train = train
        everything = tuple(range(len(tasks)))
        # By the places of the tasks.
        self._priors: dict[tuple[int, ...], Prior | None] = {everything: whole, (): None}
        self._judged: tuple[SearchSpace, list[Trial], tuple[int, ...]] | None = None

    def on(self, space: SearchSpace) -> AlignedPrior:
        """Return the prior of all tasks for a search space, see `Prior.on`."""
        return self.whole.on(space)

    def for_turns(
        self, space: SearchSpace, history: Sequence[Trial], numbers: range, stats: Counter[str]
    ) -> tuple[Prior | None, int]:
        """Return the prior of the tasks that are kept, and how many suggestions start from it.

        Args:
            space: The search space of the study.
            history: Its trials, larger values are better.
            numbers: Numbers of the suggestions.
            stats: Counters of the study.
        """
        n_turns = _n_even(numbers)
        if not n_turns:
            return None, 0
        kept = self._kept(space, history)
        if kept not in self._priors:
            tasks = tuple(self._tasks.tasks[place] for place in kept)
            self._priors[kept] = self._train(replace(self._tasks, tasks=tasks))
        prior = self._priors[kept]
        if prior is None:
            stats[CONTRADICTED] += n_turns
        return prior, 0 if prior is None else n_turns

    def _kept(self, space: SearchSpace, history: Sequence[Trial]) -> tuple[int, ...]:
        """Return the places of the tasks that more pairs of trials agree with than contradict."""
        ended = _ended(history)
        trials = ended[: 2 ** len(ended).bit_length() // 2] if len(ended) >= MIN_JUDGED else []
        if self._judged is None or self._judged[:2] != (space, trials):
            scores = [partial(expected_by, task) for task in self._tasks]
            agreeing = [concordance(expected, space, trials)[0] for expected in scores]
            kept = tuple(place for place, value in enumerate(agreeing) if value >= 0.0)
            self._judged = space, trials, kept
        return self._judged[2]


def expected_by(task: Task, space: SearchSpace, units: Array) -> Array:
    """Return the mean rank of a past task's nearest evaluations `[N]`, larger is better.

    Args:
        task: The past task.
        space: The search space of a study.
        units: Canonical coordinates in it `[N, P]`.

    Raises:
        ValueError: If the two spaces have no parameter in common.
    """
    from scipy.spatial import cKDTree  # takes long to import

    values = np.where(task.failed, -math.inf, task.values)
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(units))
    values = values[known]
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, "right")
    # What is inactive lies in the middle. Features would tell categories so far apart that numbers
    # hardly count: related and misleading tasks of XGBoost were told apart less often.
    neighbours = cKDTree(np.nan_to_num(task.units[known], nan=0.5))
    places = np.nan_to_num(align(space, task.space).convert(units), nan=0.5)
    nearest = [*range(1, min(N_NEIGHBOURS, len(ordered)) + 1)]
    distances, rows = neighbours.query(places, nearest)
    weights = 1.0 / np.maximum(distances, 1e-9)
    mean: Array = (weights * ranks[rows]).sum(1) / weights.sum(1)
    return mean


def turns_of_learner(
    prior: Prior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
) -> int:
    """Return how many suggestions start from the prior of a learner, the others without it.

    Names tell less than past studies do, so that the prior must be proven: it has the first
    suggestion, and of the first ten, of which the others are space-filling points, further ones
    while the trials confirm it (lab/2026-11-24-auto-harm.md).

    Args:
        prior: What the evaluations of the learner taught.
        space: See `FadingPrior.turns`, as the other arguments.
    """
    if 0 in numbers:
        return 1
    n_turns = _n_even(range(numbers.start, min(numbers.stop, N_STARTUP_TRIALS)))
    if not n_turns:
        return 0
    agreeing, error = concordance(prior.scores, space, history)
    if agreeing >= CONFIRMED * error:
        return n_turns
    stats[UNCONFIRMED] += n_turns
    return 0


def _n_even(numbers: range) -> int:
    return sum(not is_universal_turn(number) for number in numbers)


def concordance(
    scores: Callable[[SearchSpace, Array], Array], space: SearchSpace, history: Sequence[Trial]
) -> tuple[float, float]:
    """Return how far the trials of a study agree with what past tasks lead to expect.

    It is a function of the trials only: further ones may change it.

    Args:
        scores: Returns what is expected of configurations, see `Prior.scores`.
        space: The search space of the study.
        history: Its trials, larger values are better; those without a value count if they failed.

    Returns:
        Concordance and its standard error, see `agreement`; nothing to compare gives 0 and
        infinity.
    """
    nothing = 0.0, math.inf
    ended = _ended(history)
    if len(ended) < 2:
        return nothing
    drawn = np.random.default_rng(0).random((N_REFERENCE, space.n_parameters))
    observed = space.to_units([trial.configuration for trial in ended])
    try:
        found = scores(space, np.concatenate([space.canonical(drawn), observed]))
    except ValueError:  # no parameter in common so far
        return nothing
    reference, expected = found[:N_REFERENCE], found[N_REFERENCE:]
    shares = (reference[None, :] > expected[:, None]).mean(axis=1)
    finals = [final_value(trial) for trial in ended]
    values = np.array([-math.inf if value is None else value for value in finals])
    return agreement(shares, values)


def _ended(history: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in history if final_value(trial) is not None or has_failed(trial)]
