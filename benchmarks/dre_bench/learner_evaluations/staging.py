"""Predictions of a fitted estimator with the first trees only, or after the first epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def _predictor(estimator: Any) -> Any:
    """Give the method that predicts probabilities, or numbers."""
    return getattr(estimator, "predict_proba", None) or estimator.predict


def lightgbm(estimator: Any, inputs: np.ndarray, rungs: Sequence[int]) -> list[np.ndarray]:
    """Predict with the first trees of LightGBM."""
    return [np.asarray(_predictor(estimator)(inputs, num_iteration=rung)) for rung in rungs]


def xgboost(estimator: Any, inputs: np.ndarray, rungs: Sequence[int]) -> list[np.ndarray]:
    """Predict with the first trees of XGBoost."""
    return [_predictor(estimator)(inputs, iteration_range=(0, rung)) for rung in rungs]


def catboost(estimator: Any, inputs: np.ndarray, rungs: Sequence[int]) -> list[np.ndarray]:
    """Predict with the first trees of CatBoost."""
    return [_predictor(estimator)(inputs, ntree_end=rung) for rung in rungs]


def hist_gradient_boosting(
    estimator: Any, inputs: np.ndarray, rungs: Sequence[int]
) -> list[np.ndarray]:
    """Predict with the first trees of scikit-learn's gradient boosting."""
    staged = getattr(estimator, "staged_predict_proba", None) or estimator.staged_predict
    found = {}
    for rung, predicted in enumerate(staged(inputs), start=1):
        if rung in rungs:
            found[rung] = predicted
        if rung >= max(rungs):
            break
    return [found[rung] for rung in rungs]


def forest(estimator: Any, inputs: np.ndarray, rungs: Sequence[int]) -> list[np.ndarray]:
    """Predict with the first trees of a forest: the mean of what they predict."""
    single = np.ascontiguousarray(inputs, dtype=np.float32)
    found: dict[int, np.ndarray] = {}
    total: np.ndarray | float = 0.0
    for rung, tree in enumerate(estimator.estimators_[: max(rungs)], start=1):
        total = total + _predictor(tree)(single)
        if rung in rungs:
            found[rung] = np.asarray(total) / rung
    return [found[rung] for rung in rungs]


def network(estimator: Any, inputs: np.ndarray, rungs: Sequence[int]) -> list[np.ndarray]:
    """Predict with the weights that a network had after the first epochs."""
    return [estimator.predict_after(inputs, rung) for rung in rungs]
