"""Studies whose steps are problem instances, for lab/2026-11-27-optuna-ecosystem.md.

Four parameters of simulated annealing are tuned by its mean over 20 tours of travelling salesmen,
in random order. Each line printed is a study: the mean of its best configuration in 80 more runs,
and the mean of its trials after the first ten.

    python lab/problem_instances.py SAMPLER REPORTS PRUNER WORKERS FIRST_SEED LAST_SEED

SAMPLER: dre or tpe. REPORTS: silent (none), up (steps 0 to 19) or down (the same, the easiest
instance last). PRUNER: none, return (`WilcoxonPruner`, a pruned trial returns its mean) or raise.
"""

from __future__ import annotations

import json
import math
import random
import sys
import warnings

import numpy as np
import optuna
from optuna.samplers import BaseSampler, TPESampler

from dre_plugins.adapters.optuna import DRESampler

N_INSTANCES = 20
N_STEPS = 400
BUDGET = 30 * N_INSTANCES  # instances annealed in a study

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def distances(number: int) -> list[list[float]]:
    """Return the distances of an instance: 10 to 26 towns on a square of side 1 to 3."""
    rng = np.random.default_rng(number)
    towns = rng.random((10 + number % 5 * 4, 2)) * (1 + number % 3)
    return np.sqrt(((towns[:, None] - towns[None]) ** 2).sum(-1)).tolist()


INSTANCES = [distances(number) for number in range(N_INSTANCES)]


def annealed(
    number: int, *, hot: float, cold: float, shape: float, swap: float, seed: int
) -> float:
    """Return the length of the tour that annealing ends with."""
    rng, length = random.Random(seed), INSTANCES[number]
    n = len(length)
    tour = list(range(n))
    rng.shuffle(tour)
    for step in range(N_STEPS):
        cooled = (step / N_STEPS) ** shape
        heat = hot ** (1 - cooled) * cold**cooled
        i = rng.randrange(n - 1)
        j = rng.randrange(i + 1, n)
        if rng.random() < swap:
            other = tour[:]
            other[i], other[j] = other[j], other[i]
            edges = {i, (i + 1) % n, j, (j + 1) % n}
            more = sum(
                length[other[k - 1]][other[k]] - length[tour[k - 1]][tour[k]] for k in edges
            )
        elif i == 0 and j == n - 1:
            continue
        else:
            other = tour[:i] + tour[i : j + 1][::-1] + tour[j + 1 :]
            before, after = tour[i - 1], tour[(j + 1) % n]
            more = length[before][tour[j]] + length[tour[i]][after]
            more -= length[before][tour[i]] + length[tour[j]][after]
        if more <= 0 or rng.random() < math.exp(-more / heat):
            tour = other
    # No two are equal: scipy takes a second for a test with ties.
    return sum(length[tour[k - 1]][tour[k]] for k in range(n)) * (1 + 1e-7 * rng.random())


def configuration(trial: optuna.Trial) -> dict[str, float]:
    return {
        "hot": trial.suggest_float("hot", 1e-3, 100, log=True),
        "cold": trial.suggest_float("cold", 1e-4, 10, log=True),
        "shape": trial.suggest_float("shape", 0.2, 5, log=True),
        "swap": trial.suggest_float("swap", 0, 1),
    }


def study_of(sampler: BaseSampler, reports: str, pruner: str, workers: int, seed: int) -> dict:
    """Run a study with workers in turn, drawn at random for each instance."""
    stops = optuna.pruners.WilcoxonPruner() if pruner != "none" else optuna.pruners.NopPruner()
    study = optuna.create_study(sampler=sampler, pruner=stops)
    rng = np.random.default_rng(seed)
    running: list[tuple[optuna.Trial, dict, np.ndarray, list[float]]] = []
    for _ in range(BUDGET):
        while len(running) < workers:
            trial = study.ask()
            running.append((trial, configuration(trial), rng.permutation(N_INSTANCES), []))
        entry = running[int(rng.integers(len(running)))]
        trial, values, order, results = entry
        number = int(order[len(results)])
        of_run = 100_000 * seed + 100 * trial.number + number
        results.append(annealed(number, seed=of_run, **values))
        is_pruned = False
        if reports != "silent":
            step = N_INSTANCES - 1 - number if reports == "down" else number
            trial.report(results[-1], step)
            is_pruned = trial.should_prune()
        if is_pruned and pruner == "raise":
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            running.remove(entry)
        elif is_pruned or len(results) == N_INSTANCES:
            study.tell(trial, float(np.mean(results)))
            running.remove(entry)
    complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    again = [
        annealed(number, seed=1_000_000 + 100 * number + run, **study.best_params)
        for number in range(N_INSTANCES)
        for run in range(4)
    ]
    return {
        "best": float(np.mean(again)),
        "trials": float(np.mean([trial.value for trial in complete[10:]])),
        "n": len(study.trials),
        "stats": dict(getattr(sampler, "stats", {})),
    }


def main() -> None:
    name, reports, pruner, workers, first, last = sys.argv[1:]
    for seed in range(int(first), int(last) + 1):
        sampler: BaseSampler = (
            DRESampler(seed=seed)
            if name == "dre"
            else TPESampler(seed=seed, multivariate=True, constant_liar=int(workers) > 1)
        )
        result = study_of(sampler, reports, pruner, int(workers), seed)
        print(json.dumps({"seed": seed, **result}), flush=True)


if __name__ == "__main__":
    main()
