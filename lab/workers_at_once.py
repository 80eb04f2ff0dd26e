"""Workers of one Optuna study that choose at the same moment: are their trials nearly the same?

    PYTHONPATH=VERSION python lab/workers_at_once.py FIRST LAST

Four processes with one seed tune one function in SQLite, 12 trials each. For each seed from FIRST
to LAST a line of JSON has the pairs of trials, at most five apart by number, that have the same
category and integer and differ in no float by .005 of its range or more; the conflicts that were
settled; and the best values after 16, 24, 32 and 48 trials.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import optuna

from dre_plugins import DRESampler

N_WORKERS, N_TRIALS = 4, 12
OPTIMUM = 0.31, 0.62, 0.45, 0.77, 0.2
NEAR = 0.005


def objective(trial: optuna.Trial) -> float:
    """Return the value of a bowl of five floats, an integer and a category."""
    floats = [trial.suggest_float(f"x{i}", 0, 1) for i in range(len(OPTIMUM))]
    kind = trial.suggest_categorical("kind", ["b", True, "a"])
    number = trial.suggest_int("number", 1, 9)
    time.sleep(0.05)
    distance = sum((x - best) ** 2 for x, best in zip(floats, OPTIMUM, strict=True))
    return distance + abs(number - 4) / 10 + (kind != "a") * 0.3


def work(url: str, seed: int, counters: Any) -> None:
    """Run the trials of one worker."""
    logging.disable(logging.INFO)
    study = optuna.load_study(study_name="study", storage=url, sampler=DRESampler(seed=seed))
    study.optimize(objective, n_trials=N_TRIALS)
    counters.put(dict(study.sampler.stats))


def distance(trial: optuna.trial.FrozenTrial, other: optuna.trial.FrozenTrial) -> float:
    """Return the largest difference of two trials in a float, 1 if they differ otherwise."""
    if any(trial.params[name] != other.params[name] for name in ("kind", "number")):
        return 1.0
    names = [f"x{i}" for i in range(len(OPTIMUM))]
    return max(abs(trial.params[name] - other.params[name]) for name in names)


def main() -> None:
    first, last = map(int, sys.argv[1:])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    context = multiprocessing.get_context("spawn")
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'study.db'}"
            study = optuna.create_study(study_name="study", storage=url)
            counters = context.Queue()
            workers = [
                context.Process(target=work, args=(url, seed, counters)) for _ in range(N_WORKERS)
            ]
            for worker in workers:
                worker.start()
            total: Counter[str] = Counter()
            for _ in workers:
                total.update(counters.get())
            for worker in workers:
                worker.join()
            trials = study.trials
        near = [
            (trial.number, other.number)
            for trial in trials
            for other in trials[trial.number + 1 : trial.number + N_WORKERS + 2]
            if distance(trial, other) < NEAR
        ]
        best = [min(trial.value or 0.0 for trial in trials[:n]) for n in (16, 24, 32, 48)]
        row = {"seed": seed, "near": near, "conflicts": total["conflicts"], "best": best}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
