"""Spaces of 6 to 40 plain parameters: where is DRESampler beside the samplers of Optuna?

    PYTHONPATH=.:benchmarks:lab nice python lab/high_dimensions.py run TASKS 3 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/high_dimensions.py report runs.jsonl

TASKS is the number of parameters of five functions, "trees" (XGBoost's trees without a choice of
the booster, 11 parameters, validation tasks) or "weights" (weights of all features of nearest
neighbours and support vector machines, 13 to 18 parameters). The number is that of the seeds. A
run goes on where it stopped.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import optuna
from numpy.typing import NDArray
from paired_studies import compare, regrets, studied
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import append, read
from dre_bench.samplers import make_sampler

Array = NDArray[np.float64]
Objective = Callable[[optuna.Trial], float]  # larger is better

N_TRIALS, N_RANDOM = 60, 300
AT = (5, 10, 15, 20, 30, 40, 50, 60)
SAMPLERS = {
    "random": "random",
    "tpe": "tpe:multivariate=True",
    "gp": "gp",
    "dre": "dre:memory=False",
}
REFERENCE = "reference"  # random configurations of the task, whatever the seed


def sphere(z: Array) -> float:
    return float((z**2).mean())


def ackley(z: Array) -> float:
    waves = math.exp(np.cos(20 * math.pi * z).mean())
    return 20 - 20 * math.exp(-2 * math.sqrt((z**2).mean())) + math.e - waves


def levy(z: Array) -> float:
    w = 1 + 2.5 * z
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)).sum()
    return float(math.sin(math.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2)


def sparse(z: Array) -> float:
    """Five parameters matter."""
    return float((np.array([16, 8, 4, 2, 1]) * z[:5] ** 2).sum() + 0.5 * abs(z[0] - z[1]))


def decaying(z: Array) -> float:
    """Each parameter matters less than the one before."""
    return float((z**2 / np.arange(1, len(z) + 1) ** 1.5).sum())


def of_function(function: Callable[[Array], float], n: int, seed: int) -> Objective:
    """Return a function whose optimum lies at random within .2 and .8 of each range."""
    rng = np.random.default_rng([5, n, seed, len(function.__name__)])
    optimum, order = rng.uniform(0.2, 0.8, n), rng.permutation(n)

    def objective(trial: optuna.Trial) -> float:
        x = np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(n)])
        return -function((x - optimum)[order])

    return objective


def trees(task: int) -> Objective:
    scenario = scenario_of("rbv2_xgboost")

    def objective(trial: optuna.Trial) -> float:
        configuration = {"booster": "gbtree"}
        for parameter in scenario.parameters:
            if parameter.name != "booster" and parameter.is_active(configuration):
                configuration[parameter.name] = parameter.suggest(trial)
        return float(scenario.value(task, configuration))

    return objective


def weights(data: str, learner: str) -> Objective:
    load = {"wine": load_wine, "cancer": load_breast_cancer, "diabetes": load_diabetes}[data]
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, :16])
    is_regression, folds = data == "diabetes", KFold(5, shuffle=True, random_state=0)
    scoring = "r2" if is_regression else "neg_log_loss" if learner == "knn" else "accuracy"

    def objective(trial: optuna.Trial) -> float:
        scales = [trial.suggest_float(f"w{i}", 0.01, 10, log=True) for i in range(X.shape[1])]
        if learner == "knn":
            kind = KNeighborsRegressor if is_regression else KNeighborsClassifier
            n, p = trial.suggest_int("k", 1, 30), trial.suggest_categorical("p", [1, 2])
            model = kind(n, p=p, weights="distance")
        else:
            C = trial.suggest_float("C", 1e-2, 1e3, log=True)
            gamma = trial.suggest_float("gamma", 1e-4, 1, log=True)
            model = SVR(C=C, gamma=gamma) if is_regression else SVC(C=C, gamma=gamma)
        return float(cross_val_score(model, X * scales, y, cv=folds, scoring=scoring).mean())

    return objective


def objectives(tasks: str, seed: int) -> Iterator[tuple[str, Objective]]:
    if tasks == "trees":
        for task in scenario_of("rbv2_xgboost").validation:
            yield f"trees {task}", trees(task)
    elif tasks == "weights":
        for data in ("wine", "cancer", "diabetes"):
            for learner in ("knn", "svm"):
                yield f"weights {data} {learner}", weights(data, learner)
    else:
        for function in (sphere, ackley, levy, sparse, decaying):
            name = f"{tasks} {function.__name__} {seed}"
            yield name, of_function(function, int(tasks), seed)


def run(tasks: str, n_seeds: int, path: Path) -> None:
    done = {(row["task"], row["seed"], row["sampler"]) for row in read(path)}
    for seed in range(n_seeds):
        for task, objective in objectives(tasks, seed):
            for name, specification in {**SAMPLERS, REFERENCE: "random"}.items():
                if (task, seed, name) in done:
                    continue
                of_study = task if name == REFERENCE else f"{task} {seed}"
                sampler = make_sampler(specification, zlib.crc32(of_study.encode()), "")
                study = studied(sampler, objective, N_RANDOM if name == REFERENCE else N_TRIALS)
                row = {"group": tasks, "task": task, "seed": seed, "sampler": name}
                append(path, {**row, "values": [trial.value for trial in study.trials]})


def report(path: Path) -> None:
    """Print mean regrets: 0 is 0 of a function, or the best of all runs; 1 the random median."""
    rows = read(path)
    found: dict[str, dict[tuple[str, int], dict[str, Array]]] = {}
    for row in rows:
        same = [other for other in rows if other["task"] == row["task"]]
        median = np.median([o["values"] for o in same if o["sampler"] == REFERENCE])
        top = max(max(other["values"]) for other in same) if not row["group"].isdigit() else 0.0
        pair = found.setdefault(row["group"], {}).setdefault((row["task"], row["seed"]), {})
        pair[row["sampler"]] = regrets(row["values"], top, float(median), AT)
    for group, pairs in found.items():
        if whole := [pair for pair in pairs.values() if {*SAMPLERS} <= {*pair}]:
            print(group, end=": ")
            compare({name: [pair[name] for pair in whole] for name in SAMPLERS}, AT, "dre")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "run":
        run(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        report(Path(sys.argv[2]))
