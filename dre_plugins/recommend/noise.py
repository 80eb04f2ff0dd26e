"""Ties between trials that noise alone may have set apart, by repeated configurations."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dre_plugins.recommend.lists import final_values
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.base import Units
from dre_plugins.space.seen import groups

# Fewest repetitions from which the noise is estimated.
MIN_REPETITIONS = 3


@dataclass(frozen=True, slots=True)
class _Group:
    """The trials of one configuration: their mean value and how many there are."""

    trials: tuple[int, ...]
    mean: float


def without_noise(history: Sequence[Trial], repeats: Sequence[Hashable]) -> list[Trial]:
    """Give trials that noise alone may have set apart the same value.

    Repetitions of a configuration get their mean, and configurations whose means differ by less
    than its standard error are tied. Without repetitions nothing is known of the noise, and
    nothing changes. `repeats` are equal for equal configurations `[N]`.
    """
    finals = enumerate(final_values(history).tolist())
    value_of = {i: value for i, value in finals if math.isfinite(value)}
    n_repetitions = len(value_of) - len({repeats[i] for i in value_of})
    if n_repetitions < MIN_REPETITIONS:
        return [*history]
    groups = _groups(value_of, repeats)
    deviations = [value_of[i] - group.mean for group in groups for i in group.trials]
    # Not by squares, which overflow for 1e300 and underflow for 1e-300.
    noise = math.hypot(*deviations) / math.sqrt(n_repetitions)
    levels: dict[int, float] = {}
    level: _Group | None = None
    for group in sorted(groups, key=lambda group: group.mean):
        if level is None or group.mean - level.mean >= noise * _error(group, level):
            level = group
        levels.update(dict.fromkeys(group.trials, level.mean))
    return [replace(t, value=levels[i]) if i in levels else t for i, t in enumerate(history)]


def repetition_keys(units: Units) -> list[Hashable]:
    """Return keys that are equal for repetitions of a configuration, by units `[N, P]`.

    Units far outside the present ranges are clipped, so trials there do not count as repetitions.
    """
    is_outside = np.any((units < 0.0) | (units > 1.0), axis=1).tolist()
    return [i if is_outside[i] else key for i, key in enumerate(groups(units))]


def _groups(values: Mapping[int, float], repeats: Sequence[Hashable]) -> list[_Group]:
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in values:
        places[repeats[i]].append(i)
    return [
        _Group(tuple(trials), math.fsum(values[i] / len(trials) for i in trials))
        for trials in places.values()
    ]


def _error(group: _Group, other: _Group) -> float:
    """Return the standard error of the difference of two means, in units of the noise."""
    return math.sqrt(1.0 / len(group.trials) + 1.0 / len(other.trials))
