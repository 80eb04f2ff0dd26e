"""Neural networks of LCBench, tuned by DRESampler and by rivals: 40 trials on 12 tasks.

    PYTHONPATH=.:benchmarks:lab nice python lab/lcbench_rivals.py run RUNS ax,gp,tpe,dre SEEDS
    PYTHONPATH=.:benchmarks:lab python lab/lcbench_rivals.py report RUNS ax,gp,tpe,dre

The tasks are those of validation and the first of training. `rivals/ax/bin/python` of the current
folder has Ax (see benchmarks/README.md). A run goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from scipy.stats import wilcoxon
from universal_versions import N_TASKS, N_TRIALS, of_scenario, real, tasks_of

from dre_bench.problems import foreign
from dre_bench.problems.maximise import reference_sample
from dre_bench.samplers import make_sampler

AT = np.array([1, 3, 5, 8, 10, 15, 20, 30, 40])
NETWORKS = "lcbench"


def values_of(name: str, task: int, seed: int) -> list[Any]:
    """Return the values of a study."""
    scenario: Any = real(NETWORKS)
    if name not in foreign.MODULES:
        specification = "dre:prior=universal" if name == "dre" else name
        sampler = make_sampler(specification, seed, NETWORKS)
        study = optuna.create_study(sampler=sampler, direction="maximize")
        study.optimize(of_scenario(scenario, task), n_trials=N_TRIALS)
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
    """Print mean regrets, and how many studies of the last sampler are better and worse."""
    curves = {tuple(row["key"]): np.maximum.accumulate(row["values"]) for row in rows}
    studies = [{key[1:] for key in curves if key[0] == name} for name in names]
    keys = sorted(set.intersection(*studies))
    regrets_of = {}
    for name in names:
        found = []
        for task, seed in keys:
            sample = reference_sample(real(NETWORKS), task)[1][real(NETWORKS).metric]
            best = max(curve[-1] for key, curve in curves.items() if key[1] == task)
            best = max(best, sample.max())
            curve = curves[name, task, seed]
            found.append((best - curve[AT - 1]) / (best - np.median(sample)))
        regrets_of[name] = np.array(found)
    last = regrets_of[names[-1]]
    print(len(keys), "studies, regret after", AT)
    for name, found in regrets_of.items():
        seconds = np.mean([row["seconds"] for row in rows if row["key"][0] == name]) / N_TRIALS
        print(f"{name:6}", found.mean(0).round(3), f"{seconds:.2f} s")
        if name != names[-1]:
            columns = zip(found.T, last.T, strict=True)
            tests = [wilcoxon(regrets, beside).pvalue for regrets, beside in columns]
            print("  ", (last < found).sum(0), (last > found).sum(0), np.round(tests, 3))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    command, path, samplers, *given = sys.argv[1:]
    file = Path(path)
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    if command == "report":
        report(rows, samplers.split(","))
        sys.exit()
    done = {tuple(row["key"]) for row in rows}
    for seed in range(int(given[0])):
        for i in range(N_TASKS):
            for name in samplers.split(","):
                key = name, tasks_of(NETWORKS)[i], seed
                if key not in done:
                    begin = time.perf_counter()
                    line = {"key": key, "values": values_of(*key)}
                    line["seconds"] = time.perf_counter() - begin
                    with file.open("a") as out:
                        out.write(json.dumps(line) + "\n")
