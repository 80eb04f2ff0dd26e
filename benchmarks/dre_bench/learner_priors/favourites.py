"""The portfolio of a learner: configurations that complement each other over data sets.

A Gaussian process of each data set predicts the regret of every candidate by each metric, and the
members are chosen one after the other, each so that the mean over data sets of the least regret so
far is smallest: the portfolio of auto-sklearn 2.0 (Feurer et al., JMLR 2022) and the multiple
defaults of Pfisterer et al. (GECCO 2021).

Candidates are what most data sets have evaluated, above all the points of a Sobol sequence: there
processes fill in what is between classification and regression. Of what a search found on one
data set they expect too much elsewhere (lab/2026-11-24-portfolio.md), so that it is a candidate
only where data sets share few points. Length scales are those of the Sobol points. The library's
default is a candidate with the regret that it had (lab/2026-11-26-default-as-member.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from dre_bench.learner_evaluations.parameters import from_row
from dre_bench.learner_evaluations.plan import DEFAULT, SOBOL
from dre_bench.learner_evaluations.tables import Table
from dre_bench.learner_priors.regrets import is_of_kind, regrets_by_metric
from dre_bench.learner_priors.tasks import search_space
from dre_plugins.space.search_space import SearchSpace

Array = NDArray[np.float64]

# More gain nothing (lab/2026-11-24-portfolio.md).
N_MEMBERS = 5
# Where data sets share fewer points, candidates are all evaluations.
FEWEST_SHARED = 30
# Data sets with fewer evaluations are left out.
FEWEST = 10
# Where a parameter is inactive, its coordinate is this far below the range.
INACTIVE = -0.25
# Bounds of the kernel, in units of the ranges and of squared regret.
LENGTH_SCALES, NOISE = (0.2, 3.0), (1e-3, 0.3)
# Far from all evaluations this quantile of the regrets is expected, which is worse than average.
FAR = 0.75


def portfolio(
    space: SearchSpace,
    tables: Sequence[Table],
    datasets: Collection[int],
    n_members: int = N_MEMBERS,
    seed: int = 0,
) -> Array | None:
    """Return canonical coordinates of the members, in order `[F, P]`; None without data.

    Args:
        space: The search space of the learner, with the parameters of all its tables.
        tables: The evaluations of classification and of regression, or of one of them.
        datasets: Indices of the data sets to learn from.
        n_members: How many members.
        seed: Seed of the values of parameters that a table does not have.
    """
    rng = np.random.default_rng(seed)
    parts: list[tuple[Table, Array, list[int]]] = []
    for table in tables:
        if not np.isin(table.dataset, [*datasets]).any():
            continue
        table_space = search_space(table.space)
        columns = [space.names.index(name) for name in table_space.names]
        units = table_space.to_units([from_row(table.space, row) for row in table.configurations])
        parts.append((table, units, columns))
    pool = np.empty((0, space.n_parameters))
    for inputs_of in (_candidates, _default):
        for table, units, columns in parts:
            inputs = inputs_of(table, units, datasets)
            placed = rng.random((len(inputs), space.n_parameters))
            placed[:, columns] = np.where(inputs < 0.0, placed[:, columns], inputs)
            pool = np.concatenate([pool, placed])
    pool = space.canonical(pool)
    found = [
        regret
        for default, (table, units, columns) in enumerate(parts, len(pool) - len(parts))
        for regret in _expected(table, units, datasets, pool[:, columns], default)
    ]
    if not found:
        return None
    weights = np.concatenate([np.full(len(regret), 1.0 / len(regret)) for regret in found])
    return pool[complementary(np.concatenate(found), weights, n_members)]


def complementary(regret: Array, weights: Array, n_members: int) -> list[int]:
    """Return the places of configurations that complement each other, in order.

    Args:
        regret: Regret of each configuration on each task `[T, C]`.
        weights: Weights of the tasks `[T]`.
        n_members: How many; fewer if there are not as many configurations.

    >>> regret = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])
    >>> complementary(regret, np.ones(2), 2)
    [2, 0]
    """
    least = np.full(len(regret), np.inf)
    places: list[int] = []
    for _ in range(min(n_members, regret.shape[1])):
        expected = weights @ np.minimum(least[:, None], regret)
        expected[places] = np.inf
        places.append(int(np.argmin(expected)))
        least = np.minimum(least, regret[:, places[-1]])
    return places


def _candidates(table: Table, units: Array, datasets: Collection[int]) -> Array:
    """Return the inputs that most data sets share, or all if these are too few `[C, P]`."""
    is_used = np.isin(table.dataset, [*datasets])
    evaluated, counts = np.unique(_inputs(units[is_used]), axis=0, return_counts=True)
    is_shared = counts >= len(np.unique(table.dataset[is_used])) / 2
    return evaluated[is_shared] if is_shared.sum() >= FEWEST_SHARED else evaluated


def _default(table: Table, units: Array, datasets: Collection[int]) -> Array:
    """Return the inputs of the library's default, the usual ones where data decide `[1, P]`."""
    rows = np.flatnonzero(np.isin(table.dataset, [*datasets]))
    of_datasets = _inputs(units[rows[is_of_kind(table, rows, DEFAULT)]])
    return np.quantile(of_datasets, 0.5, axis=0, method="lower")[None]


def _expected(
    table: Table, units: Array, datasets: Collection[int], candidates: Array, default: int
) -> list[Array]:
    """Return what to expect of candidates `[C, P]` on the data sets of a table, `[metrics, C]`.

    The one at place `default` has the regret of the library's default on each data set.
    """
    past: list[tuple[Array, Array, Array]] = []
    shared: list[tuple[Array, Array]] = []
    for dataset in datasets:
        rows = np.flatnonzero(table.dataset == dataset)
        values = regrets_by_metric(table, rows) if len(rows) >= FEWEST else None
        if values is not None:
            is_sobol = is_of_kind(table, rows, SOBOL)
            is_default = is_of_kind(table, rows, DEFAULT)
            past.append((_inputs(units[rows]), values, values[is_default]))
            shared.append((_inputs(units[rows[is_sobol]]), values[is_sobol].mean(axis=1)))
    if not past:
        return []
    kernel, inputs = _kernel(shared), _inputs(candidates)
    expected = []
    for tried, values, of_default in past:
        level = np.quantile(values, FAR, axis=0)
        model = GaussianProcessRegressor(kernel, optimizer=None).fit(tried, values - level)
        of_candidates = model.predict(inputs).reshape(len(inputs), -1) + level
        of_candidates[default] = of_default[0]
        expected.append(of_candidates.T)
    return expected


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
