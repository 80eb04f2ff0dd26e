"""Priors that a study has found by itself, in its memory or by its parameters: when they count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dre_plugins.recommend.ensemble.trust import agreement
from dre_plugins.recommend.lists import final_value, has_failed
from dre_plugins.recommend.schedule import is_universal_turn
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# Random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256


def found_turns(
    prior: Prior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
    counter: str,
) -> int:
    """Return how many suggestions start from a prior that was found.

    The others are made as without it. Those are all in the turns of the universal prior, which
    finds most of what a study gains in its first ten trials, so that a prior that misleads takes
    the place of space-filling points only (lab/2026-11-24-memory-harm.md).

    Args:
        prior: What was found.
        space: The search space of the study.
        history: Its trials, larger values are better.
        numbers: Numbers of the suggestions.
        stats: Counters of the study.
        counter: The counter of suggestions that do without it as the trials contradict it.
    """
    n_turns = sum(not is_universal_turn(number) for number in numbers)
    if not n_turns or not contradicts(prior, space, history):
        return n_turns
    stats[counter] += n_turns
    return 0


def contradicts(prior: Prior, space: SearchSpace, history: Sequence[Trial]) -> bool:
    """Say whether the trials of a study contradict what a prior leads to expect.

    They do if more pairs of trials have the opposite order than the expected one. It is a function
    of the trials only: further ones may change the answer.

    Args:
        prior: What past tasks taught.
        space: The search space of the study.
        history: Its trials, larger values are better; those without a value count if they failed.
    """
    ended = [trial for trial in history if final_value(trial) is not None or has_failed(trial)]
    if len(ended) < 2:
        return False
    drawn = np.random.default_rng(0).random((N_REFERENCE, space.n_parameters))
    observed = space.to_units([trial.configuration for trial in ended])
    try:
        scores = prior.scores(space, np.concatenate([space.canonical(drawn), observed]))
    except ValueError:  # no parameter in common so far
        return False
    reference, expected = scores[:N_REFERENCE], scores[N_REFERENCE:]
    shares = (reference[None, :] > expected[:, None]).mean(axis=1)
    finals = [final_value(trial) for trial in ended]
    values = np.array([-math.inf if value is None else value for value in finals])
    concordance, _ = agreement(shares, values)
    return concordance < 0.0
