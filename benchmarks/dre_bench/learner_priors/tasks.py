"""From the evaluations of learners to the past tasks that priors are meta-trained on.

A task is a data set by a metric: what is best by accuracy need not be best by log loss, and a
prior should serve studies of either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dre_bench.learner_evaluations import parameters
from dre_bench.learner_evaluations.parameters import CATEGORY, INTEGER, Parameter, from_row
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, REGRESSION
from dre_bench.learner_evaluations.tables import Table
from dre_plugins.space import Categorical, Constant, Domain, Float, Integer
from dre_plugins.space.conditions import Condition
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.spaces.merging import in_canonical_order, merged_space

Tables = Mapping[tuple[str, str], Table]

# Of the two metrics of regression one is enough: they order configurations alike.
SIGNS = {"accuracy": 1.0, "log_loss": -1.0, "auc": 1.0, "rmse": -1.0}
SOURCE = (
    "cross-validated evaluations of the learner on {} data sets of the UCI tradition (at most "
    "1000 rows each), benchmarks/data/learner_evaluations"
)
LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Learner:
    """Say what a prior is made of.

    Attributes:
        title: What it is called in a sentence.
        learner: The name among the evaluations.
        tasks: Classification, regression or both.
        constants: Parameters that studies may tune and that have one value in all evaluations.
    """

    title: str
    learner: str
    tasks: tuple[str, ...] = (CLASSIFICATION, REGRESSION)
    constants: Mapping[str, str] = field(default_factory=dict)


LEARNERS: dict[str, Learner] = {
    "catboost": Learner("CatBoost", "catboost"),
    "decision-tree-small": Learner("Decision trees of scikit-learn", "decision_tree"),
    "elastic-net": Learner("Elastic net", "linear", (REGRESSION,)),
    "extra-trees": Learner("Extremely randomised trees", "extra_trees"),
    "hist-gradient-boosting": Learner(
        "Histogram gradient boosting of scikit-learn", "hist_gradient_boosting"
    ),
    "k-nearest-neighbours": Learner("k nearest neighbours", "k_nearest_neighbours"),
    "lightgbm": Learner(
        "LightGBM", "lightgbm", constants={"boosting": "gbdt", "boosting_type": "gbdt"}
    ),
    "logistic-regression": Learner("Logistic regression", "linear", (CLASSIFICATION,)),
    "mlp": Learner("Multilayer perceptron of scikit-learn", "mlp"),
    "random-forest": Learner("Random forest", "random_forest"),
    "svm": Learner("Support vector machine with RBF kernel", "svm", constants={"kernel": "rbf"}),
    "xgboost-small": Learner("XGBoost", "xgboost"),
}


def metadata_of(
    name: str, datasets: list[str], tables: Tables, left_out: Collection[str] = ()
) -> MetaDataset:
    """Return the past tasks of a prior, one for each data set and metric.

    Args:
        name: A key of `LEARNERS`.
        datasets: Names of all data sets, as `read_tables` has them.
        tables: The evaluations.
        left_out: Data sets that must not be learnt from.
    """
    found = [
        (dataset, task)
        for table in tables_of(name, tables)
        for index, dataset in enumerate(datasets)
        if dataset not in left_out and (table.dataset == index).any()
        for task in _tasks(dataset, table, table.dataset == index, LEARNERS[name].constants)
    ]
    n_datasets = len({dataset for dataset, _ in found})
    tasks = [task for _, task in found]
    return MetaDataset.of(tasks, source=SOURCE.format(n_datasets), licence=LICENCE)


def tables_of(name: str, tables: Tables) -> list[Table]:
    """Return the evaluations that a prior is made of."""
    learner = LEARNERS[name]
    keys = [(learner.learner, kind) for kind in learner.tasks]
    return [tables[key] for key in keys if key in tables]


def prior_space(name: str, tables: Tables) -> SearchSpace:
    """Return the search space of a prior, with the parameters of all its tables."""
    constants = LEARNERS[name].constants
    spaces = [search_space(table.space, constants) for table in tables_of(name, tables)]
    return in_canonical_order(merged_space(spaces))


def search_space(
    space: parameters.Space, constants: Mapping[str, str] | None = None
) -> SearchSpace:
    """Return the search space of a learner, with further constants by name."""
    conditions = [
        Condition(parameter.name, parameter.parent, parameter.parent_values)
        for parameter in space
        if parameter.parent is not None
    ]
    domains = {parameter.name: _domain(parameter) for parameter in space}
    fixed = {name: Constant(value) for name, value in (constants or {}).items()}
    return SearchSpace({**domains, **fixed}, conditions)


def defaults_of(name: str, tables: Tables) -> dict[str, Any]:
    """Return the library's defaults, as far as they depend neither on data nor on the task."""
    spaces = [table.space for table in tables_of(name, tables)]
    values: dict[str, set[Any]] = {}
    for parameter in (parameter for space in spaces for parameter in space):
        values.setdefault(parameter.name, set()).add(parameter.default)
    return {
        parameter: value
        for parameter, (value, *others) in values.items()
        if value is not None and not others
    }


def _tasks(
    dataset: str, table: Table, rows: np.ndarray, constants: Mapping[str, str]
) -> list[Task]:
    space = search_space(table.space, constants)
    configurations = [from_row(table.space, row) for row in table.configurations[rows]]
    units = space.to_units(configurations)
    tasks = []
    for metric, sign in SIGNS.items():
        if metric in table.metrics:
            values = sign * table.metrics[metric][rows, -1].astype(np.float64)
            name = f"{dataset} by {metric}"
            tasks.append(Task(name, space, units, values, np.isnan(values)))
    return tasks


def _domain(parameter: Parameter) -> Domain:
    if parameter.kind == CATEGORY:
        # Sorted as in `in_canonical_order`: coordinates of tables are those of the prior's space.
        return Categorical(tuple(sorted(parameter.choices)))
    assert parameter.low is not None and parameter.high is not None
    scale = "log" if parameter.log else "linear"
    if parameter.kind == INTEGER:
        return Integer(int(parameter.low), int(parameter.high), scale)
    return Float(parameter.low, parameter.high, scale)
