"""Priors that a memory trains ahead: one for each study, for a group of spaces, or for all.

    PYTHONPATH=.:benchmarks:lab nice -n 15 python lab/memory_priors.py base base.jsonl
    PYTHONPATH=.:benchmarks:lab nice -n 15 python lab/memory_priors.py train base.jsonl PRIORS
    PYTHONPATH=.:benchmarks:lab nice -n 15 python lab/memory_priors.py order base.jsonl PRIORS
    PYTHONPATH=.:benchmarks:lab nice -n 15 python lab/memory_priors.py tune base.jsonl PRIORS runs

The memory has 40 studies of 40 trials by TPE on training tasks of each YAHPO scenario and twelve
of LCBench, each in a search space of its own (see `memory_lives.variant_of`). Held-out studies are
of validation tasks, also in spaces of their own.

    few      what a study does without `dre memory train`: 100 steps on the 30 nearest studies
    group    the long training on all studies of the scenario, in the union of their spaces
    all      the long training on all studies of the memory in one union of spaces
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import memory_lives
import numpy as np
import optuna
from memory_lives import Row, Variant, read, variant_of
from scipy.stats import kendalltau
from tuning_tasks import Lcbench

from dre_bench.tasks import Scenario
from dre_plugins import DRESampler, MetaDataset, Prior
from dre_plugins.memory import study as study_memory
from dre_plugins.memory.selection import overlap
from dre_plugins.transfer.metadata import Task

NAMES = ("rbv2_rpart", "rbv2_xgboost", "lcbench")
N_STUDIES, N_TRIALS, N_TUNED = 40, 40, 15
N_RANDOM = 300
KINDS = ("none", "few", "group", "all")


@cache
def scenario_of(name: str) -> Scenario:
    return Lcbench() if name == "lcbench" else find(name)


find = memory_lives.scenario_of
memory_lives.scenario_of = scenario_of


def tasks_of(name: str, split: str) -> Sequence[int]:
    scenario: Any = scenario_of(name)
    if name == "lcbench":
        held_out = scenario.validation
        train = [task for task in scenario.tasks if task not in held_out]
        return held_out if split == "validation" else train
    found: Sequence[int] = scenario.splits[split]
    return found


# ---- the memory


def run_base(path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for place in range(N_STUDIES):
        for name in NAMES:
            pool = np.random.default_rng(3).permutation(tasks_of(name, "train"))
            key = f"{name} {place}"
            if place >= len(pool) or key in done:
                continue
            task, seed = int(pool[place]), 7000 + place
            variant = variant_of("varied", name, seed)
            sampler = optuna.samplers.TPESampler(seed=seed)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            study.optimize(lambda t, v=variant, k=task: v.objective(t, k), n_trials=N_TRIALS)
            values = [trial.value for trial in study.trials]
            params = [trial.params for trial in study.trials]
            row = {"key": key, "name": name, "task": task, "seed": seed}
            with path.open("a") as file:
                file.write(json.dumps({**row, "values": values, "params": params}) + "\n")


def past_tasks(rows: Sequence[Row], names: Sequence[str]) -> MetaDataset:
    return MetaDataset.of((past_task(row) for row in rows if row["name"] in names), source="lab")


def past_task(row: Row) -> Task:
    from dre_plugins.recommend.trials import Trial, TrialState

    space = space_of(variant_of("varied", row["name"], row["seed"]))
    trials = [
        Trial(params, TrialState.COMPLETE, value)
        for params, value in zip(row["params"], row["values"], strict=True)
    ]
    return Task.from_trials(row["key"], space, trials)


def space_of(variant: Variant) -> Any:
    """Return the space that a study of a variant shows; conditional parameters are optional."""
    return memory_lives.space_of(
        replace(parameter, name=variant.names.get(parameter.name, parameter.name))
        for parameter in variant.parameters
    )


# ---- priors


def few_for(name: str, variant: Variant, metadata: MetaDataset) -> Prior:
    space = space_of(variant)
    overlaps = {task.name: overlap(task.space, space) for task in metadata}
    chosen = sorted((n for n in overlaps if overlaps[n] > 0.0), key=lambda n: -overlaps[n])[:30]
    return Prior.of_few(metadata.subset(set(chosen)))


def run_training(rows: Sequence[Row], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    plans = {f"group {name}": [name] for name in NAMES} | {"all": [*NAMES]}
    for what, names in plans.items():
        path = folder / f"{what}.safetensors"
        if path.exists():
            continue
        start = time.perf_counter()
        prior = Prior.train(past_tasks(rows, names), name=what)
        prior.save(path)
        seconds = round(time.perf_counter() - start, 1)
        print(path.name, seconds, prior.card.validation, flush=True)


def prior_for(kind: str, name: str, variant: Variant, rows: Sequence[Row], folder: Path) -> Prior:
    if kind == "few":
        return few_for(name, variant, past_tasks(rows, NAMES))
    return Prior.load(folder / f"{f'group {name}' if kind == 'group' else kind}.safetensors")


# ---- what they are worth


def held_out() -> list[tuple[str, int, Variant]]:
    return [
        (name, int(task), variant_of("varied", name, 8000 + place))
        for name in NAMES
        for place, task in enumerate(tasks_of(name, "validation"))
    ]


def drawn_of(task: int, variant: Variant, n: int) -> tuple[Any, Any, Any]:
    """Return coordinates and values of random configurations of a variant, and its space."""
    space, scenario = space_of(variant), variant.scenario
    rng = np.random.default_rng([5, task])
    drawn = []
    for _ in range(n):
        row: Row = {}
        for parameter in variant.parameters:
            if parameter.is_active({**variant.fixed, **row}):
                row[parameter.name] = parameter.draw(rng)
        drawn.append(row)
    whole = [variant.whole(row) for row in drawn]
    values = scenario.evaluate_many(task, whole)[scenario.metric]
    seen = [{variant.names.get(n, n): v for n, v in row.items()} for row in drawn]
    return space.to_units(seen), values, space


def run_order(rows: Sequence[Row], folder: Path) -> None:
    """Print the rank correlation with random configurations, and the regret of the first one."""
    kinds = KINDS[1:]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name, task, variant in held_out():
        units, values, space = drawn_of(task, variant, N_RANDOM)
        for kind in kinds:
            scores = prior_for(kind, name, variant, rows, folder).scores(space, units)
            regret = (values.max() - values[scores.argmax()]) / (values.max() - np.median(values))
            tau = kendalltau(scores, values).statistic
            found.setdefault((kind, name), []).append((tau, regret))
    for (kind, name), figures in found.items():
        mean = np.mean(figures, axis=0).round(3)
        error = (np.std(figures, axis=0) / len(figures) ** 0.5).round(3)
        print(f"{kind:20} {name:14} tau {mean[0]} ± {error[0]}, regret {mean[1]} ± {error[1]}")


def run_tuning(rows: Sequence[Row], folder: Path, path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for seed in range(3):
        for name, task, variant in held_out():
            for kind in KINDS:
                key = f"{name} {task} {seed} {kind}"
                if key in done:
                    continue
                prior = None
                if kind != "none":
                    prior = prior_for(kind, name, variant, rows, folder)
                study_memory.prior_for = lambda *_, given=prior: given
                memory = tempfile.mkdtemp() if kind != "none" else False
                sampler = DRESampler(seed=9000 + seed, prior="universal", memory=memory)
                study = optuna.create_study(direction="maximize", sampler=sampler)
                study.optimize(lambda t, v=variant, k=task: v.objective(t, k), n_trials=N_TUNED)
                values = [trial.value for trial in study.trials]
                row = {"key": key, "name": name, "task": task, "seed": seed, "kind": kind}
                row |= {"values": values, "contradicted": sampler.stats["memory_contradicted"]}
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def report(rows: Sequence[Row]) -> None:
    studies: dict[tuple[str, int, int], dict[str, Row]] = {}
    for row in rows:
        studies.setdefault((row["name"], row["task"], row["seed"]), {})[row["kind"]] = row
    whole = {key: found for key, found in studies.items() if set(found) >= set(KINDS)}
    variants = {(name, task): variant for name, task, variant in held_out()}
    regrets: dict[tuple[str, int, int], Mapping[str, np.ndarray]] = {}
    for (name, task, seed), found in whole.items():
        drawn = variants[name, task].drawn(task, 2000, np.random.default_rng(task))
        top = max(drawn.max(), *(max(row["values"]) for row in found.values()))
        scale = top - np.median(drawn)
        regrets[name, task, seed] = {
            kind: (top - np.maximum.accumulate(row["values"])[[0, 4, 9, 14]]) / scale
            for kind, row in found.items()
        }
    for name in ("", *NAMES):
        keys = [key for key in whole if key[0].startswith(name)]
        if not keys:
            continue
        print(f"{name or 'all'}: {len(keys)} studies, regret @1, 5, 10, 15, and its ratio to none")
        none = np.array([regrets[key]["none"] for key in keys])
        drawn = np.random.default_rng(0).integers(len(keys), size=(2000, len(keys)))
        for kind in KINDS:
            ours = np.array([regrets[key][kind] for key in keys])
            error = (ours[drawn].mean(1) / none[drawn].mean(1)).std(0).round(2)
            ratio = (ours.mean(0) / none.mean(0)).round(2)
            print(f"    {kind:18}", ours.mean(0).round(3), ratio, "±", error)


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    what, *arguments = sys.argv[1:]
    paths = [Path(argument) for argument in arguments]
    if what == "base":
        run_base(paths[0])
    elif what == "train":
        run_training(read(paths[0]), paths[1])
    elif what == "order":
        run_order(read(paths[0]), paths[1])
    elif what == "tune":
        run_tuning(read(paths[0]), *paths[1:])
    else:
        report(read(paths[0]))


if __name__ == "__main__":
    main()
