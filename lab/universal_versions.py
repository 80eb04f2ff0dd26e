"""Studies with one file of the universal prior or another, on validation tasks and functions.

    PYTHONPATH=.:benchmarks:lab nice python lab/universal_versions.py run runs.jsonl NAME FILE 2
    PYTHONPATH=.:benchmarks:lab python lab/universal_versions.py report runs.jsonl NAME NAME ...

The number is that of the seeds. A run goes on where it stopped. The first version of a report is
the one that the others are compared with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import optuna
from early_trials import FUNCTIONS, MIXED, scenario as scenario_named
from high_dimensions import ackley, decaying, levy, of_function, sparse, sphere
from scipy.stats import wilcoxon
from tuning_tasks import scenario_of

from dre_bench.tasks import Scenario
from dre_plugins import DRESampler
from dre_plugins.universal import file

Objective = Callable[[optuna.Trial], float]  # larger is better

N_TRIALS, N_TASKS, N_FIRST = 40, 12, 4
REAL = ("lcbench", "rbv2_rpart", "rbv2_xgboost")
PLAIN = (ackley, decaying, levy, sparse, sphere)
AT_ZERO = ("Ackley", "DixonPrice", "Griewank", "Levy", "Powell", "Rastrigin", "Rosenbrock", "bowl")
AT = np.array([5, 6, 8, 10, 15, 20, 30, 40])
LEAST = 1e-4  # regret that counts as none in logarithms


@cache
def real(name: str) -> Scenario:
    return scenario_of(name)


def tasks_of(name: str) -> list[int]:
    """Return tasks that no prior in the comparison was trained on, and that are no test tasks."""
    scenario = real(name)
    return [*scenario.validation, *getattr(scenario, "training", ())][:N_TASKS]


def of_scenario(scenario: Scenario, task: int) -> Objective:
    def objective(trial: optuna.Trial) -> float:
        configuration = {}
        for parameter in scenario.parameters:
            if parameter.is_active(configuration):
                configuration[parameter.name] = parameter.suggest(trial)
        return float(scenario.value(task, configuration))

    return objective


def objectives(n_seeds: int) -> Iterator[tuple[str, str, int, Objective]]:
    """Yield the group, the name, the seed and the objective of each study."""
    for seed in range(n_seeds):
        for i in range(N_TASKS):
            for name in REAL:
                task = tasks_of(name)[i]
                yield "real", f"{name}/{task}", seed, of_scenario(real(name), task)
        for name in (*FUNCTIONS, *MIXED):
            task = 5 + seed
            yield "functions", f"{name}/{task}", seed, of_scenario(scenario_named(name), task)
        for n in (10, 20):
            for function in PLAIN:
                name = f"{function.__name__}{n}/{seed}"
                yield f"{n} parameters", name, seed, of_function(function, n, seed)


def run(path: Path, name: str, network: str, n_seeds: int) -> None:
    """Run the studies that are missing."""
    file.SHIPPED = Path(network)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    for group, task, seed, objective in objectives(n_seeds):
        key = name, group, task, seed
        if key in done:
            continue
        sampler = DRESampler(seed=seed, prior="universal", memory=False)
        study = optuna.create_study(sampler=sampler, direction="maximize")
        study.optimize(objective, n_trials=N_TRIALS)
        assert not sampler.stats["fallbacks"]
        with path.open("a") as out:
            values = [trial.value for trial in study.trials]
            out.write(json.dumps({"key": key, "values": values}) + "\n")


def report(path: Path, names: list[str]) -> None:
    """Print mean regrets and, beside the first version, better and worse studies and p values."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    curves = {tuple(row["key"]): np.maximum.accumulate(row["values"]) for row in rows}
    firsts: dict[str, list[float]] = {}
    for row in rows:
        firsts.setdefault(row["key"][2], []).extend(row["values"][:N_FIRST])
    keys = sorted(set.intersection(*({key[1:] for key in curves if key[0] == of} for of in names)))
    for group in dict.fromkeys(key[0] for key in keys):
        print(group, "at", AT)
        base = None
        for of in names:
            regrets = []
            for key in (key for key in keys if key[0] == group):
                best = max(curve[-1] for other, curve in curves.items() if other[2] == key[1])
                if key[1].rstrip("0123456789/").rstrip("6") in AT_ZERO:
                    best = 0.0
                spread = max(best - float(np.median(firsts[key[1]])), 1e-12)
                regrets.append((best - curves[(of, *key)][AT - 1]) / spread)
            logs = np.log10(np.clip(regrets, LEAST, None))
            print(f"  {of:20}", len(regrets), np.mean(regrets, 0).round(3))
            if base is not None:
                tests = [
                    wilcoxon(after, before).pvalue if (after != before).any() else 1.0
                    for after, before in zip(logs.T, base.T, strict=True)
                ]
                counts = (logs < base).sum(0), (logs > base).sum(0)
                print(" " * 23, "better", counts[0], "worse", counts[1], "p", np.round(tests, 3))
            base = logs if base is None else base


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    command, path, *given = sys.argv[1:]
    if command == "run":
        run(Path(path), given[0], given[1], int(given[2]))
    else:
        report(Path(path), given)
