"""Conditional problems: a choice opens a branch with parameters of its own.

What is compared is whether a sampler finds the right branch before it refines a wrong one.

    pipelines           a scaler, a selection of features and one of four classifiers of
                        scikit-learn on small real data sets; the accuracy of three folds
    learner-choice      XGBoost (three boosters) or a decision tree, of YAHPO Gym, on one data set
    branches-3 … -6     a synthetic choice among so many branches, where the branch with the
                        highest optimum is the worst for most of its configurations
    switches-8          a synthetic space of eight options that may each be switched on
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dre_bench.tasks import SPLITS, Parameter, Scenario, Split, YahpoScenario, only_for

PIPELINES = "pipelines"
LEARNER_CHOICE = "learner-choice"
BRANCHES = "branches-"
N_BRANCHES = (3, 4, 5, 6)
SWITCHES = "switches-"
CONDITIONAL = (PIPELINES, LEARNER_CHOICE, *(f"{BRANCHES}{n}" for n in N_BRANCHES), f"{SWITCHES}8")

N_ROWS = 200
N_FOLDS = 3
N_TASKS = 40
TABULAR = "tabular"


def conditional_scenario(name: str, data: Path | None) -> Scenario:
    """Return a scenario by its name.

    Args:
        name: One of `CONDITIONAL`.
        data: Folder with the scenarios of YAHPO Gym; `tabular/datasets.npz` lies in it or beside
            it.

    Raises:
        ValueError: If its data are missing.
    """
    if name.startswith(BRANCHES):
        return Branches(int(name.removeprefix(BRANCHES)))
    if name.startswith(SWITCHES):
        return Switches(int(name.removeprefix(SWITCHES)))
    if data is None:
        raise ValueError(f"scenario {name!r} needs real data: name their folder with --data.")
    if name == LEARNER_CHOICE:
        return LearnerChoice(data)
    folders = (data / TABULAR, data.parent / TABULAR)
    paths = [path for folder in folders if (path := folder / "datasets.npz").is_file()]
    if not paths:
        raise ValueError(f"scenario {name!r} needs {folders[0]}/datasets.npz.")
    return Pipelines(paths[0])


class Branches(Scenario):
    """A choice among branches whose best one looks worst.

    Each branch has two parameters, a share and a rate on a logarithmic scale, and all have one
    in common. Its values fall from its optimum with the distance; the higher the optimum, the
    narrower the peak and the lower the values around it.

    Args:
        n_branches: How many branches.
    """

    metric = "value"

    def __init__(self, n_branches: int) -> None:
        self.name = f"{BRANCHES}{n_branches}"
        self.tasks = [*range(N_TASKS)]
        names = tuple("abcdef"[:n_branches])
        self.parameters = (
            Parameter("common", "float", 0.0, 1.0),
            Parameter("branch", "categorical", choices=names),
            *(
                parameter
                for name in names
                for parameter in only_for(
                    "branch",
                    name,
                    Parameter(f"{name}_share", "float", 0.0, 1.0),
                    Parameter(f"{name}_rate", "float", 1e-5, 1.0, log=True),
                )
            ),
        )

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        rng = np.random.default_rng(task)
        names = self.parameters[1].choices
        places = rng.permutation(len(names))
        centres = rng.uniform(0.1, 0.9, (len(names), 2))
        common = rng.uniform(0.1, 0.9)
        name = configuration["branch"]
        branch = names.index(name)
        place = places[branch] / (len(names) - 1)  # 1 is the branch with the highest optimum
        share = configuration[f"{name}_share"] - centres[branch, 0]
        rate = math.log10(configuration[f"{name}_rate"]) / 5.0 + 1.0
        distance = share**2 + (rate - centres[branch, 1]) ** 2
        distance += 0.2 * (configuration["common"] - common) ** 2
        depth, width = 0.6 + 1.4 * place, 0.6 - 0.35 * place
        top = 0.4 * (place - 1.0)
        return float(top - depth * (1.0 - math.exp(-distance / (2.0 * width**2))))


class Switches(Scenario):
    """Options that may each be switched on, with a parameter of their own; most do harm.

    Beside them are three parameters that matter always.

    Args:
        n_switches: How many options.
    """

    metric = "value"

    def __init__(self, n_switches: int) -> None:
        self.name = f"{SWITCHES}{n_switches}"
        self.tasks = [*range(N_TASKS)]
        self.parameters = (
            *(Parameter(f"x{i}", "float", 0.0, 1.0) for i in range(3)),
            *(
                parameter
                for i in range(n_switches)
                for parameter in (
                    Parameter(f"use{i}", "categorical", choices=("yes", "no")),
                    *only_for(f"use{i}", "yes", Parameter(f"strength{i}", "float", 0.0, 1.0)),
                )
            ),
        )
        self._n_switches = n_switches

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        rng = np.random.default_rng(task)
        centres = rng.uniform(0.1, 0.9, 3)
        gains = rng.uniform(-0.3, 0.15, self._n_switches)
        places = rng.uniform(0.1, 0.9, self._n_switches)
        value = -sum((configuration[f"x{i}"] - centres[i]) ** 2 for i in range(3))
        for i in range(self._n_switches):
            if configuration[f"use{i}"] == "yes":
                value += gains[i] - 0.3 * (configuration[f"strength{i}"] - places[i]) ** 2
        return float(value)


class LearnerChoice(Scenario):
    """XGBoost or a decision tree on the data sets that YAHPO Gym has both for.

    Args:
        folder: Holds the folders of both scenarios.
    """

    name = LEARNER_CHOICE
    metric = "acc"

    def __init__(self, folder: Path) -> None:
        self._learners = {
            "xgboost": YahpoScenario(folder / "rbv2_xgboost"),
            "tree": YahpoScenario(folder / "rbv2_rpart"),
        }
        tasks = [set(scenario.tasks) for scenario in self._learners.values()]
        self.tasks = sorted(set.intersection(*tasks))
        parameters = [Parameter("learner", "categorical", choices=tuple(self._learners))]
        for learner, scenario in self._learners.items():
            for parameter in scenario.parameters:
                name = f"{learner}.{parameter.name}"
                if parameter.parent is None:
                    renamed = replace(
                        parameter, name=name, parent="learner", active_for=(learner,)
                    )
                else:
                    renamed = replace(parameter, name=name, parent=f"{learner}.{parameter.parent}")
                parameters.append(renamed)
        self.parameters = tuple(parameters)

    @property
    def splits(self) -> dict[Split, list[int]]:
        """Tasks that both scenarios have in the same split."""
        of_each = [scenario.splits for scenario in self._learners.values()]
        return {
            split: [t for t in self.tasks if all(t in splits[split] for splits in of_each)]
            for split in SPLITS
        }

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        learner = configuration["learner"]
        inner = {
            name.removeprefix(f"{learner}."): value
            for name, value in configuration.items()
            if name != "learner"
        }
        return self._learners[learner].evaluate(task, inner)[self.metric]


class Pipelines(Scenario):
    """A pipeline of scikit-learn on small real data sets.

    Args:
        path: An archive of arrays `classification/NAME/X`, `/is_category` and `/y`.
    """

    name = PIPELINES
    metric = "score"
    n_reference = 100
    parameters = (
        Parameter("scaler", "categorical", choices=("standard", "robust", "none")),
        Parameter("kept", "float", 0.1, 1.0),
        Parameter("classifier", "categorical", choices=("svc", "forest", "logistic", "knn")),
        *only_for(
            "classifier",
            "svc",
            Parameter("svc_C", "float", 1e-3, 1e3, log=True),
            Parameter("svc_gamma", "float", 1e-5, 1e1, log=True),
        ),
        *only_for(
            "classifier",
            "forest",
            Parameter("rf_trees", "int", 3, 20),
            Parameter("rf_max_features", "float", 0.05, 1.0),
            Parameter("rf_min_samples_leaf", "int", 1, 30, log=True),
        ),
        *only_for(
            "classifier",
            "logistic",
            Parameter("lr_C", "float", 1e-4, 1e3, log=True),
            Parameter("lr_balanced", "categorical", choices=("yes", "no")),
        ),
        *only_for(
            "classifier",
            "knn",
            Parameter("knn_neighbours", "int", 1, 60, log=True),
            Parameter("knn_p", "float", 1.0, 3.0),
            Parameter("knn_weights", "categorical", choices=("uniform", "distance")),
        ),
    )

    def __init__(self, path: Path) -> None:
        self._path = path
        with np.load(path) as arrays:
            names = {name.split("/")[1] for name in arrays if name.startswith("classification/")}
        self._names = sorted(names)
        self.tasks = [*range(len(self._names))]

    @property
    def splits(self) -> dict[Split, list[int]]:
        """Every second data set for validation, the others for tests."""
        return {"train": [], "validation": self.tasks[::2], "test": self.tasks[1::2]}

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        from sklearn.model_selection import StratifiedKFold, cross_val_score

        inputs, targets = _rows(self._path, self._names[task])
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
        return float(cross_val_score(_pipeline(configuration), inputs, targets, cv=folds).mean())


def _pipeline(configuration: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import SelectPercentile, f_classif
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import RobustScaler, StandardScaler
    from sklearn.svm import SVC

    c = configuration
    scaler = {"standard": StandardScaler(), "robust": RobustScaler(), "none": "passthrough"}
    if c["classifier"] == "svc":
        classifier: Any = SVC(C=c["svc_C"], gamma=c["svc_gamma"])
    elif c["classifier"] == "forest":
        classifier = RandomForestClassifier(
            c["rf_trees"],
            max_features=c["rf_max_features"],
            min_samples_leaf=c["rf_min_samples_leaf"],
            random_state=0,
        )
    elif c["classifier"] == "logistic":
        weight = "balanced" if c["lr_balanced"] == "yes" else None
        classifier = LogisticRegression(C=c["lr_C"], class_weight=weight, max_iter=50)
    else:
        classifier = KNeighborsClassifier(
            c["knn_neighbours"], p=c["knn_p"], weights=c["knn_weights"]
        )
    kept = SelectPercentile(f_classif, percentile=100.0 * c["kept"])
    return make_pipeline(scaler[c["scaler"]], kept, classifier)


@cache
def _rows(path: Path, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the rows of a data set that are used, without constant columns and rare classes."""
    with np.load(path) as arrays:
        inputs = arrays[f"classification/{name}/X"].astype(np.float64)
        targets = arrays[f"classification/{name}/y"].astype(np.int64)
    chosen = np.random.default_rng(0).permutation(len(targets))[:N_ROWS]
    inputs, targets = inputs[chosen], targets[chosen]
    labels, counts = np.unique(targets, return_counts=True)
    frequent = np.isin(targets, labels[counts >= 2 * N_FOLDS])
    inputs, targets = inputs[frequent], targets[frequent]
    median = np.nan_to_num(np.nanmedian(inputs, axis=0))
    inputs = np.where(np.isnan(inputs), median, inputs)
    return inputs[:, inputs.std(axis=0) > 0], targets
