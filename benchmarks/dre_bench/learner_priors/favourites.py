"""The configuration that is expected to be best on average over data sets.

What was best on one data set is often poor on another, and the configurations that a search found
on a data set were evaluated on that one only: to average over evaluations would take them for good
everywhere. So a Gaussian process of each data set predicts what it would make of any
configuration, and the mean of the predictions is minimised, each plus its standard deviation: a
search would otherwise go to corners where nothing was evaluated. Length scales are those of the
space-filling points, which all data sets of a table share.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from dre_bench.learner_evaluations.parameters import from_row
from dre_bench.learner_evaluations.plan import SOBOL
from dre_bench.learner_evaluations.tables import Table
from dre_bench.learner_priors.regrets import is_of_kind, mean_regrets
from dre_bench.learner_priors.tasks import search_space
from dre_plugins.space.candidates import mutate
from dre_plugins.space.search_space import SearchSpace

Array = NDArray[np.float64]
# Coordinates `[C, P]` of a table's search space -> bounds of regret `[T, C]` on its data sets.
Predict = Callable[[Array], Array]

# Data sets with fewer evaluations are left out.
FEWEST = 10
N_ROUNDS, N_PARENTS, N_CHILDREN = 8, 20, 200
# Where a parameter is inactive, its coordinate is this far below the range.
INACTIVE = -0.25
# Bounds of the kernel, in units of the ranges and of squared regret.
LENGTH_SCALES, NOISE = (0.2, 3.0), (1e-3, 0.3)
# Far from all evaluations this quantile of the regrets is expected, which is worse than average.
FAR = 0.75


def best_on_average(
    space: SearchSpace, tables: Sequence[Table], datasets: Collection[int], seed: int = 0
) -> Array | None:
    """Return canonical coordinates `[P]`; None without data.

    Args:
        space: The search space of the learner, with the parameters of all its tables.
        tables: The evaluations of classification and of regression, or of one of them.
        datasets: Indices of the data sets to learn from.
        seed: Seed of the search.
    """
    rng = np.random.default_rng(seed)
    parts: list[tuple[list[int], Predict]] = []
    pool = np.empty((0, space.n_parameters))
    for table in tables:
        table_space = search_space(table.space)
        columns = [space.names.index(name) for name in table_space.names]
        units = table_space.to_units([from_row(table.space, row) for row in table.configurations])
        predict = _predictions(table, units, datasets)
        if predict is not None:
            parts.append((columns, predict))
            placed = rng.random((len(units), space.n_parameters))
            placed[:, columns] = np.where(np.isnan(units), placed[:, columns], units)
            pool = np.concatenate([pool, placed])
    if not parts:
        return None

    def regret(candidates: Array) -> Array:
        canonical = space.canonical(candidates)
        found = np.concatenate([predict(canonical[:, columns]) for columns, predict in parts])
        return np.asarray(found.mean(axis=0))

    scores = regret(pool)
    for _ in range(N_ROUNDS):
        parents = pool[np.argsort(scores, kind="stable")[:N_PARENTS]]
        pool = np.concatenate([parents, mutate(space, parents, N_CHILDREN, rng)])
        scores = regret(pool)
    return np.asarray(space.canonical(pool[[np.argmin(scores)]])[0])


def _predictions(table: Table, units: Array, datasets: Collection[int]) -> Predict | None:
    """Return what to expect at worst on the data sets of a table; None if it has none of them."""
    past: list[tuple[Array, Array]] = []
    shared: list[tuple[Array, Array]] = []
    for dataset in datasets:
        rows = np.flatnonzero(table.dataset == dataset)
        values = mean_regrets(table, rows) if len(rows) >= FEWEST else None
        if values is not None:
            is_sobol = is_of_kind(table, rows, SOBOL)
            past.append((_inputs(units[rows]), values))
            shared.append((_inputs(units[rows[is_sobol]]), values[is_sobol]))
    if not past:
        return None
    kernel = _kernel(shared)
    levels = np.array([np.quantile(values, FAR) for _, values in past])
    models = [
        GaussianProcessRegressor(kernel, optimizer=None).fit(inputs, values - level)
        for (inputs, values), level in zip(past, levels, strict=True)
    ]

    def predict(candidates: Array) -> Array:
        inputs = _inputs(candidates)
        found = [np.add(*model.predict(inputs, return_std=True)) for model in models]
        return np.asarray(np.array(found) + levels[:, None])

    return predict


def _kernel(shared: Sequence[tuple[Array, Array]]) -> Kernel:
    """Fit a kernel to what all data sets share, each its inputs `[N, P]` and values `[N]`."""
    n_points = min(len(values) for _, values in shared)
    inputs = shared[0][0][:n_points]
    targets = np.stack([v[:n_points] - np.quantile(v, FAR) for _, v in shared], axis=1)
    kernel = ConstantKernel(0.5) * Matern(np.ones(inputs.shape[1]), LENGTH_SCALES, nu=2.5)
    model = GaussianProcessRegressor(kernel + WhiteKernel(0.02, NOISE))
    with warnings.catch_warnings():
        # Length scales at their bounds are those of parameters without an effect.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(inputs, targets).kernel_


def _inputs(units: Array) -> Array:
    return np.nan_to_num(units, nan=INACTIVE)
