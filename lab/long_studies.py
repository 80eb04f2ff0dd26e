"""Studies of 300 trials: how many of them should the models be fitted to?

    PYTHONPATH=.:benchmarks:lab nice python lab/long_studies.py run 0 2 runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/long_studies.py report runs.jsonl

Validation tasks of XGBoost, and functions. The versions of a study
have their first 128 trials in common, as they differ only afterwards. The numbers are the first
and last seed. A run goes on where it stopped.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from paired_studies import Run, compare, regrets, runs

from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.maximise import reference
from dre_plugins import DRESampler, Settings

FUNCTIONS = {"levy8": 4, "ackley5": 4, "rosenbrock5": 1, "hartmann6": 1}
N_COMMON, N_TRIALS = 128, 300
AT = (128, 150, 175, 200, 250, 300)
VERSIONS = {
    "64 trials": Settings(max_history=64),
    "128 trials": Settings(),
    "256 trials": Settings(max_history=256),
}


def study_of(run: Run, seed: int, settings: Settings, common: list, n_trials: int) -> optuna.Study:
    """Return a study that goes on from common trials."""
    _, scenario, task, _ = run
    sampler = DRESampler(seed=seed, prior="universal", memory=False, settings=settings)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials(common)
    study.optimize(lambda trial: scenario.objective(trial, task), n_trials - len(common))
    assert not sampler.stats["fallbacks"]
    return study


def run_all(first: int, last: int, path: Path) -> None:
    done = {tuple(row["key"]) for row in read(path)}
    for run in runs(FUNCTIONS, last, 11):
        name, scenario, task, seed = run
        if seed < first or (name, task, seed) in done or name in ("rbv2_rpart", "lcbench"):
            continue
        number = zlib.crc32(f"long{name}{task}{seed}".encode())
        row: dict[str, Any] = {"key": (name, task, seed), **reference(scenario, task)}
        common = study_of(run, number, Settings(), [], N_COMMON).trials
        for version, settings in VERSIONS.items():
            study = study_of(run, number, settings, common, N_TRIALS)
            row[version] = [trial.value for trial in study.trials]
        append(path, row)


def report(path: Path) -> None:
    """Print mean regrets: 0 is the best value known, 1 the median of random configurations."""
    rows = read(path)
    for name in (*dict.fromkeys(row["key"][0] for row in rows), "all"):
        same = [row for row in rows if name in (row["key"][0], "all")]
        found = {version: [_regrets(rows, row, version) for row in same] for version in VERSIONS}
        print(name, end=": ")
        compare(found, AT, "128 trials")


def _regrets(rows: list[dict], row: dict, version: str) -> np.ndarray:
    alike = [other for other in rows if other["key"][:2] == row["key"][:2]]
    best = max(max(max(other[v]) for v in VERSIONS) for other in alike)
    return regrets(row[version], max(best, row["best"]), row["median"], AT)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "run":
        run_all(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        report(Path(sys.argv[2]))
