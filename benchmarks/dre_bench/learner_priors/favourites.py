"""The configuration that is expected to be best on average over data sets.

What was best on one data set is often poor on another, and the configurations that a search found
on a data set were evaluated on that one only: to average over evaluations would take them for good
everywhere. So a Gaussian process of each data set predicts what it would make of any
configuration, and the mean of the predictions is minimised. Its length scales are those of the
space-filling points, which all data sets share.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from dre_bench.learner_evaluations.parameters import from_row
from dre_bench.learner_evaluations.plan import SOBOL
from dre_bench.learner_evaluations.tables import Table
from dre_bench.learner_priors.regrets import is_of_kind, mean_regrets
from dre_bench.learner_priors.tasks import search_space
from dre_plugins.space.candidates import mutate

# Data sets with fewer evaluations are left out.
FEWEST = 10
N_ROUNDS, N_PARENTS, N_CHILDREN = 8, 20, 200
# Where a parameter is inactive, its coordinate is this far below the range.
INACTIVE = -0.25


def best_on_average(table: Table, datasets: Collection[int], seed: int = 0) -> np.ndarray | None:
    """Return canonical coordinates `[P]` of the learner's `search_space`; None without data.

    Args:
        table: The evaluations.
        datasets: Indices of the data sets to learn from.
        seed: Seed of the search.
    """
    space = search_space(table.space)
    units = space.to_units([from_row(table.space, row) for row in table.configurations])
    rows_of = [np.flatnonzero(table.dataset == dataset) for dataset in datasets]
    values = [mean_regrets(table, rows) if len(rows) >= FEWEST else None for rows in rows_of]
    known = [
        (rows, value) for rows, value in zip(rows_of, values, strict=True) if value is not None
    ]
    if not known:
        return None
    kernel = _kernel(table, units, known)
    models = [
        GaussianProcessRegressor(kernel, optimizer=None, normalize_y=False).fit(
            _inputs(units[rows]), value - _level(value)
        )
        for rows, value in known
    ]
    levels = np.array([_level(value) for _, value in known])

    def mean(candidates: np.ndarray) -> np.ndarray:
        inputs = _inputs(space.canonical(candidates))
        predictions = [model.predict(inputs) for model in models]
        clipped = np.clip(np.array(predictions) + levels[:, None], 0.0, None)
        return np.asarray(clipped.mean(axis=0))

    rng = np.random.default_rng(seed)
    pool = np.unique(units, axis=0)
    scores = mean(pool)
    for _ in range(N_ROUNDS):
        parents = pool[np.argsort(scores, kind="stable")[:N_PARENTS]]
        filled = np.where(np.isnan(parents), rng.random(parents.shape), parents)
        children = space.canonical(mutate(space, filled, N_CHILDREN, rng))
        pool = np.concatenate([parents, children])
        scores = mean(pool)
    return np.asarray(pool[np.argmin(scores)])


def _level(values: np.ndarray) -> float:
    """Return what is expected far from all evaluations: rather bad than average."""
    return float(np.quantile(values, 0.75))


def _kernel(
    table: Table, units: np.ndarray, known: list[tuple[np.ndarray, np.ndarray]]
) -> ConstantKernel:
    """Fit the kernel to the space-filling points, on all data sets at once."""
    shared = [value[is_of_kind(table, rows, SOBOL)] - _level(value) for rows, value in known]
    n_points = min(map(len, shared))
    rows = known[0][0]
    inputs = _inputs(units[rows[is_of_kind(table, rows, SOBOL)]])[:n_points]
    scales = np.full(inputs.shape[1], 1.0)
    kernel = ConstantKernel(0.5) * Matern(scales, (0.2, 10.0), nu=2.5) + WhiteKernel(
        0.02, (1e-3, 0.3)
    )
    model = GaussianProcessRegressor(kernel, normalize_y=False)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of length scales at their bounds: parameters of no effect
        return model.fit(inputs, np.stack([value[:n_points] for value in shared], axis=1)).kernel_


def _inputs(units: np.ndarray) -> np.ndarray:
    return np.nan_to_num(units, nan=INACTIVE)
