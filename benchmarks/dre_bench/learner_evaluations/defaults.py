"""The library's default as a configuration of the space, for the data set at hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.parameters import Configuration, Value
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, space_of

DEFAULT_BATCH = 200


def default_configuration(
    learner: str, task: str, estimator: Any, inputs: np.ndarray
) -> Configuration:
    """Write down what a fitted default estimator used.

    Args:
        learner: a name of `LEARNERS`.
        task: `classification` or `regression`.
        estimator: the estimator, fitted.
        inputs: what it was fitted to `[N, Q]`.
    """
    chosen = _chosen_from_data(learner, task, estimator, inputs)
    configuration: Configuration = {}
    for parameter in space_of(learner, task):
        value = chosen.get(parameter.name, parameter.default)
        if value is not None and parameter.is_active(configuration):
            configuration[parameter.name] = value
    return configuration


def _chosen_from_data(
    learner: str, task: str, estimator: Any, inputs: np.ndarray
) -> dict[str, Value]:
    """Give the defaults that depend on the data."""
    if learner == "svm":
        return {"gamma": float(1 / (inputs.shape[1] * inputs.var()))}
    if learner == "mlp":
        return {"batch_size": min(DEFAULT_BATCH, len(inputs)), "epochs": int(estimator.n_iter_)}
    if learner in ("random_forest", "extra_trees") and task == CLASSIFICATION:
        return {"max_features": math.sqrt(inputs.shape[1]) / inputs.shape[1]}
    if learner == "catboost":
        names = {"learning_rate", "bootstrap_type", "bagging_temperature", "subsample"}
        used = estimator.get_all_params()
        return {name: used[name] for name in names if name in used}
    return {}
