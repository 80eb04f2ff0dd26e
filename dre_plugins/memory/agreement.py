"""Whether past studies agree: with each other, and with what the present one has observed."""

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
from dre_plugins.transfer.metadata import MetaDataset, Task

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# Mean rank correlation (Kendall's tau) between a study and what the others expect of it. Twelve
# studies of 25 trials reach .42 to .71 on seven sets of related tasks, and at most .06 if their
# values are permuted; of eight, some related ones are no better than permuted ones
# (lab/2026-11-23-memory.md).
MIN_STUDIES = 12
MIN_CORRELATION = 0.2

# Random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256


def have_order_in_common(metadata: MetaDataset) -> bool:
    """Say whether one half of past studies tells anything of the order of the other half's trials.

    Where it does not, parameters of one name mean something else in each study, and a prior would
    lead the next one astray.
    """
    if len(metadata) < MIN_STUDIES:
        return True
    halves = metadata.tasks[0::2], metadata.tasks[1::2]
    found = [
        correlation
        for known, held_out in (halves, halves[::-1])
        for correlation in _correlations(MetaDataset(known), held_out)
    ]
    return not found or float(np.mean(found)) >= MIN_CORRELATION


def memory_turns(
    prior: Prior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
) -> int:
    """Return how many suggestions start from past studies that were found.

    The others are made as without a memory. Those are all in the turns of the universal prior,
    which finds most of what a study gains in its first ten trials, so that past studies that
    mislead take the place of space-filling points only (lab/2026-11-24-memory-harm.md).

    Args:
        prior: What the past studies taught.
        space: The search space of the study.
        history: Its trials, larger values are better.
        numbers: Numbers of the suggestions.
        stats: Counts "memory_contradicted" suggestions.
    """
    n_turns = sum(not is_universal_turn(number) for number in numbers)
    if not n_turns or not contradicts(prior, space, history):
        return n_turns
    stats["memory_contradicted"] += n_turns
    return 0


def contradicts(prior: Prior, space: SearchSpace, history: Sequence[Trial]) -> bool:
    """Say whether the trials of a study contradict what past studies lead to expect.

    They do if more pairs of trials have the opposite order than the expected one. It is a function
    of the trials only: further ones may change the answer.

    Args:
        prior: What the past studies taught.
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


def _correlations(known: MetaDataset, held_out: tuple[Task, ...]) -> list[float]:
    """Return the rank correlation of each study that has an order and a parameter in common."""
    from scipy.stats import kendalltau  # takes long to import

    from dre_plugins.transfer.prior import Prior  # imports torch

    prior = Prior.of_few(known)
    found = []
    for task in held_out:
        try:
            expected = prior.scores(task.space, task.units)
        except ValueError:  # no parameter in common
            continue
        values = np.where(np.isnan(task.values), -np.inf, task.values)
        found.append(float(kendalltau(expected, values).statistic))
    return [correlation for correlation in found if not math.isnan(correlation)]
