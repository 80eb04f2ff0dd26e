"""What a memory costs that misleads, and what one of related studies gains, on test tasks.

    PYTHONPATH=.:benchmarks:lab nice -n 19 python lab/memory_harm.py base base.jsonl
    PYTHONPATH=.:benchmarks:lab nice -n 19 python lab/memory_harm.py run base.jsonl runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_harm.py report runs.jsonl

A run goes on where it was interrupted: each line of a file is a study. `base` tunes training tasks
without a memory, which are the related past studies of `run`. Regret: 0 is the best of 2000 random
configurations or of any study, 1 is their median.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from memory_lives import space_of
from paired_studies import ratio, regrets
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.maximise import reference
from dre_plugins import DRESampler, Memory
from dre_plugins.memory.access import StudyMemory
from dre_plugins.memory.recorded_study import Header
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, SearchSpace

NAMES = ("rbv2_rpart", "rbv2_xgboost", "lcbench")
KINDS = ("mirrored", "another", "each", "metric", "ranges")
WORST = ("mirrored", "another", "each")
N_BASE, N_SEEDS, N_PAST, N_PAST_TRIALS = 14, 20, 5, 30
AT = (1, 5, 10, 25, 50)

Row = dict[str, Any]


@cache
def pools(name: str) -> Mapping[str, Sequence[int]]:
    """Return the tasks of each split; those of LCBench's exam are in none."""
    scenario: Any = scenario_of(name)
    if name == "lcbench":
        return {"train": scenario.tasks[1::2], "test": scenario.tasks[2::4]}
    splits: Mapping[str, Sequence[int]] = scenario.splits
    return splits


def tuned(name: str, task: int, seed: int, memory: Memory | bool, n_trials: int) -> Row:
    sampler = DRESampler(seed=seed, prior="universal", memory=memory)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: scenario_of(name).objective(trial, task), n_trials=n_trials)
    return {
        "values": [trial.value for trial in study.trials],
        "params": [trial.params for trial in study.trials],
        "sources": [sampler.explain(study, trial).source for trial in study.trials],
        "contradicted": sampler.stats["memory_contradicted"],
    }


# ---- memories


def fill(memory: Memory, base: Sequence[Row], name: str, kind: str, seed: int) -> None:
    """Record past studies of one kind; "related:2" are two of training tasks."""
    scenario: Any = scenario_of(name)
    kind, _, number = kind.partition(":")
    n_past = int(number or N_PAST)
    rng = np.random.default_rng([8, seed, n_past])
    space = space_of(scenario.parameters)
    if kind == "related":
        known = [row for row in base if row["name"] == name]
        for place in rng.permutation(len(known))[:n_past]:
            record(memory, f"past{place}", space, known[place]["params"], known[place]["values"])
        return
    for place, task in enumerate(rng.choice(pools(name)["train"], n_past, replace=False).tolist()):
        drawn = scenario.random_configurations(N_PAST_TRIALS, rng)
        past = space
        if kind == "ranges":
            past, drawn = halved(space, drawn, seed)
        outputs = scenario.evaluate_many(task, drawn)
        values = outputs[scenario.metric]
        if kind == "mirrored":
            values = -values
        elif kind == "noise":
            values = rng.permutation(values)
        elif kind == "metric":
            values = outputs["timetrain"]
        elif kind in ("another", "each"):  # an optimum of all past studies, or one of each
            units = np.nan_to_num(space.to_units(drawn), nan=0.5)
            key = [9, seed, place] if kind == "each" else [9, seed]
            best = np.random.default_rng(key).random(space.n_parameters)
            values = -((units - best) ** 2).sum(1)
        record(memory, f"past{place}", past, drawn, values)


def halved(space: SearchSpace, drawn: Sequence[Row], seed: int) -> tuple[SearchSpace, list[Row]]:
    """Return the space with one half of each range, and the configurations moved there."""
    is_low = np.random.default_rng([11, seed]).random(space.n_parameters) < 0.5
    units = np.nan_to_num(space.to_units(drawn), nan=0.5)
    domains: dict[str, Any] = dict(space.domains)
    for place, name in enumerate(space.names):
        domain = domains[name]
        if isinstance(domain, Categorical):
            continue
        units[:, place] = units[:, place] / 2 + (0.0 if is_low[place] else 0.5)
        half = domain.from_unit(0.5)
        domains[name] = replace(domain, **{"high" if is_low[place] else "low": half})

    def moved(row: int) -> Row:
        found = space.to_configuration(units[row], include_inactive=True)
        return {
            name: found[name]
            if isinstance(domains[name], Categorical)
            else min(max(found[name], domains[name].low), domains[name].high)
            for name in drawn[row]
        }

    smaller = SearchSpace(domains, (), [*space.optional])
    return smaller, [moved(row) for row in range(len(drawn))]


