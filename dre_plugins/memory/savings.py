"""What past studies have saved, as far as records tell.

A record does not say how a study would have gone without the memory. But each study that has
learnt has also tried space-filling points, with which it would have begun without. So the trials
that it chose before it had observed anything are compared with those: the best of n points of
that kind is expected to beat n / (n + 1) of such points. What the later trials save is not known
(lab/2026-11-24-memory-savings.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dre_plugins.memory.recorded import RecordedStudy
from dre_plugins.recommend.lists import final_value

SPACE_FILLING = frozenset({"random", "contrast"})
# Of fewer studies the mean says nothing.
MIN_STUDIES = 10


@dataclass(frozen=True, slots=True)
class Savings:
    """Say how good the first suggestions of studies were that have learnt from others.

    Args:
        n_studies: Studies that could be compared.
        share: Share of their own space-filling trials that their first suggestions beat.
        error: Standard error of that share.
    """

    n_studies: int
    share: float
    error: float

    @property
    def is_known(self) -> bool:
        """Whether there are enough studies to say anything."""
        return self.n_studies >= MIN_STUDIES

    @property
    def trials(self) -> float:
        """Return of how many space-filling trials the best one is as good; 1 saves nothing."""
        return self.share / (1.0 - self.share)


def savings(studies: Iterable[RecordedStudy]) -> Savings:
    """Return how good the first suggestions of some studies were, see the module."""
    found = [share for study in studies if (share := share_beaten(study)) is not None]
    n = len(found)
    # Half a win and half a loss are added: a few studies that won throughout prove no certainty.
    share = (sum(found) + 0.5) / (n + 1)
    error = float(np.std(found, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Savings(n, share, error)


def share_beaten(study: RecordedStudy) -> float | None:
    """Return the share of a study's space-filling trials that its first suggestion beats.

    A tie is half a win, and what has no value is worse than what has one. None if the study has
    no such trials.
    """
    sources = [study.trials[number].source for number in sorted(study.trials)]
    values = [final_value(trial) for trial in study.history()]
    filled = [-math.inf if value is None else value for value in values]
    first = [value for value, source in zip(filled, sources, strict=True) if source == "prior"]
    filling = [v for v, source in zip(filled, sources, strict=True) if source in SPACE_FILLING]
    if not first or not filling:
        return None
    ours, theirs = np.array(first)[:, None], np.array(filling)[None, :]
    return float(((ours > theirs) + 0.5 * (ours == theirs)).mean())
