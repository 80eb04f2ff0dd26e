"""Several objectives: the Pareto front, and one order, which is all that the ensemble needs.

Notation: `N` trials, `O` objectives; larger is better.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dre_plugins.checks import require
from dre_plugins.recommend.lists import dense_ranks
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Array, Mask

# Weight of the sum in the augmented Chebyshev scalarisation, as in ParEGO (Knowles, 2006).
AUGMENTATION = 0.05
# Points that are compared with the front at once.
BLOCK = 256


def non_dominated(values: Array) -> Mask:
    """Return which points no other one dominates, `[N, O]` -> `[N]`.

    A point that dominates another has a larger sum of ranks. So points are visited from the
    largest sum downwards, block by block, and compared with the front so far and with their own
    block: memory grows only with the length of the front.
    """
    ranks = np.stack([dense_ranks(column) for column in values.T], axis=1)
    order = np.argsort(-ranks.sum(1), kind="stable")
    front = order[:0]
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        rivals = np.concatenate([front, block])
        dominated = ranks[rivals].sum(1) > ranks[block].sum(1)[:, None]
        for rank in ranks.T:
            dominated &= rank[rivals] >= rank[block, None]
        front = np.concatenate([front, block[~dominated.any(1)]])
    is_in_front = np.zeros(len(values), dtype=np.bool_)
    is_in_front[front] = True
    return is_in_front


def normalised_ranks(values: Array) -> Array:
    """Return the values of each objective as places from 0, worst, to 1, `[N, O]` -> `[N, O]`."""
    ranks = np.stack([dense_ranks(column) for column in values.T], axis=1)
    return np.asarray(ranks / np.maximum(ranks.max(0), 1.0))


def scalarised(places: Array, weights: Array) -> Array:
    """Return one value for the places that objectives give, larger is better, `[…, O]` -> `[…]`.

    ParEGO (Knowles, 2006): the worst weighted objective, and a little of the sum. Places are from
    0, worst, to 1.
    """
    scaled = weights * places
    worst = (scaled - weights).min(-1)
    return np.asarray(worst + AUGMENTATION * scaled.sum(-1), dtype=np.float64)


def draw_weights(n_objectives: int, rng: np.random.Generator) -> Array:
    """Draw weights that sum to 1, uniformly, `[O]`."""
    return np.asarray(rng.dirichlet(np.ones(n_objectives)), dtype=np.float64)


def n_objectives(history: Sequence[Trial]) -> int:
    """Return the number of objectives of all trials; 0 if they have single values."""
    numbers = sorted({len(trial.objectives) for trial in history if trial.objectives})
    remedy = "values of the same objectives in all trials"
    require(len(numbers) < 2, "history", f"trials of {numbers} objectives", remedy)
    return numbers[0] if numbers else 0


def scalarised_history(history: Sequence[Trial], weights: Array) -> list[Trial]:
    """Return the trials with one scalarised value each, larger is better.

    Only the order within each objective counts, so their scales may be anything. Trials with one
    objective and trials without values are unchanged. The weights `[O]` decide which part of the
    Pareto front is improved.
    """
    rows = [i for i, trial in enumerate(history) if _has_values(trial)]
    if not rows:
        return [*history]
    values = np.array([history[i].objectives for i in rows], dtype=np.float64)
    value_of = dict(zip(rows, scalarised(normalised_ranks(values), weights).tolist(), strict=True))
    return [replace(trial, value=value_of.get(i, trial.value)) for i, trial in enumerate(history)]


def single_objective(history: Sequence[Trial], objective: int) -> list[Trial]:
    """Return the trials with the value of one objective; trials that lack any are unchanged."""
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
