"""Many past studies: what their incumbents gain, tried first, and cost if they mislead.

    PYTHONPATH=.:benchmarks:lab nice python lab/memory_many_studies.py run 14 runs.jsonl
    PYTHONPATH=.:benchmarks:lab nice python lab/memory_many_studies.py harm 14 harm.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_many_studies.py report runs.jsonl

`run`: past studies of TPE on training tasks, 8 to 30 of 20 to 40 trials, and a present study of
ten trials on a validation task, with search spaces that are the same or vary (`memory_lives.py`).
`harm`: 12 to 30 past studies of 30 random configurations that mislead (`memory_harm.py`). Rules,
named behind the file, are those of `memory_first_trials.py`. FIRST is another first seed. A run
goes on where it was interrupted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import memory_first_trials as first_trials
import memory_harm as misleading
import numpy as np
import optuna
from memory_first_trials import append, line
from memory_lives import Row, read, reference, scenario_of, variant_of
from transfer_rivals import remembered

from dre_plugins import DRESampler, Memory

LIVES, NAMES = ("varied", "same"), ("rbv2_xgboost", "rbv2_rpart")
HARMED = ("rbv2_xgboost", "rbv2_rpart", "lcbench")
KINDS = ("mirrored", "another", "each", "ranges")
NUMBERS = (20, 12, 30, 14)
RULES = ("none", "today", "three, then today's", "three, Sobol between")
FIRST, N_TRIALS = int(os.environ.get("FIRST", "80000")), 10


def patch() -> None:
    misleading.pools = past_tasks
    first_trials.patch()


# ---- studies with related past studies


@cache
def past_study(life: str, name: str, task: int) -> Row:
    variant, seed = variant_of(life, name, 17_000 + task), 17_000 + task
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
    )
    study.optimize(lambda trial: variant.objective(trial, task), n_trials=20 + task % 21)
    return {
        "variant": variant,
        "params": [trial.params for trial in study.trials],
        "values": [trial.value for trial in study.trials],
    }


def cases(n_seeds: int) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield kind of spaces, scenario, validation task, seed and number of past studies."""
    for number in range(n_seeds):
        for life in LIVES:
            for place, name in enumerate(NAMES):
                pool = scenario_of(name).splits["validation"]
                pool = np.random.default_rng(25).permutation(pool)
                n_past = NUMBERS[(number + 2 * place + (life == "same")) % len(NUMBERS)]
                yield life, name, int(pool[number % len(pool)]), FIRST + number, n_past


def run(n_seeds: int, path: Path, rules: Sequence[str]) -> None:
    done = {row["key"] for row in read(path)}
    for life, name, task, seed, n_past in cases(n_seeds):
        wanted = {label: f"{life} {name} {seed} {label}" for label in rules}
        if {*wanted.values()} <= done:
            continue
        variant = variant_of(life, name, seed)
        train = scenario_of(name).splits["train"]
        drawn = np.random.default_rng([23, seed]).choice(train, n_past, replace=False)
        past = [past_study(life, name, int(task)) for task in drawn]
        top, median = reference(life, name, task, seed)
        with tempfile.TemporaryDirectory() as folder:
            memory = remembered(Path(folder), past)
            for label, key in wanted.items():
                if key not in done:
                    row = {"key": key, "life": life, "name": name, "seed": seed, "rule": label}
                    row |= {"n_past": n_past, "top": top, "median": median}
                    objective = partial(variant.objective, task=task)
                    append(path, {**row, **tuned(objective, label, memory, seed, N_TRIALS)})


def tuned(objective: Any, label: str, memory: Memory, seed: int, n_trials: int) -> Row:
    first_trials.rule = first_trials.RULES[label]
    sampler = DRESampler(seed=seed, prior="universal", memory=False if label == "none" else memory)
    study = optuna.create_study(direction="maximize", sampler=sampler, study_name="present")
    study.optimize(objective, n_trials=n_trials)
    assert not sampler.stats["fallbacks"] and not sampler.stats["memory_errors"]
    memory.forget([entry for entry in memory.index().entries if entry.header.name == "present"])
    return {
        "values": [trial.value for trial in study.trials],
        "sources": [sampler.explain(study, trial).source for trial in study.trials],
        "contradicted": sampler.stats["memory_contradicted"],
        "past": sampler.stats["past_studies"],
    }


# ---- studies whose memory misleads


@cache
def past_tasks(name: str) -> Mapping[str, Sequence[int]]:
    """Return the training tasks, often enough for thirty past studies."""
    scenario: Any = misleading.scenario_of(name)
    pool = scenario.tasks[1::2] if name == "lcbench" else scenario.splits["train"]
    return {"train": [*pool] * (4 if name == "lcbench" else 1)}


def harm(n_seeds: int, path: Path, rules: Sequence[str]) -> None:
    done = {row["key"] for row in read(path)}
    for number in range(n_seeds):
        for place, name in enumerate(HARMED):
            kind = KINDS[(number + place) % len(KINDS)]
            misleading.N_PAST = NUMBERS[(number + number // 4 + place) % len(NUMBERS)]
            scenario: Any = misleading.scenario_of(name)
            seed = FIRST + 1000 + number
            pool = np.random.default_rng(26).permutation(scenario.validation)
            task = int(pool[number % len(pool)])
            wanted = {label: f"{kind} {name} {seed} {label}" for label in rules}
            if {*wanted.values()} <= done:
                continue
            top, median = misleading.reference(name, task)
            with tempfile.TemporaryDirectory() as folder:
                memory = Memory(folder)
                misleading.fill(memory, (), name, kind, seed)
                for label, key in wanted.items():
                    if key not in done:
                        row = {"key": key, "life": kind, "name": name, "seed": seed, "rule": label}
                        row |= {"n_past": misleading.N_PAST, "top": top, "median": median}
                        objective = partial(scenario.objective, task=task)
                        append(path, {**row, **tuned(objective, label, memory, seed, N_TRIALS)})


# ---- report


def report(rows: Sequence[Row]) -> None:
    studies: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows:
        studies.setdefault((row["life"], row["name"], row["seed"]), {})[row["rule"]] = row
    print("regret @", first_trials.AT)
    for base in ("today", "none"):
        for label in RULES:
            chosen = [found for found in studies.values() if {label, base} <= {*found}]
            if label == base or len(chosen) < 3:
                continue
            for what, group in groups(chosen, label):
                if len(group) > 2:
                    shown(f"{label} / {base}; {what}", group, label, base)


def groups(
    chosen: Sequence[Mapping[str, Row]], label: str
) -> Iterator[tuple[str, Sequence[Mapping[str, Row]]]]:
    yield "all", chosen
    for key in ("n_past", "life", "name"):
        for value in sorted({found[label][key] for found in chosen}):
            yield f"{key} {value}", [found for found in chosen if found[label][key] == value]


def shown(what: str, chosen: Sequence[Mapping[str, Row]], label: str, base: str) -> None:
    renamed = [{**found, "ours": found[label], "today": found[base]} for found in chosen]
    line(what, renamed, "ours")


def main() -> None:
    what, *arguments = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if what == "report":
        report(read(Path(arguments[0])))
        return
    patch()
    n_seeds, path, *rules = arguments
    {"run": run, "harm": harm}[what](int(n_seeds), Path(path), rules or RULES)


if __name__ == "__main__":
    main()
