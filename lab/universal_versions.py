"""Studies with one file of the universal prior or another, on validation tasks and functions.

    PYTHONPATH=.:benchmarks:lab nice python lab/universal_versions.py run runs.jsonl NAME FILE 2
    PYTHONPATH=.:benchmarks:lab python lab/universal_versions.py report runs.jsonl NAME NAME ...

The number is that of the seeds. A run goes on where it stopped. The first version of a report is
the one that the others are compared with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from high_dimensions import ackley, decaying, levy, of_function, sparse, sphere
from paired_studies import compare, logarithm, regrets, studied
from translated_functions import FUNCTIONS, MIXED, scenario as scenario_named
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import append, read
from dre_plugins import DRESampler
from dre_plugins.universal import file

Objective = Callable[[optuna.Trial], float]  # larger is better

N_TRIALS, N_TASKS, N_FIRST = 40, 12, 4
REAL = ("lcbench", "rbv2_rpart", "rbv2_xgboost")
PLAIN = (ackley, decaying, levy, sparse, sphere)
AT_ZERO = ("Ackley", "DixonPrice", "Griewank", "Levy", "Powell", "Rastrigin", "Rosenbrock", "bowl")
AT = (5, 6, 8, 10, 15, 20, 30, 40)


def tasks_of(name: str) -> list[int]:
    """Return tasks that no prior in the comparison was trained on, and that are no test tasks."""
    scenario = scenario_of(name)
    return [*scenario.validation, *scenario.training][:N_TASKS]


def objectives(n_seeds: int) -> Iterator[tuple[str, str, int, Objective]]:
    """Yield the group, the name, the seed and the objective of each study."""
    for seed in range(n_seeds):
        for i in range(N_TASKS):
            for name in REAL:
                task = tasks_of(name)[i]
                objective = partial(scenario_of(name).objective, task=task)
                yield "real", f"{name}/{task}", seed, objective
        for name in (*FUNCTIONS, *MIXED):
            task = 5 + seed
            objective = partial(scenario_named(name).objective, task=task)
            yield "functions", f"{name}/{task}", seed, objective
        for n in (10, 20):
            for function in PLAIN:
                name = f"{function.__name__}{n}/{seed}"
                yield f"{n} parameters", name, seed, of_function(function, n, seed)


def run(path: Path, name: str, network: str, n_seeds: int) -> None:
    """Run the studies that are missing."""
    file.SHIPPED = Path(network)
    done = {tuple(row["key"]) for row in read(path)}
    for group, task, seed, objective in objectives(n_seeds):
        key = name, group, task, seed
        if key in done:
            continue
        sampler = DRESampler(seed=seed, prior="universal", memory=False)
        study = studied(sampler, objective, N_TRIALS)
        append(path, {"key": key, "values": [trial.value for trial in study.trials]})


def report(path: Path, names: list[str]) -> None:
    """Print mean regrets and, beside the first version, better and worse studies and p values."""
    values = {tuple(row["key"]): row["values"] for row in read(path)}
    firsts: dict[str, list[float]] = {}
    for key, of_study in values.items():
        firsts.setdefault(key[2], []).extend(of_study[:N_FIRST])
    keys = sorted(set.intersection(*({key[1:] for key in values if key[0] == of} for of in names)))
    for group in dict.fromkeys(key[0] for key in keys):
        found: dict[str, list[np.ndarray]] = {of: [] for of in names}
        for key in (key for key in keys if key[0] == group):
            best = max(max(of_study) for other, of_study in values.items() if other[2] == key[1])
            if key[1].rstrip("0123456789/").rstrip("6") in AT_ZERO:
                best = 0.0
            median = min(float(np.median(firsts[key[1]])), best - 1e-12)
            for of in names:
                found[of].append(regrets(values[(of, *key)], best, median, AT))
        print(group, end=": ")
        compare(found, AT, names[0], logarithm)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    command, path, *given = sys.argv[1:]
    if command == "run":
        run(Path(path), given[0], given[1], int(given[2]))
    else:
        report(Path(path), given)
