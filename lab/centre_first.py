"""Whether the first trial should be the centre of the space, on validation tasks.

    PYTHONPATH=.:benchmarks:lab nice -n 19 python lab/centre_first.py run runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/centre_first.py report runs.jsonl

Each pair is a study at the defaults and one whose first trial is enqueued: numbers in the middle
of their range, on its scale, and categories left to the sampler. A run goes on where it stopped.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import optuna
from memory_lives import space_of
from paired_studies import compare, complete, regrets
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import read
from dre_bench.problems.maximise import reference
from dre_plugins import DRESampler
from dre_plugins.space import Categorical

NAMES = ("lcbench", "rbv2_rpart", "rbv2_xgboost")
N_TASKS, N_SEEDS, N_TRIALS = 5, 4, 30
AT = (1, 5, 10, 20, 30)


def centre(name: str) -> dict[str, Any]:
    """Return the middle of each range; categories and what depends on them are left out."""
    space = space_of(scenario_of(name).parameters)
    return {
        parameter: domain.from_unit(0.5)
        for parameter, domain in space.domains.items()
        if not isinstance(domain, Categorical)
    }


def study(name: str, task: int, seed: int, first: str) -> dict[str, Any]:
    """Return the values of one study."""
    sampler = DRESampler(seed=seed, prior="universal", memory=False)
    found = optuna.create_study(direction="maximize", sampler=sampler)
    if first == "centre":
        found.enqueue_trial(centre(name))
    found.optimize(lambda trial: scenario_of(name).objective(trial, task), N_TRIALS)
    return {"values": [trial.value for trial in found.trials]}


def run(path: Path) -> None:
    """Run the pairs that are missing, in turns over the scenarios."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    plan = product(range(N_SEEDS), range(N_TASKS), NAMES, ("sobol", "centre"))
    keys = ((name, scenario_of(name).validation[i], seed, first) for seed, i, name, first in plan)
    complete(path, keys, study)


def report(path: Path) -> None:
    """Print mean regret of both, and paired tests over runs."""
    values = {tuple(row["key"]): row["values"] for row in read(path)}
    for names in (*[(name,) for name in NAMES], NAMES):
        found: dict[str, list[Any]] = {"sobol": [], "centre": []}
        for name, task, seed, _ in [key for key in values if key[3] == "centre"]:
            if name in names:
                both = {first: values[name, task, seed, first] for first in found}
                known = reference(scenario_of(name), task)
                best = max(known["best"], *map(max, both.values()))
                for first, of_study in both.items():
                    found[first].append(regrets(of_study, best, known["median"], AT))
        print(", ".join(names), end=": ")
        compare(found, AT, "sobol")


if __name__ == "__main__":
    {"run": run, "report": report}[sys.argv[1]](Path(sys.argv[2]))
