"""Whether the first trial should be the centre of the space, on validation tasks.

    PYTHONPATH=.:benchmarks:lab nice -n 19 python lab/centre_first.py run runs.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/centre_first.py report runs.jsonl

Each pair is a study at the defaults and one whose first trial is enqueued: numbers in the middle
of their range, on its scale, and categories left to the sampler. A run goes on where it stopped.
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

from dre_plugins import DRESampler
from dre_plugins.space import Categorical

NAMES = ("lcbench", "rbv2_rpart", "rbv2_xgboost")
N_TASKS, N_SEEDS, N_TRIALS = 5, 4, 30
AT = (1, 5, 10, 20, 30)


@cache
def reference(name: str, task: int) -> tuple[float, float]:
    """Return the best and the median value of 2000 random configurations."""
    scenario: Any = scenario_of(name)
    drawn = scenario.random_configurations(2000, np.random.default_rng(task))
    values = scenario.evaluate_many(task, drawn)[scenario.metric]
    return float(values.max()), float(np.median(values))


def centre(name: str) -> dict[str, Any]:
    """Return the middle of each range; categories and what depends on them are left out."""
    space = space_of(scenario_of(name).parameters)
    return {
        parameter: domain.from_unit(0.5)
        for parameter, domain in space.domains.items()
        if not isinstance(domain, Categorical)
    }


def run(path: Path) -> None:
    """Run the pairs that are missing, in turns over the scenarios."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    scenarios: dict[str, Any] = {name: scenario_of(name) for name in NAMES}
    for seed in range(N_SEEDS):
        for place in range(N_TASKS):
            for name, scenario in scenarios.items():
                task = scenario.validation[place]
                for first in ("sobol", "centre"):
                    key = (name, task, seed, first)
                    if key in done:
                        continue
                    study = optuna.create_study(
                        direction="maximize",
                        sampler=DRESampler(seed=seed, prior="universal", memory=False),
                    )
                    if first == "centre":
                        study.enqueue_trial(centre(name))
                    study.optimize(
                        lambda trial, of=scenario, task=task: of.objective(trial, task), N_TRIALS
                    )
                    values = [trial.value for trial in study.trials]
                    with path.open("a") as file:
                        file.write(json.dumps({"key": key, "values": values}) + "\n")


def report(path: Path) -> None:
    """Print mean regret of both, and paired tests over runs."""
    values = {
        tuple(row["key"]): np.maximum.accumulate(row["values"])
        for row in map(json.loads, path.read_text().splitlines())
    }
    for names in (*[(name,) for name in NAMES], NAMES):
        found: dict[str, list[Any]] = {"sobol": [], "centre": []}
        for name, task, seed, _ in [key for key in values if key[3] == "centre"]:
            if name in names:
                both = {first: values[name, task, seed, first] for first in found}
                best, median = reference(name, task)
                best = max(best, *(curve[-1] for curve in both.values()))
                for first, curve in both.items():
                    found[first].append([(best - curve[at - 1]) / (best - median) for at in AT])
        without, with_centre = (np.array(found[first]) for first in ("sobol", "centre"))
        print(", ".join(names), len(without), "pairs, regret at", AT)
        print("  Sobol ", without.mean(0).round(3))
        print("  centre", with_centre.mean(0).round(3))
        tests = [
            wilcoxon(before, after).pvalue if (before != after).any() else 1.0
            for before, after in zip(without.T, with_centre.T, strict=True)
        ]
        n_better, n_worse = (with_centre < without).sum(0), (with_centre > without).sum(0)
        print("  p     ", np.round(tests, 4), "better", n_better, "worse", n_worse)


if __name__ == "__main__":
    {"run": run, "report": report}[sys.argv[1]](Path(sys.argv[2]))
