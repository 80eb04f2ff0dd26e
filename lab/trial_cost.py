"""Regret at equal cost, with the costs of trials told and without.

python lab/trial_cost.py run OUT SAMPLERS SCENARIOS SEEDS [--data FOLDER]; lists are separated by
commas, samplers are blind, aware, random and tpe. Studies that OUT has already are left out.
python lab/trial_cost.py table OUT [--data FOLDER]
"""

from __future__ import annotations

import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from scipy.stats import wilcoxon

from dre_bench import lcbench
from dre_bench.learner_evaluations.records import append, read
from dre_bench.priors import search_space
from dre_bench.tasks import Configuration, Scenario, YahpoScenario
from dre_plugins.study import AskTell

DATA = Path("/work/shared/data/yahpo")
# A budget is what so many random trials take on average. A study ends at half of it, or after
# MAX_TRIALS.
N_RANDOM, MAX_TRIALS = 50, 60
SHARES = (0.25, 0.5)
Evaluated = tuple[np.ndarray, np.ndarray]
Record = dict[str, Any]


@cache
def scenario_of(name: str) -> Scenario:
    """Return a scenario; networks of LCBench tell their times as well."""
    if name == "lcbench":
        lcbench.OUTPUTS["time"] = 0
        return lcbench.Lcbench(DATA / name)
    return YahpoScenario(DATA / name)


def validation(scenario: Scenario) -> list[int]:
    """Return the tasks that choices are made on."""
    tasks = getattr(scenario, "validation", None)
    return scenario.splits["validation"] if tasks is None else list(tasks)


def evaluated(scenario: Scenario, task: int, configurations: list[Configuration]) -> Evaluated:
    """Return values and seconds of training, each `[N]`."""
    outputs = scenario.evaluate_many(task, configurations)
    seconds = outputs["time" if scenario.name == "lcbench" else "timetrain"]
    return outputs[scenario.metric], np.maximum(seconds, 1e-3)


@cache
def reference(name: str, task: int) -> Evaluated:
    """Return values and seconds of 2000 random configurations."""
    scenario = scenario_of(name)
    return evaluated(
        scenario, task, scenario.random_configurations(2000, np.random.default_rng(99))
    )


def study(name: str, task: int, seed: int, sampler: str) -> Record:
    """Run one study and return its values and seconds."""
    scenario = scenario_of(name)
    budget = N_RANDOM * float(reference(name, task)[1].mean())
    values: list[float] = []
    paid: list[float] = []
    if sampler in ("blind", "aware"):
        tuned = AskTell(search_space(scenario.parameters), direction="maximize", seed=seed)
    else:
        kinds = {
            "random": optuna.samplers.RandomSampler(seed=seed),
            "tpe": optuna.samplers.TPESampler(seed=seed, multivariate=True),
        }
        optuna_study = optuna.create_study(direction="maximize", sampler=kinds[sampler])
    while len(values) < MAX_TRIALS and sum(paid) < max(SHARES) * budget:
        if sampler in ("blind", "aware"):
            number, configuration = tuned.ask()
        else:
            trial = optuna_study.ask()
            configuration = scenario.suggest(trial)
        (value,), (seconds,) = evaluated(scenario, task, [configuration])
        if sampler in ("blind", "aware"):
            tuned.tell(number, float(value), cost=float(seconds) if sampler == "aware" else None)
        else:
            optuna_study.tell(trial, float(value))
        values.append(float(value))
        paid.append(float(seconds))
    return {
        "sampler": sampler,
        "scenario": name,
        "task": task,
        "seed": seed,
        "values": values,
        "costs": paid,
        "budget": budget,
    }


def run(out: Path, samplers: list[str], names: list[str], seeds: list[int]) -> None:
    """Run what the file lacks, and append a line for each study."""
    done = {(r["sampler"], r["scenario"], r["task"], r["seed"]) for r in read(out)}
    for seed in seeds:
        for name in names:
            for task in validation(scenario_of(name)):
                for sampler in samplers:
                    if (sampler, name, task, seed) not in done:
                        append(out, study(name, task, seed, sampler))


def regret(record: Record, best: float, n_trials: int) -> float:
    """Return 0 for the best known value, 1 for the median random one or no trial."""
    median = float(np.median(reference(record["scenario"], record["task"])[0]))
    if not n_trials or best <= median:
        return float(best > median)
    return min((best - max(record["values"][:n_trials])) / (best - median), 1.0)


def marks(record: Record, best: float) -> list[float]:
    """Return the regret at each share of the budget, and after 20 trials."""
    spent = np.cumsum(record["costs"]) / record["budget"]
    return [regret(record, best, int((spent <= share).sum())) for share in SHARES] + [
        regret(record, best, 20)
    ]


def table(out: Path) -> None:
    """Print mean regrets, and wins, losses and Wilcoxon's p against blind."""
    records = read(out)
    best: dict[tuple[str, int], float] = {}
    for record in records:
        key = record["scenario"], record["task"]
        known = best.get(key, float(reference(*key)[0].max()))
        best[key] = max(known, *record["values"])
    of: dict[str, dict[tuple[str, int, int], list[float]]] = {}
    for record in records:
        key = record["scenario"], record["task"]
        place = *key, record["seed"]
        of.setdefault(record["sampler"], {})[place] = marks(record, best[key])
    names = sorted({name for name, _, _ in of["blind"]})
    for name in [*names, "all"]:
        for sampler, rows in of.items():
            both = [p for p in rows if p in of["blind"] and name in ("all", p[0])]
            if not both:
                continue
            cells = []
            for column in range(len(SHARES) + 1):
                ours = np.array([rows[place][column] for place in both])
                gains = np.array([of["blind"][place][column] for place in both]) - ours
                wins, losses = (gains > 1e-9).sum(), (gains < -1e-9).sum()
                p = wilcoxon(gains).pvalue if wins + losses else math.nan
                cells.append(f"{ours.mean():.3f} ({wins} to {losses}, p {p:.3f})")
            print(name, sampler, len(both), *cells, sep=" | ")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--data" in arguments:
        place = arguments.index("--data")
        DATA = Path(arguments[place + 1])
        del arguments[place : place + 2]
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if arguments[0] == "table":
        table(Path(arguments[1]))
    else:
        samplers, names, seeds = (argument.split(",") for argument in arguments[2:5])
        run(Path(arguments[1]), samplers, names, [int(seed) for seed in seeds])
