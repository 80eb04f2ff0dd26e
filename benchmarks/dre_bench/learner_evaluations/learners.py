"""The learners: an estimator for a configuration, and its predictions at each rung.

A configuration of None is the library's default: the estimator is made without arguments, but for
the seed, the number of threads and its silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dre_bench.learner_evaluations import preprocessing, staging
from dre_bench.learner_evaluations.networks import network
from dre_bench.learner_evaluations.parameters import Value
from dre_bench.learner_evaluations.spaces import (
    CLASSIFICATION,
    UNLIMITED_BOOSTING_DEPTH,
    UNLIMITED_DEPTH,
    UNLIMITED_LEAVES,
)

SEED = 0
LINEAR_ITERATIONS = 200

Arguments = Mapping[str, Value] | None
Staged = Callable[[Any, np.ndarray, Sequence[int]], list[np.ndarray]]


@dataclass(frozen=True)
class Learner:
    """How a learner is made and read.

    Attributes:
        build: makes an unfitted estimator from a configuration and the task.
        preprocessing: the kind of preprocessing before it.
        rungs: the parameter whose shares are the rungs (trees, epochs); None: it has no rungs.
        staged: predicts with the first r trees (epochs) for each r; needed where `rungs` is.
    """

    build: Callable[[Arguments, str], Any]
    preprocessing: str
    rungs: str | None = None
    staged: Staged | None = None


def _limit(arguments: dict[str, Any], name: str, unlimited: int, value: int | None = None) -> None:
    """Replace the end of the range that stands for no limit by the library's word for it."""
    if arguments.get(name) == unlimited:
        arguments[name] = value


def _class_weight(arguments: dict[str, Any]) -> None:
    if arguments.get("class_weight") == "none":
        arguments["class_weight"] = None


def _lightgbm(configuration: Arguments, task: str) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    arguments: dict[str, Any] = {"n_jobs": 1, "random_state": SEED, "verbose": -1}
    if configuration is not None:
        arguments |= {**configuration, "subsample_freq": 1}
        _limit(arguments, "max_depth", UNLIMITED_BOOSTING_DEPTH, -1)
    return (LGBMClassifier if task == CLASSIFICATION else LGBMRegressor)(**arguments)


def _xgboost(configuration: Arguments, task: str) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    arguments = {"n_jobs": 1, "random_state": SEED, "verbosity": 0, **(configuration or {})}
    return (XGBClassifier if task == CLASSIFICATION else XGBRegressor)(**arguments)


def _catboost(configuration: Arguments, task: str) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    arguments: dict[str, Any] = {
        "thread_count": 1,
        "random_seed": SEED,
        "verbose": 0,
        "allow_writing_files": False,
        **(configuration or {}),
    }
    return (CatBoostClassifier if task == CLASSIFICATION else CatBoostRegressor)(**arguments)


def _hist_gradient_boosting(configuration: Arguments, task: str) -> Any:
    arguments: dict[str, Any] = {"random_state": SEED, **(configuration or {})}
    if configuration is not None:
        arguments["early_stopping"] = False
        _limit(arguments, "max_depth", UNLIMITED_BOOSTING_DEPTH)
    classify = task == CLASSIFICATION
    return (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(
        **arguments
    )


def _forest(classifier: type, regressor: type) -> Callable[[Arguments, str], Any]:
    def build(configuration: Arguments, task: str) -> Any:
        arguments: dict[str, Any] = {"n_jobs": 1, "random_state": SEED, **(configuration or {})}
        _limit(arguments, "max_depth", UNLIMITED_DEPTH)
        _class_weight(arguments)
        if "bootstrap" in arguments:
            arguments["bootstrap"] = arguments["bootstrap"] == "true"
        return (classifier if task == CLASSIFICATION else regressor)(**arguments)

    return build


def _decision_tree(configuration: Arguments, task: str) -> Any:
    arguments: dict[str, Any] = {"random_state": SEED, **(configuration or {})}
    _limit(arguments, "max_depth", UNLIMITED_DEPTH)
    _limit(arguments, "max_leaf_nodes", UNLIMITED_LEAVES)
    _class_weight(arguments)
    return (DecisionTreeClassifier if task == CLASSIFICATION else DecisionTreeRegressor)(
        **arguments
    )


def _svm(configuration: Arguments, task: str) -> Any:
    """Make a machine; a classifier's probabilities are Platt's, from held-out decision values."""
    arguments: dict[str, Any] = dict(configuration or {})
    _class_weight(arguments)
    if task == CLASSIFICATION:
        return CalibratedClassifierCV(SVC(**arguments), method="sigmoid", cv=3, ensemble=False)
    return SVR(**arguments)


def _linear(configuration: Arguments, task: str) -> Any:
    arguments: dict[str, Any] = {"random_state": SEED, **(configuration or {})}
    if task != CLASSIFICATION:
        return ElasticNet(**arguments)
    _class_weight(arguments)
    if configuration is not None:
        penalty = arguments.pop("penalty")
        arguments["max_iter"] = LINEAR_ITERATIONS
        arguments["solver"] = "lbfgs" if penalty == "l2" else "saga"
        arguments["l1_ratio"] = {"l2": 0.0, "l1": 1.0}.get(penalty, arguments.get("l1_ratio"))
    return LogisticRegression(**arguments)


def _k_nearest_neighbours(configuration: Arguments, task: str) -> Any:
    classify = task == CLASSIFICATION
    return (KNeighborsClassifier if classify else KNeighborsRegressor)(**(configuration or {}))


def _torch_network(configuration: Arguments, task: str) -> Any:
    from dre_bench.learner_evaluations.torch_networks import torch_network

    return torch_network(configuration, task)


LEARNERS = {
    "lightgbm": Learner(_lightgbm, preprocessing.PLAIN, "n_estimators", staging.lightgbm),
    "xgboost": Learner(_xgboost, preprocessing.PLAIN, "n_estimators", staging.xgboost),
    "catboost": Learner(_catboost, preprocessing.PLAIN, "iterations", staging.catboost),
    "hist_gradient_boosting": Learner(
        _hist_gradient_boosting, preprocessing.PLAIN, "max_iter", staging.hist_gradient_boosting
    ),
    "random_forest": Learner(
        _forest(RandomForestClassifier, RandomForestRegressor),
        preprocessing.COMPLETE,
        "n_estimators",
        staging.forest,
    ),
    "extra_trees": Learner(
        _forest(ExtraTreesClassifier, ExtraTreesRegressor),
        preprocessing.COMPLETE,
        "n_estimators",
        staging.forest,
    ),
    "decision_tree": Learner(_decision_tree, preprocessing.COMPLETE),
    "svm": Learner(_svm, preprocessing.SCALED),
    "linear": Learner(_linear, preprocessing.SCALED),
    "k_nearest_neighbours": Learner(_k_nearest_neighbours, preprocessing.SCALED),
    "mlp": Learner(network, preprocessing.SCALED, "epochs", staging.network),
    "network": Learner(_torch_network, preprocessing.SCALED, "epochs", staging.network),
}


def predict(estimator: Any, inputs: np.ndarray, task: str) -> np.ndarray:
    """Predict probabilities `[M, K]` or numbers `[M]`."""
    if task == CLASSIFICATION:
        return np.asarray(estimator.predict_proba(inputs))
    return np.asarray(estimator.predict(inputs)).ravel()
