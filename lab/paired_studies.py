"""Studies that are made once with each of several versions, and how versions compare."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from numpy.typing import ArrayLike, NDArray
from scipy.stats import wilcoxon
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.maximise import reference
from dre_bench.reports.statistics import normalised_regret
from dre_bench.synthetic import synthetic_scenario
from dre_bench.tasks import Scenario

# Name of the scenario, itself, task, seed.
Run = tuple[str, Scenario, int, int]
LEAST = 1e-4  # regret that counts as none in logarithms


# ---- studies


def studied(
    sampler: optuna.samplers.BaseSampler,
    objective: Callable[[optuna.Trial], float],
    n_trials: int,
    **options: Any,
) -> optuna.Study:
    """Return a study that maximises an objective, in which no suggestion is a fallback."""
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials, **options)
    assert not getattr(sampler, "stats", {}).get("fallbacks")
    return study


def complete(
    path: Path, keys: Iterable[tuple[Any, ...]], row_of: Callable[..., dict[str, Any]]
) -> None:
    """Append a row for each key that a file does not have: what a function returns for it."""
    done = {tuple(row["key"]) for row in read(path)}
    for key in keys:
        if key not in done:
            append(path, {"key": key, **row_of(*key)})


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


def run_missing(
    out: str,
    plan: Iterable[Run],
    versions: Mapping[str, Callable[[Scenario, int, int], list[float]]],
    prefix: str = "",
) -> None:
    """Append a line for each run; those that are there are not repeated.

    Args:
        out: A JSONL file.
        plan: The runs.
        versions: What returns the values of a study, of a scenario, a task and a seed.
        prefix: Of what the seeds of the studies are made of.
    """
    path = Path(out)
    made = {(record["scenario"], record["task"], record["seed"]) for record in read(path)}
    for name, scenario, task, seed in plan:
        if (name, task, seed) not in made:
            record = {"scenario": name, "task": task, "seed": seed, **reference(scenario, task)}
            number = zlib.crc32(f"{prefix}{name}/{task}/{seed}".encode())
            for version, values_of in versions.items():
                record[version] = values_of(scenario, task, number)
            append(path, record)


# ---- reports


def regrets(
    values: ArrayLike, best: float, median: float, at: Sequence[int]
) -> NDArray[np.float64]:
    """Return the regret after so many trials: 0 is the best value, 1 the random median."""
    return normalised_regret(values, best, median)[np.array(at) - 1]


def logarithm(regret: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the decimal logarithm of a regret."""
    return np.log10(np.clip(regret, LEAST, None))


def compare(
    regrets_of: Mapping[str, Sequence[ArrayLike]],
    at: Sequence[object],
    against: str,
    scale: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.asarray,
) -> None:
    """Print mean regrets, in how many pairs each is better and worse than one, and p.

    Args:
        regrets_of: Regrets of each version `[pairs, len(at)]`.
        at: Numbers of trials, or what else says when.
        against: The version that others are compared with.
        scale: Of the regrets in Wilcoxon's test.
    """
    base = np.array(regrets_of[against])
    print(f"{len(base)} pairs, regret after {at}; below it better, worse and p beside {against}")
    for version, rows in regrets_of.items():
        print(f"  {version:26}", np.mean(rows, axis=0).round(3))
        if version != against:
            changes = (scale(np.array(rows)) - scale(base)).round(9).T
            tests = [wilcoxon(change).pvalue if change.any() else 1.0 for change in changes]
            print(" " * 28, (changes < 0).sum(1), (changes > 0).sum(1), np.round(tests, 3))


def ratio(ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike]) -> str:
    """Return the ratio of mean regrets `[pairs, T]` with its error, and better and worse pairs."""
    a, b = np.array(ours), np.array(theirs)
    drawn = np.random.default_rng(0).integers(len(a), size=(2000, len(a)))
    error = (a[drawn].mean(1) / b[drawn].mean(1)).std(0)
    quotient = (a.mean(0) / b.mean(0)).round(3)
    return f"{quotient} ± {error.round(2)}, better {(a < b).sum(0)}, worse {(a > b).sum(0)}"