def record(
    memory: Memory, label: str, space: SearchSpace, drawn: Sequence[Row], values: Sequence[float]
) -> None:
    header = Header(study=label, name=label, framework="lab", directions=("maximize",))
    study = StudyMemory(memory, header, stats=Counter(), logger=optuna.logging.get_logger("x"))
    for number, (found, value) in enumerate(zip(drawn, values, strict=True)):
        ended = Trial(found, TrialState.COMPLETE, float(value))
        study.record(number, lambda ended=ended: (ended, space))


# ---- runs


def run_base(path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for place in range(N_BASE):
        for name in NAMES:
            train = np.random.default_rng(3).permutation(pools(name)["train"])
            if place < len(train):
                task, seed = int(train[place]), 1000 + place
                key = f"{name} {task} {seed}"
                if key not in done:
                    found = tuned(name, task, seed, False, 25)
                    append(path, {"key": key, "name": name, "task": task, **found})


def phases(seed: int, place: int) -> dict[str, tuple[str, int]]:
    """Return the kind of memory and the number of trials of each run of a pair."""
    kind = KINDS[(seed + 2 * place) % len(KINDS)]
    if kind == "metric" and NAMES[place] == "lcbench":
        kind = "noise"  # LCBench has one metric only
    worst = [other for other in WORST if other != kind]
    return {
        "none": ("none", 50),
        "harm": (kind, 50),
        "related": ("related:5", 25),
        "worst": (worst[seed % len(worst)], 25),
        "one": ("related:1", 25),
    }


def run(base: Sequence[Row], path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for seed in range(N_SEEDS):
        for place, name in enumerate(NAMES):
            task = int(pools(name)["test"][seed % len(pools(name)["test"])])
            for phase, (kind, n_trials) in phases(seed, place).items():
                key = f"{phase} {name} {task} {seed} {kind}"
                if key in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    memory = Memory(Path(folder))
                    if kind != "none":
                        fill(memory, base, name, kind, 5000 + seed)
                    found = tuned(name, task, 5000 + seed, kind != "none" and memory, n_trials)
                row = {"phase": phase, "kind": kind, "name": name, "task": task, "seed": seed}
                append(path, {"key": key, **row, **found})


# ---- report


def report(rows: Sequence[Row]) -> None:
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        key = row["name"], row["task"]
        best[key] = max(best.get(key, -np.inf), *row["values"])
    none = {(r["name"], r["task"], r["seed"]): r for r in rows if r["phase"] == "none"}

    def of(row: Row, at: Sequence[int]) -> np.ndarray:
        known = reference(scenario_of(row["name"]), row["task"])
        top = max(known["best"], best[row["name"], row["task"]])
        return regrets(row["values"], top, known["median"], at)

    def show(what: str, chosen: Sequence[Row]) -> None:
        if len(chosen) < 2:
            return
        at = [trial for trial in AT if trial <= min(len(row["values"]) for row in chosen)]
        ours = [of(row, at) for row in chosen]
        theirs = [of(none[row["name"], row["task"], row["seed"]], at) for row in chosen]
        print(what, len(chosen), at, np.mean(ours, 0).round(3), np.mean(theirs, 0).round(3))
        print("   ratio", ratio(ours, theirs))

    for phase in sorted({row["phase"] for row in rows} - {"none"}):
        show(phase, [row for row in rows if row["phase"] == phase])
    misleading = [row for row in rows if row["phase"] in ("harm", "worst")]
    for kind in sorted({row["kind"] for row in misleading}):
        show(kind, [row for row in misleading if row["kind"] == kind])


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    what, *paths = sys.argv[1:]
    files = [Path(path) for path in paths]
    if what == "base":
        run_base(*files)
    elif what == "run":
        run(read(files[0]), files[1])
    else:
        report(read(files[0]))


if __name__ == "__main__":
    main()
