"""What was best in past studies, in the order in which a new study is to try it.

Each next configuration lowers the regret most that is expected on average over the past tasks, of
the best so far in each: first what is good everywhere, then what is good where that is not.

Notation: `T` past tasks, `C` configurations; see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend.posterior import ValuePosterior
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces.alignment import align
from dre_plugins.transfer.task_lists import evenly_spaced
from dre_plugins.transfer.training import units_in

Array = NDArray[np.float64]

# With five past studies a portfolio gains nothing after five or ten trials, with twelve or more it
# does (lab/2026-11-24-memory-many-studies.md). Of so many it is also known whether they have an
# order in common, see `memory.agreement`.
MIN_STUDIES = 12
# Regrets of this many past tasks are compared at most: each takes about ten milliseconds.
MAX_TASKS = 100
# Regret, as a share of what lies between the best and the median, above which all is as bad.
MAX_REGRET = 3.0


def with_portfolio(prior: Prior, metadata: MetaDataset) -> Prior:
    """Return a prior with the incumbents of its past tasks as a portfolio, if they are enough.

    Args:
        prior: What the past tasks taught.
        metadata: The past tasks.
    """
    tasks = [task for task in metadata if np.isfinite(task.values).any()]
    if len(tasks) < MIN_STUDIES:
        return prior
    tasks = [tasks[row] for row in evenly_spaced(len(tasks), MAX_TASKS)]
    incumbents = np.array([_incumbent(task, prior.space) for task in tasks])
    order = greedy_order(expected_regrets(tasks, prior.space, incumbents))
    names = tuple(tasks[row].name for row in order)
    return replace(prior, portfolio=incumbents[order], portfolio_tasks=names)


def _incumbent(task: Task, space: SearchSpace) -> Array:
    values = np.where(np.isfinite(task.values), task.values, -np.inf)
    best: Array = units_in(space, task)[int(values.argmax())]
    return best


def greedy_order(regrets: Array) -> NDArray[np.intp]:
    """Return configurations in order, each lowers the mean regret of the best so far most.

    Args:
        regrets: What is expected of each configuration on each past task `[T, C]`, 0 is the best.
    """
    best = np.full((len(regrets), 1), np.inf)
    chosen: list[int] = []
    for _ in range(regrets.shape[1]):
        means = np.minimum(best, regrets).mean(axis=0)
        means[chosen] = np.inf
        chosen.append(int(means.argmin()))
        best = np.minimum(best, regrets[:, chosen[-1:]])
    return np.array(chosen, dtype=np.intp)


def expected_regrets(tasks: Sequence[Task], space: SearchSpace, units: Array) -> Array:
    """Return what the universal prior expects of configurations on past tasks `[T, C]`.

    Regret is how far a value lies below the best of the task, as a share of what lies between its
    best and its median, from 0 to `MAX_REGRET`.

    Args:
        tasks: The past tasks, each with a final value at least.
        space: The search space of the configurations.
        units: Their canonical coordinates in `space` `[C, P]`.
    """
    with isolated():
        return np.array([_regrets_on(task, space, units) for task in tasks])


def _regrets_on(task: Task, space: SearchSpace, units: Array) -> Array:
    placed = np.clip(align(space, task.space).convert(units), 0.0, 1.0)
    expected, _ = ValuePosterior.of(task.space, task.trials()).predicted(placed)
    finite = task.values[np.isfinite(task.values)]
    best, scale = finite.max(), finite.max() - np.median(finite)
    regrets: Array = np.clip((best - expected) / (scale if scale > 0.0 else 1.0), 0.0, MAX_REGRET)
    return regrets
