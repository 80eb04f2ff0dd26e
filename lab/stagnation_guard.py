"""Exploration of stagnating studies: ``python lab/stagnation_guard.py OUT``.

Each run is made twice, with the explorations of `recommend/schedule.py` and without.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np
import optuna
from tuning_tasks import scenario_of

from dre_bench.synthetic import synthetic_scenario
from dre_bench.tasks import Scenario
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import schedule
from dre_plugins.recommend.schedule import Progress

N_TRIALS = 50
# Tasks of each function in a round; another round has others.
FUNCTIONS = {"branches": 4, "mixed": 3, "hartmann6": 2, "levy8": 2}
EXPLORES = schedule.is_exploration_due


def never(index: int, progress: Progress) -> bool:
    """Leave explorations out."""
    return False


def values_of(scenario: Scenario, task: int, seed: int, explores: bool) -> list[float]:
    """Return the values of a study."""
    schedule.is_exploration_due = EXPLORES if explores else never
    study = optuna.create_study(
        direction="maximize", sampler=DRESampler(seed=seed, prior="universal")
    )
    study.optimize(lambda trial: scenario.objective(trial, task), n_trials=N_TRIALS)
    return [trial.value for trial in study.trials]


def runs() -> Iterator[tuple[str, Scenario, int, int]]:
    """Yield the runs, scenarios in turns."""
    groups: dict[str, list[tuple[str, Scenario, int, int]]] = {}
    for seed in range(3):
        for name in ("rbv2_xgboost", "rbv2_rpart", "lcbench"):
            scenario = scenario_of(name)
            for task in scenario.validation:
                groups.setdefault(name, []).append((name, scenario, task, seed))
        for name, n_tasks in FUNCTIONS.items():
            for task in range(1 + n_tasks * seed, 1 + n_tasks * (seed + 1)):
                run = (name, synthetic_scenario(name), task, seed)
                groups.setdefault(name, []).append(run)
    for row in zip_longest(*groups.values()):
        yield from (run for run in row if run is not None)


def main(out: str) -> None:
    """Append a line for each run; those that are there are not repeated."""
    path = Path(out)
    records = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    made = {(record["scenario"], record["task"], record["seed"]) for record in records}
    for name, scenario, task, seed in runs():
        if (name, task, seed) in made:
            continue
        sample = scenario.random_configurations(2000, np.random.default_rng(task))
        values = scenario.evaluate_many(task, sample)[scenario.metric]
        record = {"scenario": name, "task": task, "seed": seed}
        record |= {"median": float(np.median(values)), "best": float(values.max())}
        number = zlib.crc32(f"{name}/{task}/{seed}".encode())
        for variant, explores in (("none", False), ("explores", True)):
            record[variant] = values_of(scenario, task, number, explores)
        with open(out, "a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
