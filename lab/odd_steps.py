"""Studies whose trials report at equal steps, or each at steps of its own.

The version of the product that is on the path is measured: see lab/2026-11-26-odd-steps.md.
"""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import optuna

from dre_plugins import DRESampler

N_TRIALS = 40


def quality(trial: optuna.Trial) -> float:
    """Return what a trial would reach without end, small is good."""
    rate = trial.suggest_float("lr", 1e-5, 1, log=True)
    dropout = trial.suggest_float("d", 0, 0.9)
    width = trial.suggest_int("w", 8, 512, log=True)
    momentum = trial.suggest_float("m", 0, 1)
    distance = 0.5 * abs(math.log10(rate) + 2.5) + abs(dropout - 0.3)
    return distance + 0.2 * abs(math.log2(width) - 6) + 0.5 * (momentum - 0.8) ** 2


def steps(are_equal: bool, seed: int) -> list[int]:
    """Return the 27 steps at which a trial reports, about 10, 20, … 270."""
    rng = random.Random(seed)
    return [n if are_equal else n + round(rng.uniform(-4.5, 4.5)) for n in range(10, 280, 10)]


def run(study: optuna.Study, are_equal: bool, seed: int, n_workers: int) -> float:
    """Return the best final value; at each turn one of the running trials reports."""
    rng, running, n_begun = random.Random(seed), [], 0
    while n_begun < N_TRIALS or running:
        while len(running) < n_workers and n_begun < N_TRIALS:
            trial = study.ask()
            speed = 50 + random.Random(f"{seed}{trial.number}").uniform(0, 40)
            wanted = steps(are_equal, trial.number + 1000 * seed)
            running.append((trial, quality(trial), speed, iter(wanted)))
            n_begun += 1
        chosen = rng.choice(running)
        trial, limit, speed, remaining = chosen
        step = next(remaining, None)
        if step is None:
            study.tell(trial, limit + 3 * math.exp(-270 / speed))
            running.remove(chosen)
            continue
        trial.report(limit + 3 * math.exp(-step / speed), step)
        if trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            running.remove(chosen)
    return study.best_value


def main(n_seeds: int) -> None:
    """Print mean best values."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    halving = optuna.pruners.SuccessiveHalvingPruner(min_resource=10, reduction_factor=3)
    for pruner, n_workers in ((optuna.pruners.NopPruner(), 4), (halving, 1), (halving, 4)):
        for are_equal in (True, False):
            best = []
            for seed in range(n_seeds):
                sampler = DRESampler(seed=seed, prior="universal")
                study = optuna.create_study(sampler=sampler, pruner=pruner)
                best.append(run(study, are_equal, seed, n_workers))
            name = f"{type(pruner).__name__} {n_workers} equal={are_equal}"
            print(f"{name}: {np.mean(best):.3f}", np.round(best, 2).tolist(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
