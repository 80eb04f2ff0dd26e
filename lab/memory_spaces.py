"""What a prior of five past studies expects where search spaces differ, and in what they differ.

    PYTHONPATH=.:benchmarks:lab nice python lab/memory_spaces.py run 20 spaces.jsonl
    PYTHONPATH=.:benchmarks:lab python lab/memory_spaces.py report spaces.jsonl

No studies are made but the past ones: each prior orders 500 random configurations of a validation
task in the space of the present study. Past studies are of TPE, 40 trials, on the same five
training tasks by each kind of spaces: the same; all that `memory_lives.py` varies; and each part
of that alone (ranges, a parameter left out or added, names).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import optuna
from memory_first_trials import append, task_of, values_of
from memory_lives import Row, Variant, read, scenario_of, space_of, variant_of
from scipy.stats import kendalltau
from transfer_rivals import shown

from dre_plugins import MetaDataset, Prior

NAMES = ("rbv2_xgboost", "rbv2_rpart")
KINDS = ("same", "ranges", "parameters", "names", "varied")
FIRST = 80_000


def variant(kind: str, name: str, seed: int) -> Variant:
    """Return the space of a study in which only one kind of difference is left."""
    whole, same = variant_of("varied", name, seed), variant_of("same", name, seed)
    if kind in ("same", "varied"):
        return variant_of(kind, name, seed)
    if kind == "names":
        return replace(same, names=whole.names)
    if kind == "parameters":
        own = {parameter.name: parameter for parameter in same.parameters}
        kept = tuple(own.get(parameter.name, parameter) for parameter in whole.parameters)
        return replace(same, parameters=kept, fixed=whole.fixed)
    cut = {parameter.name: parameter for parameter in whole.parameters}
    return replace(same, parameters=tuple(cut.get(p.name, p) for p in same.parameters))


@cache
def past_study(kind: str, name: str, task: int) -> Row:
    found, seed = variant(kind, name, 27_000 + task), 27_000 + task
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
    )
    study.optimize(lambda trial: found.objective(trial, task), n_trials=40)
    return {
        "variant": found,
        "params": [trial.params for trial in study.trials],
        "values": [trial.value for trial in study.trials],
    }


def run(n_seeds: int, path: Path) -> None:
    done = {row["key"] for row in read(path)}
    for number in range(n_seeds):
        for name in NAMES:
            pool = scenario_of(name).splits["validation"]
            task = int(np.random.default_rng(28).permutation(pool)[number % len(pool)])
            seed = FIRST + number
            train = scenario_of(name).splits["train"]
            drawn = np.random.default_rng([29, seed]).choice(train, 5, replace=False)
            for kind in KINDS:
                key = f"{kind} {name} {seed}"
                if key in done:
                    continue
                past = [past_study(kind, name, int(number)) for number in drawn]
                tasks = [task_of(number, row) for number, row in enumerate(past)]
                prior = Prior.of_few(MetaDataset(tuple(tasks)))
                row = {"key": key, "kind": kind, "name": name}
                append(path, {**row, **quality(prior, variant(kind, name, seed), task, seed)})


def quality(prior: Prior, present: Variant, task: int, seed: int) -> Row:
    """Return rank correlations, and the regret of what the prior likes best of 500."""
    space = space_of(shown(present))
    units = space.canonical(np.random.default_rng(seed).random((500, space.n_parameters)))
    values, scores = values_of(present, task, space, units), prior.scores(space, units)
    top, median = values.max(), np.median(values)
    best = np.argsort(-scores)
    upper = best[:125]
    return {
        "tau": float(kendalltau(scores, values).statistic),
        "tau among the first quarter": float(kendalltau(scores[upper], values[upper]).statistic),
        "regret of the first": float((top - values[best[0]]) / (top - median)),
        "regret of the first five": float((top - values[best[:5]].max()) / (top - median)),
    }


def report(rows: Sequence[Row]) -> None:
    for name in NAMES:
        for kind in KINDS:
            chosen = [row for row in rows if (row["name"], row["kind"]) == (name, kind)]
            print(name, kind, len(chosen))
            for what in [key for key in chosen[0] if key not in ("key", "kind", "name")]:
                found = np.array([row[what] for row in chosen])
                error = found.std() / np.sqrt(len(found))
                print(f"    {what:28}", found.mean().round(3), "±", error.round(3))


def main() -> None:
    what, *arguments = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if what == "run":
        run(int(arguments[0]), Path(arguments[1]))
    else:
        report(read(Path(arguments[0])))


if __name__ == "__main__":
    main()
