"""Objectives of `pipeline_spaces`: learners of scikit-learn, and LightGBM on a series."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

DATA = os.environ.get("DATASETS", "datasets.npz")  # of the tabular data sets
N_ROWS, N_FOLDS, N_TEST = 300, 3, 30
QUARTERLY = ("realgdp", "unemp", "cpi", "m1", "tbilrate")


@cache
def _folds(name: str, encoder: str) -> list[Any]:
    """Return encoded inputs and classes of each fold, to train on and to test."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import OneHotEncoder, TargetEncoder

    with np.load(DATA) as data:
        inputs, is_category, classes = (
            data[f"classification/{name}/{part}"] for part in ("X", "is_category", "y")
        )
    _, classes = np.unique(classes, return_inverse=True)
    classes = np.minimum(classes, 1) if np.bincount(classes).min() < 2 * N_FOLDS else classes
    rows = np.random.default_rng(0).permutation(len(classes))[:N_ROWS]
    inputs, classes = inputs[rows].astype(float), classes[rows]
    inputs = np.where(np.isnan(inputs), np.nan_to_num(np.nanmedian(inputs, 0)), inputs)
    numbers, codes = inputs[:, ~is_category], inputs[:, is_category]
    folds = []
    cut = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    for train, test in cut.split(inputs, classes):
        encoded = codes
        if not codes.shape[1] or encoder == "none":
            encoded = codes[:, :0] if numbers.shape[1] else codes
        elif encoder == "one-hot":
            one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
            encoded = one_hot.fit(codes[train]).transform(codes)
        elif encoder == "mean":
            encoded = (
                TargetEncoder(random_state=0).fit(codes[train], classes[train]).transform(codes)
            )
        elif encoder == "count":
            counts = [np.bincount(column[train].astype(int), minlength=999) for column in codes.T]
            encoded = np.stack([n[c.astype(int)] for n, c in zip(counts, codes.T, strict=True)], 1)
        columns = np.hstack([numbers, encoded])
        columns = columns[:, columns[train].std(0) > 0]
        folds.append((columns[train], classes[train], columns[test], classes[test]))
    return folds


@cache
def _prepared(name: str, encoder: str, scaler: str) -> list[Any]:
    """Return the folds scaled, and the order of their columns by the F statistic."""
    from sklearn.feature_selection import f_classif
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    scalers = {
        "standard": StandardScaler(),
        "range": MinMaxScaler(),
        "quantile": QuantileTransformer(n_quantiles=100, random_state=0),
    }
    folds = []
    for train, classes, test, test_classes in _folds(name, encoder):
        order = np.argsort(-np.nan_to_num(f_classif(train, classes)[0]), kind="stable")
        if scaler != "none":
            fitted = scalers[scaler].fit(train)
            train, test = fitted.transform(train), fitted.transform(test)
        folds.append((train, classes, test, test_classes, order))
    return folds


def fold_score(
    name: str, encoder: str, scaler: str, kept: float, learner: str, given: Mapping[str, Any]
) -> float:
    """Return the mean area under the ROC curve, one class against the rest, of three folds."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    makers: dict[str, Any] = {
        "logistic": lambda: LogisticRegression(max_iter=100, random_state=0, **given),
        "trees": lambda: ExtraTreesClassifier(15, random_state=0, **given),
        "neighbours": lambda: KNeighborsClassifier(**given),
        "vectors": lambda: SVC(**given),
    }
    scores = []
    for train, classes, test, test_classes, order in _prepared(name, encoder, scaler):
        columns = order[: max(1, round(kept * len(order)))]
        model = makers[learner]().fit(train[:, columns], classes)
        outputs = "decision_function" if learner == "vectors" else "predict_proba"
        predicted = getattr(model, outputs)(test[:, columns])
        if classes.max() == 1 and predicted.ndim == 2:
            predicted = predicted[:, 1]
        truth = test_classes if classes.max() == 1 else np.eye(classes.max() + 1)[test_classes]
        scores.append(roc_auc_score(truth, predicted))
    return float(np.mean(scores))


@cache
def _series(name: str) -> np.ndarray:
    import statsmodels.api as sm

    if name == "co2":
        values = sm.datasets.co2.load_pandas().data.co2.resample("MS").mean().interpolate()
    elif name == "elnino":
        values = sm.datasets.elnino.load_pandas().data.drop(columns="YEAR").stack()
    elif name == "sunspots":
        values = sm.datasets.sunspots.load_pandas().data.SUNACTIVITY
    else:
        values = sm.datasets.macrodata.load_pandas().data[name]
    return np.asarray(values, dtype=float)[-300:]


def forecast_error(
    name: str, target: int, lags: int, means: int, given: Mapping[str, Any]
) -> float:
    """Return the mean absolute error of the next value over two windows, in deviations."""
    from lightgbm import LGBMRegressor

    season = 4 if name in QUARTERLY else 12
    values = _series(name)
    logs = np.log(values - values.min() + values.std()) if target in (3, 4, 6) else values
    # What is known of each value beforehand, which differences are taken to.
    last, year, before = (np.roll(logs, n) for n in (1, season, season + 1))
    known = last if target in (2, 4) else last + year - before if target > 4 else 0.0 * logs
    change = logs - known
    at = [(), (season,), range(1, season + 1), (season, 2 * season), (1,), (1, 2, 3)]
    columns = [np.roll(change, lag) for lag in [*at, range(1, 2 * season + 1)][lags]]
    columns.append(np.arange(len(values)) % season)
    if means in (1, 2):
        smooth = np.frompyfunc(lambda mean, new: 0.1 * mean + 0.9 * new, 2, 1)
        mean = smooth.accumulate(change.astype(object)).astype(float)
        columns += [np.roll(mean, lag) for lag in (1, season)[:means]]
    elif means == 3:
        columns.append(np.mean([np.roll(change, lag) for lag in range(1, season + 1)], 0))
    inputs, start, errors = np.stack(columns, 1), 3 * season + 1, []
    for end in (len(values) - N_TEST, len(values)):
        train, test = slice(start, end - N_TEST), slice(end - N_TEST, end)
        model = LGBMRegressor(
            bagging_freq=1, learning_rate=0.05, n_jobs=1, verbosity=-1, random_state=0, **given
        )
        model.fit(inputs[train], change[train])
        predicted = known[test] + model.predict(inputs[test])
        if target in (3, 4, 6):
            predicted = np.exp(predicted) + values.min() - values.std()
        errors.append(np.abs(predicted - values[test]).mean())
    return float(np.mean(errors) / values.std())
