"""Neural networks of LCBench, tuned by DRESampler and by rivals: 40 trials on 12 tasks.

    PYTHONPATH=.:benchmarks:lab nice python lab/lcbench_rivals.py run RUNS ax,gp,tpe,dre SEEDS
    PYTHONPATH=.:benchmarks:lab python lab/lcbench_rivals.py report RUNS ax,gp,tpe,dre

The tasks are those of validation and the first of training. `rivals/ax/bin/python` of the current
folder has Ax (see benchmarks/README.md). A run goes on where it stopped.
"""

from __future__ import annotations

import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from paired_studies import compare, complete, regrets, studied
from tuning_tasks import scenario_of
from universal_versions import N_TRIALS, tasks_of

from dre_bench.learner_evaluations.records import read
from dre_bench.problems import foreign
from dre_bench.problems.maximise import reference
from dre_bench.samplers import make_sampler

AT = (1, 3, 5, 8, 10, 15, 20, 30, 40)
NETWORKS = "lcbench"


def row_of(name: str, task: int, seed: int) -> dict[str, Any]:
    """Return the values of a study, and its seconds."""
    begin = time.perf_counter()
    values = values_of(name, task, seed)
    return {"values": values, "seconds": time.perf_counter() - begin}


def values_of(name: str, task: int, seed: int) -> list[Any]:
    """Return the values of a study."""
    scenario = scenario_of(NETWORKS)
    if name not in foreign.MODULES:
        specification = "dre:prior=universal" if name == "dre" else name
        sampler = make_sampler(specification, seed, NETWORKS)
        study = studied(sampler, lambda trial: scenario.objective(trial, task), N_TRIALS)
        return [trial.value for trial in study.trials]
    python = foreign.python_of(name, Path("rivals"))
    serve = [foreign.FOLDER / file for file in ("serve.py", f"with_{name}.py")]
    command = [str(part) for part in (python, "-E", *serve)]
    values: list[float] = []
    with foreign.ForeignSampler(
        command, scenario.parameters, seed=seed, trials=N_TRIALS
    ) as sampler:
        for _ in range(N_TRIALS):
            values.append(float(scenario.value(task, sampler.ask(1)[0])))
            sampler.tell(values[-1:])
    return values


def report(rows: list[dict[str, Any]], names: list[str]) -> None:
    """Print mean regrets, each sampler beside the last one, and seconds of a trial."""
    values = {tuple(row["key"]): row["values"] for row in rows}
    studies = [{key[1:] for key in values if key[0] == name} for name in names]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for task, seed in sorted(set.intersection(*studies)):
        known = reference(scenario_of(NETWORKS), task)
        best = max(known["best"], *(max(of) for key, of in values.items() if key[1] == task))
        for name in names:
            found[name].append(regrets(values[name, task, seed], best, known["median"], AT))
    compare(found, AT, names[-1])
    for name in names:
        seconds = np.mean([row["seconds"] for row in rows if row["key"][0] == name]) / N_TRIALS
        print(f"{name}: {seconds:.2f} s a trial")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    command, path, samplers, *given = sys.argv[1:]
    names = samplers.split(",")
    if command == "report":
        report(read(Path(path)), names)
    else:
        plan = product(range(int(given[0])), tasks_of(NETWORKS), names)
        complete(Path(path), ((name, task, seed) for seed, task, name in plan), row_of)
