"""Metrics of predictions, each from arrays alone."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from dre_bench.learner_evaluations.spaces import CLASSIFICATION

# Probabilities are at least this much before the logarithm is taken: the error of float32.
LEAST_PROBABILITY = 1e-7

METRICS = {"classification": ("accuracy", "log_loss", "auc"), "regression": ("r2", "rmse")}


def metrics_of(task: str, target: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Compute the metrics of a task.

    Args:
        task: `classification` or `regression`.
        target: classes 0, 1, … or numbers `[M]`.
        predicted: probabilities `[M, K]` or numbers `[M]`.

    Raises:
        ValueError: if a prediction is not finite.
    """
    if not np.isfinite(predicted).all():
        raise ValueError("predictions are not finite")
    if task == CLASSIFICATION:
        return {
            "accuracy": float((predicted.argmax(axis=1) == target).mean()),
            "log_loss": log_loss(target, predicted),
            "auc": auc(target, predicted),
        }
    errors = np.square(predicted - target)
    return {"r2": float(1 - errors.mean() / np.var(target)), "rmse": float(np.sqrt(errors.mean()))}


def log_loss(target: np.ndarray, probabilities: np.ndarray) -> float:
    """Compute the mean negative logarithm of the probability of the true class."""
    clipped = np.clip(probabilities.astype(float), LEAST_PROBABILITY, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return float(-np.log(clipped[np.arange(len(target)), target]).mean())


def auc(target: np.ndarray, probabilities: np.ndarray) -> float:
    """Compute the area under the ROC curve, one class against the rest, averaged over classes."""
    columns = probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities
    classes = np.arange(probabilities.shape[1])[-columns.shape[1] :]
    positive = target[:, None] == classes
    counts = positive.sum(axis=0)
    ranks = np.where(positive, rankdata(columns, axis=0), 0).sum(axis=0)
    areas = (ranks - counts * (counts + 1) / 2) / (counts * (len(target) - counts))
    return float(areas.mean())
