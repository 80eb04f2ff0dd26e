"""Studies under a limit: networks of LCBench on their training time, and YAHPO Gym on two outputs.

python lab/constraints.py DATA OUT SAMPLERS PROBLEMS SPLIT SEEDS TRIALS TASKS

DATA is the folder of YAHPO Gym; SAMPLERS such as dre,gp,random; PROBLEMS of lcbench-20 (the
training time below its 20 % quantile), constrained-10 and constrained-50 (see dre_bench). A run
that is in OUT, a JSONL file, is not repeated. For LCBench the split "test" is what may be learnt
from, as its own exam is never evaluated.
"""

from __future__ import annotations

import sys
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from dre_bench import lcbench
from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.catalogue import _spread
from dre_bench.problems.maximise import reference_sample
from dre_bench.problems.real_studies import has_feasible, limits_of
from dre_bench.runs import Run, Sources
from dre_bench.samplers import make_sampler, split_specifications
from dre_bench.scenarios import scenario_of

lcbench.OUTPUTS["time"] = 0  # which the suites do not need


def tasks_of(sources: Sources, problem: str, split: Any, count: int) -> list[tuple[Any, Any]]:
    """Return scenarios and tasks of a problem, `count` of each scenario."""
    name, percent = problem.split("-")
    if name == "lcbench":
        assert sources.data is not None
        networks = lcbench.Lcbench(sources.data / name)
        tasks = networks.validation if split == "validation" else networks.training
        return [(networks, task) for task in _spread(tasks, count)]
    found: list[tuple[Any, Any]] = []
    for of_trees in ("rbv2_xgboost", "rbv2_rpart"):
        scenario: Any = scenario_of(sources, of_trees)
        posed = [
            task
            for task in scenario.splits[split]
            if has_feasible(scenario, task, quantile=int(percent) / 100)
        ]
        found += [(scenario, task) for task in _spread(posed, count)]
    return found


def study(scenario: Any, run: Run) -> dict[str, Any]:
    """Return values and violations of each trial, and median and best of a random sample."""
    quantile = int(run.problem.split("-")[1]) / 100
    sample = reference_sample(scenario, run.task)[1]
    if scenario.name == "lcbench":
        limits = {"time": float(np.quantile(sample["time"], quantile))}
    else:
        limits = limits_of(scenario, run.number, quantile)
    sampler = make_sampler(run.sampler, run.sampler_seed, run.scenario)
    asked = optuna.create_study(direction="maximize", sampler=sampler)
    values, violations = [], []
    for _ in range(run.trials):
        trial = asked.ask()
        outputs = scenario.evaluate_many(run.task, [scenario.suggest(trial)])
        violations.append([float(outputs[name][0]) - limit for name, limit in limits.items()])
        for name, violation in zip(limits, violations[-1], strict=True):
            trial.set_constraint(name, violation)
        values.append(float(outputs[scenario.metric][0]))
        asked.tell(trial, values[-1])
    is_met = np.all([sample[name] <= limit for name, limit in limits.items()], axis=0)
    met = sample[scenario.metric][is_met]
    reference = {"median": float(np.median(met)), "best": float(met.max())}
    return {"values": values, "violations": violations, "reference": reference}


if __name__ == "__main__":
    data, out, samplers, problems, split, seeds, trials, count = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path, sources = Path(out), Sources(data=Path(data))
    done = {tuple(row["run"]) for row in read(path)}
    for seed in range(int(seeds)):
        for problem in problems.split(","):
            for scenario, task in tasks_of(sources, problem, split, int(count)):
                for sampler in split_specifications(samplers):
                    run = Run(sampler, scenario.name, task, seed, int(trials), problem)
                    if (key := astuple(run)) not in done:
                        append(path, {"run": key, **study(scenario, run)})
