"""Problems of the tests, and a worker process: optuna_worker.py JOB STORAGE [arguments]."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import Trial
from presets import TINY

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend.settings import Settings


def open_storage(name: str) -> Any:
    """Return the storage of "sqlite:///file" or "journal:file"."""
    if name.startswith("journal:"):
        from optuna.storages.journal import JournalFileBackend

        return optuna.storages.JournalStorage(JournalFileBackend(name.removeprefix("journal:")))
    return name


def small_objective(trial: Trial) -> float:
    """Return a value on a space of 18 points."""
    x = trial.suggest_categorical("x", ["a", "b", "c"])
    y = trial.suggest_int("y", 0, 5)
    return y + "abc".index(x) / 3


def mixed_objective(trial: Trial) -> float:
    """Return a value on a conditional space of floats, integers and categories."""
    kind = trial.suggest_categorical("kind", ["a", "b"])
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    value = (math.log10(rate) + 2) ** 2
    if kind == "a":
        return value + abs(trial.suggest_int("depth", 1, 12) - 7)
    return value + 1 + trial.suggest_float("share", 0.0, 1.0)


def ask(storage: str, n_trials: int, n_startup_trials: int, meeting: str, n_workers: int) -> None:
    """Leave trials pending, together with other workers that start at the same moment."""
    study = optuna.load_study(
        study_name="s",
        storage=open_storage(storage),
        sampler=DRESampler(
            seed=7, n_startup_trials=n_startup_trials, settings=Settings(preset=TINY)
        ),
    )
    Path(meeting, str(os.getpid())).touch()
    while len(list(Path(meeting).iterdir())) < n_workers:
        time.sleep(0.005)
    points = []
    for _ in range(n_trials):
        trial = study.ask()
        small_objective(trial)
        points.append([trial.params["x"], trial.params["y"]])
    print(json.dumps({"points": points, "stats": study.sampler.stats}))


def table_objective(trial: Trial) -> float:
    """Return a value on a space of 60 points."""
    return abs(trial.suggest_int("x", 0, 5) - 3.0) + trial.suggest_int("y", 0, 9)


def meet_and_run(storage: str, meeting: Any) -> None:
    """Run two trials of start-up points, beside other workers that start at the same moment."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = DRESampler(seed=7, n_startup_trials=100)
    study = optuna.load_study(study_name="s", storage=open_storage(storage), sampler=sampler)
    meeting.wait()
    study.optimize(table_objective, n_trials=2)


def run(storage: str, n_trials: int, seed: int | None, n_threads: int = 1) -> None:
    """Run trials of a study, new or resumed, and print all of its parameters."""
    study = optuna.create_study(
        study_name="s",
        storage=None if storage == "memory" else open_storage(storage),
        load_if_exists=True,
        sampler=DRESampler(
            seed=seed, n_startup_trials=5, settings=Settings(preset=TINY, n_threads=n_threads)
        ),
    )
    study.optimize(mixed_objective, n_trials=n_trials)
    print(json.dumps([trial.params for trial in study.trials]))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    job, storage_name, *arguments = sys.argv[1:]
    {"ask": ask, "run": run}[job](storage_name, *map(json.loads, arguments))
