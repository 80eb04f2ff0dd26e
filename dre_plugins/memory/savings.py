"""The gain of first suggestions that were learnt from past studies, from the records.

How a study would have gone without the memory is unknown. But its trials tell what to expect of
the space-filling points with which it would have begun otherwise: the best of n of them is
expected to beat n / (n + 1) of all. So the first suggestion, made before anything was observed, is
compared with what the universal prior expects of such points. The gain of later trials is unknown
(lab/2026-11-24-memory-savings.md).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dre_plugins.memory.recorded_study import RecordedStudy
from dre_plugins.recommend.lists import final_value
from dre_plugins.space.candidates import sobol

# With fewer studies the mean is not reported.
MIN_STUDIES = 10
# With fewer complete trials, a study does not tell what to expect.
MIN_TRIALS = 10
N_POINTS = 256


@dataclass(frozen=True, slots=True)
class Savings:
    """Hold how good the first suggestions were in studies that learnt from others."""

    n_studies: int  # number of studies that could be compared
    share: float  # share of space-filling points that their first suggestions beat
    error: float  # standard error of that share

    @property
    def trials(self) -> float:
        """Return the number of space-filling trials whose best is as good; 1 saves nothing."""
        return self.share / (1.0 - self.share)


def savings(studies: Iterable[RecordedStudy]) -> Savings:
    """Return how good the first suggestions of some studies were, see the module."""
    shares = [share for study in studies if (share := share_beaten(study)) is not None]
    n = len(shares)
    # Half a win and half a loss are added, so that a few studies without a loss do not give 100 %.
    share = (sum(shares) + 0.5) / (n + 1)
    error = float(np.std(shares, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Savings(n, share, error)


def share_beaten(study: RecordedStudy) -> float | None:
    """Return the share of space-filling points that a study's first suggestion beats.

    One without a value beats none. None if the study has learnt from no other, or has few trials.
    """
    first = study.trials.get(0)
    if first is None or first.source != "past-studies":
        return None
    task = study.task()
    if task.n_complete < MIN_TRIALS:
        return None
    from dre_plugins.recommend.posterior import ValuePosterior  # imports torch

    space = task.space
    points = space.canonical(sobol(space.n_parameters, N_POINTS, np.random.default_rng(0)))
    expected, _ = ValuePosterior.of(space, study.history()).predicted(points)
    value = final_value(first.trial)
    return 0.0 if value is None else float((value > expected).mean())
