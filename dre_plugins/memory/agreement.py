"""Whether past studies agree with each other."""

from __future__ import annotations

import math

import numpy as np

from dre_plugins.transfer.metadata import MetaDataset, Task

# Smallest mean rank correlation (Kendall's tau) between a study and its prediction by the others.
# Twelve studies of 25 trials reach .42 to .71 on seven sets of related tasks, and at most .06 with
# permuted values. With eight studies, some related ones are no better than permuted ones
# (lab/2026-11-23-memory.md).
MIN_STUDIES = 12
MIN_CORRELATION = 0.2


def are_related(metadata: MetaDataset) -> bool:
    """Return whether one half of past studies predicts the order of the other half's trials.

    If not, parameters of the same name have a different meaning in each study, and a prior would
    mislead the next one.
    """
    if len(metadata) < MIN_STUDIES:
        return True
    halves = metadata.tasks[0::2], metadata.tasks[1::2]
    found = [
        correlation
        for training, held_out in (halves, halves[::-1])
        for correlation in _correlations(MetaDataset(training), held_out)
    ]
    return not found or float(np.mean(found)) >= MIN_CORRELATION


def _correlations(training: MetaDataset, held_out: tuple[Task, ...]) -> list[float]:
    """Return the rank correlation of each study that has an order and a parameter in common."""
    from scipy.stats import kendalltau  # takes long to import

    from dre_plugins.transfer.prior import Prior  # imports torch

    prior = Prior.of_few(training)
    found = []
    for task in held_out:
        try:
            expected = prior.scores(task.space, task.units)
        except ValueError:  # no parameter in common
            continue
        values = np.where(np.isnan(task.values), -np.inf, task.values)
        found.append(float(kendalltau(expected, values).statistic))
    return [correlation for correlation in found if not math.isnan(correlation)]
