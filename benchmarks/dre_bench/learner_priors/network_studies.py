"""Tune networks on validation tasks of LCBench in other spaces than the prior's.

    python -m dre_bench.learner_priors.network_studies --lcbench FOLDER --out runs.jsonl

Names, ranges and scales are others, and two parameters are missing. Regret: 0 is the best of 2000
random configurations of LCBench or of any study, 1 their median. Run the command again to resume.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from dre_bench.lcbench import Lcbench
from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_priors.studies import OTHERS, SAMPLERS, Gain, gain, sampler_of, suggest
from dre_bench.problems.maximise import reference
from dre_bench.reports.statistics import normalised_regret
from dre_plugins.space import Domain, Float, Integer, Ordinal
from dre_plugins.transfer.spaces.prefixes import change_of

N_TRIALS = 25
# Name of the user, name of LCBench, domain; and what is not tuned.
Space = Mapping[str, tuple[str, Domain]]
SPACES: Mapping[str, tuple[Space, Mapping[str, float]]] = {
    "dropout and width": (
        {
            "lr": ("learning_rate", Float(3e-4, 0.1, "log")),
            "batch_size": ("batch_size", Ordinal((32, 64, 128, 256))),
            "wd": ("weight_decay", Float(1e-5, 1e-2, "log")),
            "drop_rate": ("max_dropout", Float(0.0, 0.7)),
            "hidden_size": ("max_units", Integer(64, 512, "log")),
        },
        {"momentum": 0.9, "num_layers": 3},
    ),
    "momentum and depth": (
        {
            "log10_lr": ("learning_rate", Float(-4.0, -1.0)),
            "per_device_train_batch_size": ("batch_size", Integer(16, 256, "log")),
            "weight_decay": ("weight_decay", Float(1e-5, 0.1, "log")),
            "momentum": ("momentum", Float(0.5, 0.99)),
            "n_layers": ("num_layers", Integer(1, 4)),
        },
        {"max_dropout": 0.0, "max_units": 256},
    ),
}


def values_of_study(
    scenario: Lcbench, title: str, task: int, sampler: str, seed: int
) -> list[float]:
    """Return the accuracy of each trial."""
    space, fixed = SPACES[title]

    def objective(trial: optuna.Trial) -> float:
        configuration: dict[str, Any] = dict(fixed)
        for name, (other, domain) in space.items():
            value, change = suggest(trial, name, domain), change_of(name, other)
            configuration[other] = (
                value if change is None else float(change(np.array([float(value)]))[0])
            )
        return scenario.value(task, configuration)

    study = optuna.create_study(direction="maximize", sampler=sampler_of(sampler, seed))
    study.optimize(objective, n_trials=N_TRIALS)
    return [float(trial.value or np.nan) for trial in study.trials]


def report(scenario: Lcbench, lines: list[dict[str, Any]]) -> Gain:
    """Print mean regrets with "auto" and with each other sampler; return the gain."""
    ends: dict[int, tuple[float, float]] = {}
    for task in scenario.validation:
        known = reference(scenario, task)
        best_of_studies = [max(line["values"]) for line in lines if line["task"] == task]
        ends[task] = max([known["best"], *best_of_studies]), known["median"]
    found: dict[tuple[Any, ...], np.ndarray] = {}
    for line in lines:
        regret = normalised_regret(line["values"], *ends[line["task"]])
        found[line["space"], line["task"], line["seed"], line["sampler"]] = regret
    gains = {}
    for title in (*SPACES, ""):
        keys = sorted({key[:3] for key in found if title in ("", key[0])})
        for other in OTHERS:
            both = [k for k in keys if (*k, "auto") in found and (*k, other) in found]
            if both:
                ours, theirs = ([found[(*k, name)] for k in both] for name in ("auto", other))
                gains[title, other] = gain(ours, theirs)
                print(title or "all", other, gains[title, other])
    return gains["", "universal"]


def main() -> None:
    """Read the command line, run what is missing, and print means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lcbench", type=Path, required=True, help="folder of the surrogate")
    parser.add_argument("--out", type=Path, required=True, help="the file to add to (.jsonl)")
    parser.add_argument("--write", type=Path, help="the file of the figures (.json)")
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    scenario = Lcbench(chosen.lcbench)
    lines = read(chosen.out)
    done = {(line["space"], line["task"], line["seed"], line["sampler"]) for line in lines}
    for seed in range(chosen.seeds):
        for title in SPACES:
            for task in scenario.validation:
                for sampler in SAMPLERS:
                    if (title, task, seed, sampler) in done:
                        continue
                    values = values_of_study(scenario, title, task, sampler, seed)
                    line = {"space": title, "task": task, "seed": seed, "sampler": sampler}
                    lines.append({**line, "values": values})
                    append(chosen.out, lines[-1])
    of_pairs = report(scenario, lines)
    if chosen.write:
        chosen.write.write_text(json.dumps(asdict(of_pairs), indent=1) + "\n")


if __name__ == "__main__":
    main()
