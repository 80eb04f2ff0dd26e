"""Several objectives as one order, which is all that the surrogate needs.

Notation: `N` trials, `O` objectives; larger is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.settings import require
from dre_plugins.recommend.lists import dense_ranks
from dre_plugins.recommend.trials import Trial, TrialState

Array = NDArray[np.float64]

# Weight of the sum in the augmented Chebyshev scalarisation.
AUGMENTATION = 0.05


def layers(values: Array) -> NDArray[np.intp]:
    """Return how many fronts lie before each point, `[N, O]` -> `[N]`; 0 = not dominated."""
    at_least = (values[:, None, :] >= values[None, :, :]).all(-1)
    dominates = at_least & ~at_least.T
    layer = np.full(len(values), -1, dtype=np.intp)
    left = np.ones(len(values), dtype=np.bool_)
    depth = 0
    while left.any():
        front = left & ~(dominates & left[:, None]).any(0)
        layer[front] = depth
        left &= ~front
        depth += 1
    return layer


def placed(values: Array) -> Array:
    """Return the values of each objective as places from 0, worst, to 1, `[N, O]` -> `[N, O]`."""
    ranks = np.stack([dense_ranks(column) for column in values.T], axis=1)
    return np.asarray(ranks / np.maximum(ranks.max(0), 1.0))


def preference(values: Array, weights: Array) -> Array:
    """Return one value for each trial, larger is better, `[N, O]` -> `[N]`.

    Only the order within each objective counts, so their scales may be anything.

    Args:
        values: Values of the objectives.
        weights: Weights of the objectives `[O]`, positive.
    """
    return scalarised(placed(values), weights)


def scalarised(places: Array, weights: Array) -> Array:
    """Return one value for the places that objectives give, larger is better, `[…, O]` -> `[…]`.

    ParEGO (Knowles, 2006): the worst weighted objective, and a little of the sum.

    Args:
        places: From 0, worst, to 1.
        weights: Weights of the objectives `[O]`.
    """
    scaled = weights * places
    worst = (scaled - weights).min(-1)
    return np.asarray(worst + AUGMENTATION * scaled.sum(-1), dtype=np.float64)


def draw_weights(n_objectives: int, rng: np.random.Generator) -> Array:
    """Draw weights that sum to 1, uniformly, `[O]`."""
    return np.asarray(rng.dirichlet(np.ones(n_objectives)), dtype=np.float64)


def n_objectives(history: Sequence[Trial]) -> int:
    """Return how many objectives the trials tell of; 0 if they have a single value.

    Raises:
        ValueError: If they tell of different numbers.
    """
    numbers = sorted({len(trial.objectives) for trial in history if trial.objectives})
    wanted = "values of the same objectives in all trials"
    require(len(numbers) < 2, "history", f"trials of {numbers} objectives", wanted)
    return numbers[0] if numbers else 0


def as_one_objective(history: Sequence[Trial], weights: Array) -> list[Trial]:
    """Return the trials with a single value each, which orders them as several objectives do.

    Args:
        history: Trials; those with one objective, and those without values, are left alone.
        weights: In which direction the front is pushed this time `[O]`.
    """
    rows = [i for i, trial in enumerate(history) if _has_values(trial)]
    if not rows:
        return [*history]
    values = np.array([history[i].objectives for i in rows], dtype=np.float64)
    one = dict(zip(rows, preference(values, weights).tolist(), strict=True))
    return [replace(trial, value=one.get(i, trial.value)) for i, trial in enumerate(history)]


def objective_alone(history: Sequence[Trial], objective: int) -> list[Trial]:
    """Return the trials with the value of one objective; those that lack any are left alone."""
    return [
        replace(trial, value=trial.objectives[objective]) if _has_values(trial) else trial
        for trial in history
    ]


def _has_values(trial: Trial) -> bool:
    return (
        trial.state is TrialState.COMPLETE
        and bool(trial.objectives)
        and not any(math.isnan(value) for value in trial.objectives)
    )
