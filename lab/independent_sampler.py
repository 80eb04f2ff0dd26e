"""DRESampler as the independent sampler of CMA-ES, for 2026-11-28-optuna-ecosystem-again.md.

CMA-ES chooses two numbers and leaves two categorical parameters to the independent sampler. Each
line printed is a study of 40 trials: its best value (0 is the optimum), and the share of trials
after the first ten that have the best choices of both. It needs the package cmaes.

    python lab/independent_sampler.py dre|tpe|random FIRST_SEED LAST_SEED
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable

import optuna
from optuna.samplers import BaseSampler, CmaEsSampler, RandomSampler, TPESampler

from dre_plugins.adapters.optuna import DRESampler

SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "dre": lambda seed: DRESampler(seed=seed),
    "tpe": lambda seed: TPESampler(seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
}
LOSS = {"a": 3, "b": 0, "c": 1.5, "d": 2}
FACTOR = {"u": 2, "v": 0, "w": 1}


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    rate = trial.suggest_float("lr", 1e-5, 1, log=True)
    first = trial.suggest_categorical("c", [*LOSS])
    second = trial.suggest_categorical("k", [*FACTOR])
    together = FACTOR[second] * (2 if first == "b" else 1)
    return (x - 1) ** 2 + (math.log10(rate) + 3) ** 2 + LOSS[first] + together


def main() -> None:
    name, first, last = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for seed in range(int(first), int(last) + 1):
        sampler = CmaEsSampler(seed=seed, independent_sampler=SAMPLERS[name](seed))
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=40)
        are_best = [(t.params["c"], t.params["k"]) == ("b", "v") for t in study.trials[10:]]
        share = sum(are_best) / len(are_best)
        print(json.dumps({"seed": seed, "best": study.best_value, "share": share}), flush=True)


if __name__ == "__main__":
    main()
