"""Exploration of stagnating studies: ``python lab/stagnation_guard.py OUT [N_TRIALS]``.

Each run is made twice: as it is, and with the explorations of `recommend/schedule.py` beside the
universal prior as well.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from tuning_tasks import scenario_of

from dre_bench.synthetic import synthetic_scenario
from dre_bench.tasks import Scenario
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import surrogates
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.schedule import Turn, TurnRules, is_exploration_due, proposer_for

# Tasks of each function in a round; another round has others.
FUNCTIONS = {"branches": 4, "mixed": 3, "hartmann6": 2, "levy8": 2}


def exploring(
    index: int, evidence: Evidence, rules: TurnRules, *, may_explore: bool = True, **checks: Any
) -> Turn:
    """Return who proposes a suggestion if stagnating studies explore."""
    turn = proposer_for(index, evidence, rules, may_explore=may_explore, **checks)
    is_due = turn == "model" and may_explore and is_exploration_due(index, evidence)
    return "exploration" if is_due else turn


def values_of(
    scenario: Scenario, task: int, seed: int, n_trials: int, explores: bool
) -> list[float]:
    """Return the values of a study."""
    surrogates.proposer_for = exploring if explores else proposer_for
    study = optuna.create_study(
        direction="maximize", sampler=DRESampler(seed=seed, prior="universal")
    )
    study.optimize(lambda trial: scenario.objective(trial, task), n_trials=n_trials)
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


def main(out: str, n_trials: str = "50") -> None:
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
            record[variant] = values_of(scenario, task, number, int(n_trials), explores)
        with open(out, "a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main(*sys.argv[1:])
