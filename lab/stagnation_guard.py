"""The stagnation guard beside the universal prior: ``python lab/stagnation_guard.py OUT``."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from itertools import zip_longest

import numpy as np
import optuna
from tuning_tasks import scenario_of

from dre_bench.synthetic import synthetic_scenario
from dre_bench.tasks import Scenario
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import model, recommender
from dre_plugins.recommend.lists import final_value
from dre_plugins.recommend.stagnation import is_exploration_due
from dre_plugins.recommend.trials import Trial
from dre_plugins.recommend.turns import Proposer

N_TRIALS = 50
# Tasks of each function in a round; another round has others.
FUNCTIONS = {"branches": 4, "mixed": 3, "hartmann6": 2, "levy8": 2}
own_turns = recommender.Recommender._turns


def never(n_since: int, index: int) -> bool:
    """Leave the guard out."""
    return False


def n_since_best(history: tuple[Trial, ...]) -> int:
    """Return how many trials have ended since the best one; of sequential studies."""
    values = [final_value(trial) for trial in history]
    best = max(value for value in values if value is not None)
    return len(values) - 1 - values.index(best)


def turns_to_explore(self, task) -> list[Proposer]:  # type: ignore[no-untyped-def]
    """Give the ensemble the turns of the universal prior in which an exploration is due."""
    turns = own_turns(self, task)
    is_ready = len(task.history) >= self.n_startup_trials
    if turns == ["universal-prior"] and is_ready:
        if is_exploration_due(n_since_best(task.history), task.index):
            return ["model"]
    return turns


def values_of(scenario: Scenario, task: int, seed: int, variant: str) -> list[float]:
    """Return the values of a study: "none", "guard" or "every third"."""
    model.is_exploration_due = never if variant == "none" else is_exploration_due
    is_every = variant == "every third"
    recommender.Recommender._turns = turns_to_explore if is_every else own_turns
    study = optuna.create_study(direction="maximize", sampler=DRESampler(seed=seed))
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
    """Append a line for each run."""
    for name, scenario, task, seed in runs():
        sample = scenario.random_configurations(2000, np.random.default_rng(task))
        values = scenario.evaluate_many(task, sample)[scenario.metric]
        record = {"scenario": name, "task": task, "seed": seed}
        record |= {"median": float(np.median(values)), "best": float(values.max())}
        number = zlib.crc32(f"{name}/{task}/{seed}".encode())
        for variant in ("none", "guard", "every third"):
            record[variant] = values_of(scenario, task, number, variant)
        with open(out, "a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
