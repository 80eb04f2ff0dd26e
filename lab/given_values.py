"""Best values of trials with some parameters given, after free ones.

    PYTHONPATH=. nice python lab/given_values.py given.jsonl

Two of five parameters, of `mixed` the category, are enqueued with random values ten times, after
20 free trials. Writes a line for each function and seed: the best value after each of the ten.
"""

import json
import sys

import numpy as np
import optuna

from dre_plugins import DRESampler

N_FREE, N_GIVEN, N_SEEDS = 20, 10, 24
NAMES = [f"p{place}" for place in range(5)]
CATEGORIES = "abcd"


def levy(u: np.ndarray) -> float:
    w = 1 + (20 * u - 11) / 4
    middle = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)
    return np.sin(np.pi * w[0]) ** 2 + middle.sum() + (w[-1] - 1) ** 2


def rosen(u: np.ndarray) -> float:
    x = 4 * u - 2
    return np.log1p((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def ackley(u: np.ndarray) -> float:
    x = 10 * (u - 0.37)
    spread = np.exp(-0.2 * np.sqrt((x * x).mean()))
    return -20 * spread - np.exp(np.cos(2 * np.pi * x).mean()) + 20 + np.e


def chain(u: np.ndarray) -> float:
    return 5 * (np.diff(u) ** 2).sum() + (u[0] - 0.2) ** 2


def mixed(u: np.ndarray) -> float:
    kind = int(3.999 * u[0])
    return ((u[1:] - 0.2 * kind - 0.1) ** 2).sum() + 0.3 * abs(kind - 2)


def best_values(function, seed: int) -> list[float]:
    """Return the best value so far of each trial with given values."""
    draws = np.random.default_rng(seed).random(2)
    given = dict(zip(NAMES, draws.tolist(), strict=False))
    if function is mixed:
        given = {"p0": CATEGORIES[int(3.999 * draws[0])]}

    def objective(trial: optuna.Trial) -> float:
        if function is mixed:
            first = (CATEGORIES.index(trial.suggest_categorical("p0", [*CATEGORIES])) + 0.5) / 4
        else:
            first = trial.suggest_float("p0", 0, 1)
        rest = [trial.suggest_float(name, 0, 1) for name in NAMES[1:]]
        return float(function(np.array([first, *rest])))

    study = optuna.create_study(sampler=DRESampler(seed=seed))
    study.optimize(objective, n_trials=N_FREE)
    for _ in range(N_GIVEN):
        study.enqueue_trial(given)
    study.optimize(objective, n_trials=N_GIVEN)
    values = [trial.value for trial in study.trials[N_FREE:]]
    return np.minimum.accumulate(values).tolist()


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with open(sys.argv[1], "w") as results:
        for function in (levy, rosen, ackley, chain, mixed):
            for seed in range(N_SEEDS):
                line = [function.__name__, seed, best_values(function, seed)]
                results.write(json.dumps(line) + "\n")
