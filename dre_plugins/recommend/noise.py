"""Ties between trials that noise alone may have set apart, by repeated configurations."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from dre_plugins.recommend.lists import final_values
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.base import Units
from dre_plugins.space.seen import groups

# Fewest repetitions from which the noise is estimated.
MIN_REPETITIONS = 3


def without_noise(history: Sequence[Trial], repeats: Sequence[Hashable]) -> list[Trial]:
    """Give trials that noise alone may have set apart the same value.

    Repetitions of a configuration get their mean, and configurations whose means differ by less
    than its standard error are tied. Without repetitions nothing is known of the noise, and
    nothing changes. `repeats` are equal for equal configurations `[N]`.
    """
    finals = enumerate(final_values(history).tolist())
    value_of = {i: value for i, value in finals if math.isfinite(value)}
    trials_of: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in value_of:
        trials_of[repeats[i]].append(i)
    n_repetitions = len(value_of) - len(trials_of)
    if n_repetitions < MIN_REPETITIONS:
        return [*history]
    means = [
        (math.fsum(value_of[i] / len(trials) for i in trials), trials)
        for trials in trials_of.values()
    ]
    deviations = [value_of[i] - mean for mean, trials in means for i in trials]
    # Not by squares, which overflow for 1e300 and underflow for 1e-300.
    noise = math.hypot(*deviations) / math.sqrt(n_repetitions)
    levels: dict[int, float] = {}
    level, n_level = -math.inf, 1  # mean value of the first configuration of a tie, and its trials
    for mean, trials in sorted(means):
        # The standard error of the difference of the two means.
        error = noise * math.sqrt(1.0 / len(trials) + 1.0 / n_level)
        if mean - level >= error:
            level, n_level = mean, len(trials)
        levels.update(dict.fromkeys(trials, level))
    return [replace(t, value=levels[i]) if i in levels else t for i, t in enumerate(history)]


def repetition_keys(units: Units) -> list[Hashable]:
    """Return keys that are equal for repetitions of a configuration, by units `[N, P]`.

    Units far outside the present ranges are clipped, so trials there do not count as repetitions.
    """
    is_outside = np.any((units < 0.0) | (units > 1.0), axis=1).tolist()
    return [i if is_outside[i] else key for i, key in enumerate(groups(units))]
