"""Studies of validation tasks that are made twice, for the scripts that compare two rules."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import numpy as np
from tuning_tasks import scenario_of

from dre_bench.synthetic import synthetic_scenario
from dre_bench.tasks import Scenario

# Name of the scenario, itself, task, seed.
Run = tuple[str, Scenario, int, int]


def runs(functions: Mapping[str, int], n_seeds: int, first: int) -> Iterator[Run]:
    """Yield the runs, scenarios in turns.

    Args:
        functions: Tasks of each function in a round; another round has others.
        n_seeds: Rounds, each with all validation tasks.
        first: The first task of each function.
    """
    groups: dict[str, list[Run]] = {}
    for seed in range(n_seeds):
        for name in ("rbv2_xgboost", "rbv2_rpart", "lcbench"):
            scenario = scenario_of(name)
            for task in scenario.validation:
                groups.setdefault(name, []).append((name, scenario, task, seed))
        for name, n_tasks in functions.items():
            for task in range(first + n_tasks * seed, first + n_tasks * (seed + 1)):
                run = (name, synthetic_scenario(name), task, seed)
                groups.setdefault(name, []).append(run)
    for row in zip_longest(*groups.values()):
        yield from (run for run in row if run is not None)


def append(
    out: str,
    plan: Iterable[Run],
    variants: Mapping[str, Callable[[Scenario, int, int], list[float]]],
    prefix: str = "",
) -> None:
    """Append a line for each run; those that are there are not repeated.

    Args:
        out: A JSONL file.
        plan: The runs.
        variants: What returns the values of a study, of a scenario, a task and a seed.
        prefix: Of what the seeds of the studies are made of.
    """
    path = Path(out)
    records = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    made = {(record["scenario"], record["task"], record["seed"]) for record in records}
    for name, scenario, task, seed in plan:
        if (name, task, seed) in made:
            continue
        sample = scenario.random_configurations(2000, np.random.default_rng(task))
        values = scenario.evaluate_many(task, sample)[scenario.metric]
        record = {"scenario": name, "task": task, "seed": seed}
        record |= {"median": float(np.median(values)), "best": float(values.max())}
        number = zlib.crc32(f"{prefix}{name}/{task}/{seed}".encode())
        for variant, values_of in variants.items():
            record[variant] = values_of(scenario, task, number)
        with open(out, "a") as file:
            file.write(json.dumps(record) + "\n")
