"""Tune a function with a conditional parameter by the sampler that OptunaHub loads."""

from __future__ import annotations

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    if trial.suggest_categorical("kind", ["plain", "deep"]) == "deep":
        return (x - 2) ** 2 + trial.suggest_float("penalty", 1e-3, 1.0, log=True)
    return (x - 2) ** 2 + 0.5


module = optunahub.load_module(package="samplers/dre")
study = optuna.create_study(sampler=module.DRESampler(seed=0))
study.optimize(objective, n_trials=20)
print(study.best_value, study.best_params)
