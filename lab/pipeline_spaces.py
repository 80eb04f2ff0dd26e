"""Search spaces of `studies_of_pipelines`: what a trial asks for, and what it is worth.

Larger values are better. A task is chosen by the seed of the study.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
from pipeline_objectives import fold_score, forecast_error

NUMERIC = "vehicle ionosphere sonar diabetes glass spambase waveform5000 column3C".split()
MIXED = "anneal credit-a cmc colic cylinder-bands heart-h hepatitis flags".split()
SERIES = "co2 elnino sunspots realgdp unemp cpi m1 tbilrate".split()


def branches(trial: optuna.Trial, seed: int) -> float:
    """Score a selection, a scaler and one of three learners with parameters of its own."""
    kept = trial.suggest_float("kept", 0.1, 1.0)
    scaler = trial.suggest_categorical("scaler", ["standard", "none"])
    learner = trial.suggest_categorical("learner", ["logistic", "trees", "vectors"])
    if learner == "logistic":
        given: dict[str, Any] = {"C": trial.suggest_float("C", 1e-3, 1e3, log=True)}
    elif learner == "trees":
        given = {
            "max_depth": trial.suggest_int("depth", 2, 20),
            "min_samples_leaf": trial.suggest_int("leaf", 1, 20, log=True),
        }
    else:
        given = {
            "C": trial.suggest_float("C svc", 1e-2, 1e3, log=True),
            "gamma": trial.suggest_float("gamma", 1e-4, 1.0, log=True),
        }
    return fold_score(NUMERIC[seed % 8], "one-hot", scaler, kept, learner, given)


def categories(trial: optuna.Trial, seed: int) -> float:
    """Score an encoder, a scaler, a selection and one of three learners with one number each."""
    encoder = trial.suggest_categorical("encoder", ["ordinal", "one-hot", "mean", "count", "none"])
    scaler = trial.suggest_categorical("scaler", ["none", "standard", "range", "quantile"])
    learner = trial.suggest_categorical("learner", ["logistic", "trees", "neighbours"])
    kept, size = trial.suggest_float("kept", 0.1, 1.0), trial.suggest_float("size", 0.0, 1.0)
    weight = trial.suggest_float("weight", 0.0, 1.0)
    given = {
        "logistic": {"C": 10.0 ** (6.0 * size - 3.0), "l1_ratio": weight, "solver": "saga"},
        "trees": {
            "min_samples_leaf": round(20.0 ** (1.0 - size)),
            "max_features": max(weight, 0.05),
        },
        "neighbours": {"n_neighbors": round(40.0 ** (1.0 - size)), "p": 1.0 + 2.0 * weight},
    }[learner]
    return fold_score(MIXED[seed % 8], encoder, scaler, kept, learner, given)


def forecast(trial: optuna.Trial, seed: int) -> float:
    """Score LightGBM on a series, in the space of mlforecast 1.1.0."""
    given = {
        "n_estimators": trial.suggest_int("n_estimators", 20, 1000, log=True),
        "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
        "lambda_l2": trial.suggest_float("lambda_l2", 1e-8, 10.0, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 4096, log=True),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.5, 1.0),
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
        "objective": trial.suggest_categorical("objective", ["l1", "l2"]),
    }
    target = trial.suggest_categorical("target_transforms_idx", range(7))
    lags = trial.suggest_categorical("lags_idx", range(7))
    means = trial.suggest_categorical("lag_transforms_idx", range(4))
    return -forecast_error(SERIES[seed % 8], target, lags, means, given)


def toy(trial: optuna.Trial, seed: int, effect: float) -> float:
    """Return minus a square of up to 25 or more, with one good category of five."""
    rng = np.random.default_rng([seed, 1])
    centre, good = rng.uniform(-3.0, 3.0), "abcde"[rng.integers(5)]
    x, rate = trial.suggest_float("x", -5, 5), trial.suggest_float("rate", 1e-6, 1.0, log=True)
    kind = trial.suggest_categorical("kind", list("abcde"))
    return -((x - centre) ** 2) - effect * (kind != good) - rate


def mixed(trial: optuna.Trial, seed: int) -> float:
    """Return a random function of two to five numbers around 0 and one or two categories.

    Categories add an effect of random size to it, some of them move its centre as well.
    """
    rng = np.random.default_rng([seed, 2])
    n = int(rng.integers(2, 6))
    centre, scale = rng.uniform(-0.6, 0.6, n), np.exp(0.7 * rng.normal(size=n))
    power = rng.choice([1.0, 2.0, 2.0])
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0] if rng.random() < 0.5 else np.eye(n)
    ripple, effects = rng.choice([0.0, 0.0, 0.3]), []
    for _ in range(int(rng.integers(1, 3))):
        size = int(rng.integers(2, 7))
        effect = np.exp(rng.uniform(np.log(0.03), 0.0)) * rng.normal(size=size)
        moved = rng.normal(size=(size, n)) * 0.2 * (rng.random() < 0.4)
        effects.append((effect - effect.max(), moved))

    def distance(x: np.ndarray, chosen: list[int]) -> float:
        moves = sum(moved[k] for k, (_, moved) in zip(chosen, effects, strict=True))
        z = (turn @ (x - centre - moves)) * scale
        return float((np.abs(z) ** power + ripple * (1.0 - np.cos(6.0 * z))).sum())

    draws, sizes = np.random.default_rng([seed, 3]), [len(effect) for effect, _ in effects]
    sample = [
        distance(draws.uniform(-1, 1, n), [int(draws.integers(k)) for k in sizes])
        for _ in range(400)
    ]
    x = np.array([trial.suggest_float(f"x{i}", -5, 5) for i in range(n)]) / 5.0
    names = [trial.suggest_categorical(f"k{j}", list("abcdef"[:k])) for j, k in enumerate(sizes)]
    chosen = ["abcdef".index(name) for name in names]
    gain = sum(effect[k] for k, (effect, _) in zip(chosen, effects, strict=True))
    return float(gain - distance(x, chosen) / np.std(sample))
