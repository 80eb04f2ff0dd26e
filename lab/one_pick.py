"""What one suggestion gains: every version of the sampler is asked on the same histories.

    PYTHONPATH=.:benchmarks:lab python lab/one_pick.py histories histories.json
    PYTHONPATH=VERSION:benchmarks:lab python lab/one_pick.py picks histories.json NAME picks.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/one_pick.py report histories.json picks.jsonl NAME ...

Whole studies differ by luck as soon as one suggestion differs, so that small effects need hundreds
of them. Here a study of 45 trials is run once on each task, cut after several numbers of trials,
and a version of the sampler makes the next suggestion, once in a turn of the universal prior and
once in a turn of the ensemble. The gain is log10 of regret before over regret after it.
Tasks are training tasks and shifted functions, never test tasks. A run goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from memory_lives import space_of
from scipy.stats import wilcoxon
from tuning_tasks import scenario_of

from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.maximise import reference
from dre_bench.synthetic import synthetic_scenario
from dre_plugins import DRESampler
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.trials import Trial, TrialState

# Without conditions, which `space_of` does not state (2026-11-24-early-trials.md).
REAL = {"rbv2_rpart": 8, "lcbench": 8}
FUNCTIONS = ("bowl", "levy8", "hartmann6", "rosenbrock5", "ackley5", "mixed")
OTHERS = ("StyblinskiTang", "Griewank", "DixonPrice", "Beale", "SixHumpCamel", "Michalewicz")
N_TRIALS = 45
AT = (6, 8, 10, 12, 15, 18, 22, 26, 30, 36, 42)
# The ensemble has no turn before its start-up trials have ended.
FIRST = {"universal prior": 6, "ensemble": 10}
NUMBERS = {"universal prior": 1001, "ensemble": 1000}
LEAST = 1e-4  # regret that counts as none

functions = cache(synthetic_scenario)


def scenario(name: str) -> Any:
    """Return a scenario by its name."""
    return scenario_of(name) if name in REAL else functions(name)


def tasks() -> list[tuple[str, int]]:
    """Return the scenario and the number of each task."""
    found = []
    for name, count in REAL.items():
        training = scenario(name).training
        step = max(1, len(training) // count)
        found += [(name, int(task)) for task in training[1::step][:count]]
    found += [(name, task) for name in FUNCTIONS for task in (4, 9)]
    return found + [(f"botorch:{name}", 4) for name in OTHERS]


def histories(path: Path) -> None:
    """Run the studies."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    done = json.loads(path.read_text()) if path.exists() else {}
    for name, task in tasks():
        key = f"{name} {task}"
        if key in done:
            continue
        study = optuna.create_study(
            direction="maximize", sampler=DRESampler(seed=task, prior="universal", memory=False)
        )
        study.optimize(
            lambda trial, name=name, task=task: scenario(name).objective(trial, task), N_TRIALS
        )
        done[key] = [(trial.params, trial.value) for trial in study.trials]
        path.write_text(json.dumps(done))


def picks(source: Path, version: str, path: Path) -> None:
    """Make one suggestion after each number of trials, by both models."""
    done = {tuple(row["key"]) for row in read(path)}
    for task, rows in json.loads(source.read_text()).items():
        name, number = task.split()
        space = space_of(scenario(name).parameters)
        for turn, index in NUMBERS.items():
            key = (version, turn, task)
            if key in done:
                continue
            values = {}
            for n in AT:
                if n < FIRST[turn]:
                    continue
                history = [Trial(given, TrialState.COMPLETE, value) for given, value in rows[:n]]
                recommender = Recommender(space, seed=int(number))
                chosen = recommender.suggest(history, index=index)[0]
                assert not recommender.stats["fallbacks"]
                values[n] = scenario(name).value(int(number), chosen.configuration)
            append(path, {"key": key, "values": values})


def report(source: Path, path: Path, versions: list[str]) -> None:
    """Print the mean gain of each version, and tests against the first one over tasks."""
    studies = json.loads(source.read_text())
    found = {tuple(row["key"]): row["values"] for row in read(path)}
    for turn in NUMBERS:
        means = {}
        for version in versions:
            gains = [
                _gains(task, rows, found[version, turn, task], found)
                for task, rows in studies.items()
            ]
            means[version] = np.array([np.mean(of_task) for of_task in gains])
        print(turn)
        for version, of_tasks in means.items():
            difference = of_tasks - means[versions[0]]
            error = difference.std() / len(difference) ** 0.5
            p = wilcoxon(difference).pvalue if difference.any() else 1.0
            print(
                f"  {version:20} {of_tasks.mean():.3f} {difference.mean():+.3f} ± {error:.3f}", p
            )


def _gains(
    task: str, rows: list[Any], values: dict[str, float], found: dict[Any, Any]
) -> list[float]:
    """Return log10 of regret before over regret after the suggestion, for each history."""
    name, number = task.split()
    drawn = reference(scenario(name), int(number))
    low, best = drawn["median"], drawn["best"]
    known = [max(of.values()) for key, of in found.items() if key[2] == task]
    best = max(best, *known, *(value for _, value in rows))
    gains = []
    for n, value in values.items():
        incumbent = max(value for _, value in rows[: int(n)])
        before, after = (
            max((best - reached) / (best - low), LEAST)
            for reached in (incumbent, max(incumbent, value))
        )
        gains.append(float(np.log10(before / after)))
    return gains


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    if command == "histories":
        histories(Path(given[0]))
    elif command == "picks":
        picks(Path(given[0]), given[1], Path(given[2]))
    else:
        report(Path(given[0]), Path(given[1]), given[2:])
