"""Priors that a study has found by itself, in its memory or by its parameters: when they count.

Both take even suggestions only: odd ones are in the turns of the universal prior, which finds most
of what a study gains in its first ten trials, so that a prior that misleads takes the place of
space-filling points only (lab/2026-11-24-memory-harm.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dre_plugins.recommend.ensemble.trust import agreement
from dre_plugins.recommend.lists import final_value, has_failed
from dre_plugins.recommend.schedule import N_STARTUP_TRIALS, is_universal_turn
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# Random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256
# Trials confirm a prior if their concordance is that many standard errors above chance
# (lab/2026-11-24-auto-harm.md; weaker tests: lab/2026-11-24-auto-rules-between.md).
CONFIRMED = 1.5
# Count suggestions that do without past studies, or without the prior of the learner.
CONTRADICTED, UNCONFIRMED = "memory_contradicted", "prior_unconfirmed"


def turns_of_memory(
    prior: Prior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
) -> int:
    """Return how many suggestions start from the prior of past studies, the others without it.

    It has none as long as more pairs of trials contradict it than agree.

    Args:
        prior: What past studies taught.
        space: The search space of the study.
        history: Its trials, larger values are better.
        numbers: Numbers of the suggestions.
        stats: Counters of the study.
    """
    n_turns = _n_even(numbers)
    if not n_turns or concordance(prior, space, history)[0] >= 0.0:
        return n_turns
    stats[CONTRADICTED] += n_turns
    return 0


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
        space: See `turns_of_memory`, as the other arguments.
    """
    if 0 in numbers:
        return 1
    n_turns = _n_even(range(numbers.start, min(numbers.stop, N_STARTUP_TRIALS)))
    if not n_turns:
        return 0
    agreeing, error = concordance(prior, space, history)
    if agreeing >= CONFIRMED * error:
        return n_turns
    stats[UNCONFIRMED] += n_turns
    return 0


def _n_even(numbers: range) -> int:
    return sum(not is_universal_turn(number) for number in numbers)


def concordance(prior: Prior, space: SearchSpace, history: Sequence[Trial]) -> tuple[float, float]:
    """Return how far the trials of a study agree with what a prior leads to expect.

    It is a function of the trials only: further ones may change it.

    Args:
        prior: What past tasks taught.
        space: The search space of the study.
        history: Its trials, larger values are better; those without a value count if they failed.

    Returns:
        Concordance and its standard error, see `agreement`; nothing to compare gives 0 and
        infinity.
    """
    nothing = 0.0, math.inf
    ended = [trial for trial in history if final_value(trial) is not None or has_failed(trial)]
    if len(ended) < 2:
        return nothing
    drawn = np.random.default_rng(0).random((N_REFERENCE, space.n_parameters))
    observed = space.to_units([trial.configuration for trial in ended])
    try:
        scores = prior.scores(space, np.concatenate([space.canonical(drawn), observed]))
    except ValueError:  # no parameter in common so far
        return nothing
    reference, expected = scores[:N_REFERENCE], scores[N_REFERENCE:]
    shares = (reference[None, :] > expected[:, None]).mean(axis=1)
    finals = [final_value(trial) for trial in ended]
    values = np.array([-math.inf if value is None else value for value in finals])
    return agreement(shares, values)
