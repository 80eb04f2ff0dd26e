"""Regret at equal cost, with the costs of trials told and without.

    PYTHONPATH=.:benchmarks:lab nice python lab/trial_cost.py run OUT SAMPLERS SCENARIOS SEEDS
    PYTHONPATH=.:benchmarks:lab python lab/trial_cost.py table OUT

Lists are separated by commas, samplers are blind, aware, random and tpe. Studies that OUT has
already are left out.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from paired_studies import compare
from tuning_tasks import scenario_of

from dre_bench import lcbench
from dre_bench.learner_evaluations.records import append, read
from dre_bench.priors import search_space
from dre_bench.tasks import Configuration, Scenario
from dre_plugins.study import AskTell

lcbench.OUTPUTS["time"] = 0  # which the suites do not need
# A budget is what so many random trials take on average. A study ends at half of it, or after
# MAX_TRIALS.
N_RANDOM, MAX_TRIALS = 50, 60
SHARES = (0.25, 0.5)
Evaluated = tuple[np.ndarray, np.ndarray]
Record = dict[str, Any]


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
            for task in scenario_of(name).validation:
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
    """Print mean regrets, each sampler beside blind."""
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
            if both and sampler != "blind":
                print(name, end=": ")
                pairs = {"blind": of["blind"], sampler: rows}
                found = {who: [of_who[p] for p in both] for who, of_who in pairs.items()}
                compare(found, (*SHARES, "20 trials"), "blind")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if arguments[0] == "table":
        table(Path(arguments[1]))
    else:
        samplers, names, seeds = (argument.split(",") for argument in arguments[2:5])
        run(Path(arguments[1]), samplers, names, [int(seed) for seed in seeds])
