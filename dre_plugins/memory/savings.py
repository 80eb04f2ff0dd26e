"""The gain of first suggestions that were learnt from past studies, from the records.

How a study would have gone without the memory is unknown. But a study that learns has also tried
space-filling points, with which it would have begun otherwise. So its first suggestions, made
before anything was observed, are compared with those: the best of n space-filling points is
expected to beat n / (n + 1) of them. The gain of later trials is unknown
(lab/2026-11-24-memory-savings.md).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dre_plugins.memory.recorded_study import RecordedStudy
from dre_plugins.recommend.lists import final_values

SPACE_FILLING = ("random", "contrast")
# With fewer studies the mean is not reported.
MIN_STUDIES = 10


@dataclass(frozen=True, slots=True)
class Savings:
    """Hold how good the first suggestions were in studies that learnt from others."""

    n_studies: int  # number of studies that could be compared
    share: float  # share of their own space-filling trials that their first suggestions beat
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
    """Return the share of a study's space-filling trials that its first suggestion beats.

    A tie is half a win, and a trial without a value is worse than one with a value. None if the
    study has no space-filling trials.
    """
    sources = np.array([study.trials[n].source for n in sorted(study.trials)], dtype=np.str_)
    values = final_values(study.history())
    values[np.isnan(values)] = -math.inf
    ours = values[sources == "prior"][:, None]
    theirs = values[np.isin(sources, SPACE_FILLING)]
    if not len(ours) or not len(theirs):
        return None
    return float(((ours > theirs) + 0.5 * (ours == theirs)).mean())
