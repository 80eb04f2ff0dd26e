"""Objectives that have the same value outside of a region.

    PYTHONPATH=. nice python lab/equal_trials.py DRESampler 12

Prints a line for each problem and seed: the first trial with another value than the first one
(99: none), and the best values after 10, 20, 30 and 40 trials.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping

import numpy as np
import optuna

from dre_plugins import DRESampler

Objective = Callable[[optuna.Trial, int], float]


def cone(n_parameters: int, radius: float) -> Objective:
    """Return the distance from a random point, at most a radius."""

    def objective(trial: optuna.Trial, seed: int) -> float:
        rng = np.random.default_rng([seed, 8, n_parameters])
        optimum = rng.uniform(0.15, 0.85, n_parameters)
        x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(n_parameters)]
        return min(math.dist(x, optimum), radius)

    return objective


def learning_rate_band(trial: optuna.Trial, seed: int) -> float:
    """Return 1 unless the learning rate is in a band of .7 of its six decades."""
    optimum = np.random.default_rng([seed, 77]).uniform(-4, -1)
    rate = math.log10(trial.suggest_float("lr", 1e-6, 1, log=True))
    decay = math.log10(trial.suggest_float("wd", 1e-6, 1e-1, log=True))
    layers, momentum = trial.suggest_int("layers", 1, 8), trial.suggest_float("mom", 0, 0.99)
    if abs(rate - optimum) > 0.35:
        return 1.0
    rest = 0.01 * (layers - 5) ** 2 + 0.1 * (momentum - 0.7) ** 2 + 0.01 * (decay + 4) ** 2
    return 0.2 + (rate - optimum) ** 2 + rest


OBJECTIVES: Mapping[str, Objective] = {
    "cone of 3": cone(3, 0.3),
    "cone of 5": cone(5, 0.5),
    "learning rate": learning_rate_band,
}

if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler, n_seeds = sys.argv[1], int(sys.argv[2])
    kind = DRESampler if sampler == "DRESampler" else getattr(optuna.samplers, sampler)
    for name, objective in OBJECTIVES.items():
        for seed in range(n_seeds):
            study = optuna.create_study(sampler=kind(seed=seed))
            study.optimize(lambda trial: objective(trial, seed), n_trials=40)  # noqa: B023
            values = [trial.value for trial in study.trials]
            first = next((i for i, value in enumerate(values) if value != values[0]), 99)
            best = np.minimum.accumulate(values)[[9, 19, 29, 39]].tolist()
            print(json.dumps([name, sampler, seed, first, *best]), flush=True)
