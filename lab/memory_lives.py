"""What a memory of past studies is worth, and what a misleading one costs.

    PYTHONPATH=.:benchmarks nice -n 19 python lab/memory_lives.py lives runs.jsonl
    PYTHONPATH=.:benchmarks nice -n 19 python lab/memory_lives.py harm runs.jsonl
    PYTHONPATH=.:benchmarks python lab/memory_lives.py report runs.jsonl

A run goes on where it was interrupted: each line of the file is a study, or a whole life. Tasks
are those of training and validation. Regret: 0 is the best of 2000 random configurations or of any
study, 1 is their median.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from dre_bench.tasks import Scenario, YahpoScenario
from dre_plugins import DRESampler, Memory
from dre_plugins.memory.recorded import Header
from dre_plugins.memory.study import StudyMemory
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Float, Integer, SearchSpace

DATA = Path("/work/shared/data/yahpo")
N_TRIALS = 25
N_ORDERS = 4
N_TASKS = 6
N_PAST, N_PAST_TRIALS = 5, 30
AT = (1, 5, 10, 25)


@cache
def scenario_of(name: str) -> Scenario:
    return YahpoScenario(DATA / name)


def tuned(scenario: Scenario, task: int, seed: int, memory: Memory | bool) -> Any:
    """Return the values of a study, in order, and the seconds that it took."""
    sampler = DRESampler(seed=seed, memory=memory)
    study = optuna.create_study(direction="maximize", sampler=sampler, study_name=str(task))
    start = time.perf_counter()
    study.optimize(lambda trial: scenario.objective(trial, task), n_trials=N_TRIALS)
    assert not sampler.stats["memory_errors"]
    seconds = time.perf_counter() - start
    return {"values": [t.value for t in study.trials], "seconds": seconds, **dict(sampler.stats)}


def lives(done: set[str]) -> Iterator[dict[str, Any]]:
    """Tune tasks of one scenario one after another, with one memory and with none."""
    for order in range(N_ORDERS):
        for name in ("rbv2_rpart", "rbv2_xgboost"):
            scenario = scenario_of(name)
            pool = sorted([*scenario.splits["train"], *scenario.splits["validation"]])
            tasks = np.random.default_rng([7, order]).choice(pool, N_TASKS, replace=False).tolist()
            for method in ("memory", "none"):
                key = f"life {name} {order} {method}"
                if key in done:
                    continue
                folder = Path(tempfile.mkdtemp())
                memory = Memory(folder) if method == "memory" else False
                studies = [
                    tuned(scenario, task, 100 * order + place, memory)
                    for place, task in enumerate(tasks)
                ]
                shutil.rmtree(folder)
                yield {"key": key, "scenario": name, "tasks": tasks, "studies": studies}


def harm(done: set[str]) -> Iterator[dict[str, Any]]:
    """Tune a task with no memory, and with memories of nothing but misleading studies."""
    for seed in range(100):
        for name in ("rbv2_rpart", "rbv2_xgboost"):
            scenario = scenario_of(name)
            tasks = scenario.splits["validation"]
            task = tasks[seed % len(tasks)]
            for kind in ("none", "mirrored", "another function", "noise"):
                key = f"harm {name} {seed} {kind}"
                if key in done:
                    continue
                folder = Path(tempfile.mkdtemp())
                memory = Memory(folder) if kind != "none" else False
                if kind != "none":
                    mislead(Memory(folder), scenario, kind, seed)
                study = tuned(scenario, task, seed, memory)
                shutil.rmtree(folder)
                yield {"key": key, "scenario": name, "tasks": [task], "studies": [study]}


def mislead(memory: Memory, scenario: Scenario, kind: str, seed: int) -> None:
    """Record studies of random configurations with values that mean something else."""
    rng = np.random.default_rng([8, seed])
    space = space_of(scenario)
    pool = scenario.splits["train"]
    for place, task in enumerate(rng.choice(pool, N_PAST, replace=False).tolist()):
        configurations = scenario.random_configurations(N_PAST_TRIALS, rng)
        values = scenario.evaluate_many(task, configurations)[scenario.metric]
        if kind == "mirrored":
            values = -values
        elif kind == "noise":
            values = rng.permutation(values)
        else:  # the same names, but all of them have an optimum of their own
            units = np.nan_to_num(space.to_units(configurations), nan=0.5)
            best = np.random.default_rng([9, seed]).random(space.n_parameters)
            values = -((units - best) ** 2).sum(axis=1)
        header = Header(f"past{place}", str(task), "lab", ("maximize",), time.time())
        study = StudyMemory(memory, header, stats=Counter(), logger=optuna.logging.get_logger("x"))
        for number, (found, value) in enumerate(zip(configurations, values, strict=True)):
            study.record(number, Trial(found, TrialState.COMPLETE, float(value)), space)


def space_of(scenario: Scenario) -> SearchSpace:
    """Return the parameters of a scenario; conditional ones are absent where inactive."""
    kinds = {"float": Float, "int": Integer}
    domains = {
        p.name: Categorical(p.choices)
        if p.kind == "categorical"
        else kinds[p.kind](
            *((int(p.low), int(p.high)) if p.kind == "int" else (p.low, p.high)),
            "log" if p.log else "linear",
        )
        for p in scenario.parameters
    }
    return SearchSpace(domains, (), [p.name for p in scenario.parameters if p.parent])


# ---- report


def report(rows: list[dict[str, Any]]) -> None:
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        for task, study in zip(row["tasks"], row["studies"], strict=True):
            key = row["scenario"], task
            best[key] = max(best.get(key, -np.inf), *study["values"])
    found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for row in rows:
        what, name, number, *kind = row["key"].split(" ", 3)
        regrets = []
        for task, study in zip(row["tasks"], row["studies"], strict=True):
            top, median = reference(name, task)
            top = max(top, best[name, task])
            so_far = np.maximum.accumulate(study["values"])
            regrets.append((top - so_far[np.array(AT) - 1]) / (top - median))
        found.setdefault((what, kind[0]), {})[f"{name} {number}"] = np.array(regrets)
    for (what, kind), runs in found.items():
        baseline = found.get((what, "none"), {})
        both = sorted(set(runs) & set(baseline))
        if kind == "none" or not both:
            continue
        ours = np.array([runs[key] for key in both])
        theirs = np.array([baseline[key] for key in both])
        print(f"\n{what}, {kind}: {len(both)} pairs; mean regret @{AT}: with, without, ratio")
        for place in range(ours.shape[1]):
            with_, without = ours[:, place].mean(0), theirs[:, place].mean(0)
            wins = [
                (int((a < b).sum()), int((a > b).sum()))
                for a, b in zip(ours[:, place].T, theirs[:, place].T, strict=True)
            ]
            print(place, with_.round(3), without.round(3), (with_ / without).round(2), wins)
        if ours.shape[1] > 1:
            with_, without = ours[:, 1:].mean((0, 1)), theirs[:, 1:].mean((0, 1))
            print("from the second", with_.round(3), without.round(3), (with_ / without).round(2))


@cache
def reference(name: str, task: int) -> tuple[float, float]:
    """Return the best and the median value of random configurations."""
    scenario = scenario_of(name)
    drawn = scenario.random_configurations(2000, np.random.default_rng(task))
    values = scenario.evaluate_many(task, drawn)[scenario.metric]
    return float(values.max()), float(np.median(values))


def main() -> None:
    what, path = sys.argv[1], Path(sys.argv[2])
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if what == "report":
        report(rows)
        return
    for row in {"lives": lives, "harm": harm}[what]({row["key"] for row in rows}):
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
