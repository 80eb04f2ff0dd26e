"""Studies of Optuna in which branches ask for one name in ranges of their own.

PYTHONPATH=. python lab/ranges_of_branches.py disjoint 0 12
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import optuna

from dre_plugins.adapters.optuna import DRESampler

Objective = Callable[[optuna.Trial], float]


def two_models(
    a: tuple[float, float], b: tuple[float, float], best: dict[str, float]
) -> Objective:
    def objective(trial: optuna.Trial) -> float:
        model = trial.suggest_categorical("model", ["a", "b"])
        rate = trial.suggest_float("lr", *(a if model == "a" else b), log=True)
        value = math.log10(rate / best[model]) ** 2
        value += 0.1 * (trial.suggest_float("x", -3, 5) - 1) ** 2 + 0.3 * (model == "b")
        return value + ((trial.suggest_int("depth", 1, 10) - 4) ** 2 / 20 if model == "a" else 0.0)

    return objective


def split(trial: optuna.Trial) -> float:
    low = "abc".index(trial.suggest_categorical("o", ["a", "b", "c"]))
    y = trial.suggest_float("y", low, low + 1) - low - 0.37
    z = trial.suggest_float("z", 0, 1) - 0.3
    return 4 * y**2 + z**2 + 0.02 * low + 0.5 * y * z


def optimisers(trial: optuna.Trial) -> float:
    is_sgd = trial.suggest_categorical("o", ["sgd", "adam"]) == "sgd"
    low, high, best = (1e-3, 1.0, -1.0) if is_sgd else (1e-5, 1e-2, -3.5)
    far = math.log10(trial.suggest_float("lr", low, high, log=True)) - best
    return 0.1 * far**2 + (trial.suggest_float("z", 0, 1) - 0.3) ** 2 + 0.05 * is_sgd


def wide(trial: optuna.Trial) -> float:
    is_a = trial.suggest_categorical("b", ["a", "b"]) == "a"
    y = trial.suggest_float("y", 0, 1 if is_a else 50)
    value = (y - 0.3) ** 2 + 0.2 if is_a else ((y - 20) / 50) ** 2
    return value + (trial.suggest_float("z", 0, 1) - 0.3) ** 2


OBJECTIVES: dict[str, Objective] = {
    "disjoint": two_models((1e-5, 1e-3), (1e-2, 1.0), {"a": 1e-4, "b": 0.2}),
    "narrow": two_models((1e-4, 1e-1), (1e-2, 1.0), {"a": 3e-3, "b": 0.2}),
    "split": split,
    "optimisers": optimisers,
    "wide": wide,
}


def main(name: str, first: int, last: int) -> None:
    """Print the regret of each study after 12, 20, 30 and 40 trials, and random values."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for seed in range(first, last):
        sampler = DRESampler(seed=seed, prior="universal")
        study = optuna.create_study(sampler=sampler)
        study.optimize(OBJECTIVES[name], n_trials=40)
        best = np.minimum.accumulate([trial.value for trial in study.trials])[[11, 19, 29, 39]]
        print(name, seed, np.round(best, 5).tolist(), sampler.stats["independent"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
