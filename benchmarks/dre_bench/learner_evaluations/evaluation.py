"""One cross-validated evaluation of a configuration on a data set."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.datasets import Dataset, load
from dre_bench.learner_evaluations.defaults import default_configuration
from dre_bench.learner_evaluations.learners import LEARNERS, Learner, predict
from dre_bench.learner_evaluations.metrics import METRICS, metrics_of
from dre_bench.learner_evaluations.parameters import Configuration, Value
from dre_bench.learner_evaluations.preprocessing import Split, splits
from dre_bench.learner_evaluations.rungs import SHARES, rungs_of

DIGITS = 6


@lru_cache(maxsize=6)
def _prepared(archive: Path, name: str, kind: str) -> tuple[Dataset, list[Split]]:
    data = load(archive, name)
    return data, splits(data, kind)


def evaluate(
    archive: Path, dataset: str, learner: str, configuration: Mapping[str, Value] | None
) -> dict[str, Any]:
    """Evaluate a configuration by cross-validation with the fixed folds of the data set.

    Args:
        archive: the archive of data sets.
        dataset: `TASK/NAME`.
        learner: a name of `LEARNERS`.
        configuration: what to evaluate; None: the library's default.

    Returns:
        `metrics` (a list `[FOLDS, RUNGS]` for each, None at rungs that the learner has not),
        `fit_seconds` and `predict_seconds` (processor time of all folds), and `configuration`.
    """
    data, folds = _prepared(archive, dataset, LEARNERS[learner].preprocessing)
    return evaluate_folds(data.task, folds, learner, configuration)


def evaluate_folds(
    task: str, folds: list[Split], learner: str, configuration: Mapping[str, Value] | None
) -> dict[str, Any]:
    """Evaluate a configuration on prepared folds; `evaluate` says what is returned."""
    metrics: dict[str, list[list[float | None]]] = {name: [] for name in METRICS[task]}
    seconds = {"fit_seconds": 0.0, "predict_seconds": 0.0}
    resolved: Configuration = dict(configuration or {})
    for split in folds:
        estimator = LEARNERS[learner].build(configuration, task)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of iterations that have not converged
            seconds["fit_seconds"] += _timed(
                lambda: estimator.fit(split.train_inputs, split.train_target)  # noqa: B023
            )[0]
            elapsed, last = _timed(lambda: predict(estimator, split.test_inputs, task))  # noqa: B023
            seconds["predict_seconds"] += elapsed
            lower = _lower_rungs(LEARNERS[learner], estimator, split.test_inputs, configuration)
        if configuration is None and not resolved:
            resolved = default_configuration(learner, task, estimator, split.train_inputs)
        values = [
            None if predicted is None else metrics_of(task, split.test_target, predicted)
            for predicted in (*lower, last)
        ]
        for name in metrics:
            metrics[name].append(
                [None if value is None else round(value[name], DIGITS) for value in values]
            )
    return {
        "configuration": resolved,
        "metrics": metrics,
        **{name: round(value, 4) for name, value in seconds.items()},
    }


def mean_metric(metrics: Mapping[str, list[list[float | None]]], name: str) -> np.ndarray:
    """Average a metric over folds: `[RUNGS]`, NaN where there is no such rung."""
    values = np.array(metrics[name], dtype=float)
    return values.mean(axis=0)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Do some work and measure the processor time that it takes, in seconds."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _lower_rungs(
    learner: Learner, estimator: Any, inputs: np.ndarray, configuration: Mapping[str, Value] | None
) -> list[np.ndarray | None]:
    """Predict at all rungs but the last; None each where there are none."""
    if configuration is None or learner.rungs is None or learner.staged is None:
        return [None] * (len(SHARES) - 1)
    lower = rungs_of(int(configuration[learner.rungs]))[:-1]
    return list(learner.staged(estimator, inputs, lower))


def loss_of(record: Mapping[str, Any], name: str) -> float:
    """Read a metric of a finished evaluation so that smaller is better; infinite if it failed."""
    if record["status"] != "ok":
        return math.inf
    value = float(mean_metric(record["metrics"], name)[-1])
    return value if name in ("log_loss", "rmse") else -value
