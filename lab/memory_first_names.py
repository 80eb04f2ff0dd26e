"""What the memory is worth to a first trial whose first parameter had another name before.

    PYTHONPATH=.:benchmarks:lab nice -n 10 python lab/memory_first_names.py base.jsonl runs.jsonl

Decision trees and XGBoost on validation tasks, five trials, from two past studies on training
tasks (`memory_priors.py base`) in which the first parameter has another name than in the present
one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from unittest.mock import patch

import memory_overlap
import numpy as np
import optuna
from memory_lives import Variant, read, scenario_of, variant_of
from memory_overlap import reference, tuned

from dre_plugins.memory.selection import first_with

N_TRIALS, N_STUDIES = 5, 12
HOWS = ("equal names", "any names")


def first_name(variant: Variant) -> str:
    name = variant.parameters[0].name
    return variant.names.get(name, name)


def equal_only(spaces: Sequence[Collection[str]], name: str) -> int | None:
    return next((place for place, names in enumerate(spaces) if name in names), None)


def main() -> None:
    base, path = map(Path, sys.argv[1:])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    memory_overlap.N_TRIALS = N_TRIALS
    done = {row["key"] for row in read(path)}
    for name in ("rbv2_rpart", "rbv2_xgboost"):
        rows = [row for row in read(base) if row["name"] == name]
        pool = sorted(scenario_of(name).splits["validation"])
        variants = {seed: variant_of("varied", name, seed) for seed in range(8600, 8700)}
        renamed = [seed for seed, v in variants.items() if v.parameters[0].name in v.names]
        for place, seed in enumerate(renamed[:N_STUDIES]):
            task, rng = pool[place % len(pool)], np.random.default_rng(seed)
            other = [
                row
                for row in rows
                if first_name(variants[seed]) not in row["params"][0]
                and variants[seed].parameters[0].name in row["params"][0]
            ]
            past = [*rng.permutation(other)[:2]]
            for how in HOWS:
                key = f"{name} {place} {how}"
                if key in done:
                    continue
                rule = equal_only if how == HOWS[0] else first_with
                with patch("dre_plugins.memory.selection.first_with", rule):
                    found = tuned(variants[seed], task, seed, past)
                top, median = reference(name, task)
                row = {"key": key, "name": name, "place": place, "how": how}
                with path.open("a") as file:
                    file.write(json.dumps({**row, "top": top, "median": median, **found}) + "\n")
    report(path)


def report(path: Path) -> None:
    rows = read(path)
    for name in dict.fromkeys(row["name"] for row in rows):
        regrets = []
        for how in HOWS:
            chosen = [row for row in rows if (row["name"], row["how"]) == (name, how)]
            regrets.append(
                [
                    (r["top"] - np.maximum.accumulate(r["values"])[[0, 2, 4]])
                    / (r["top"] - r["median"])
                    for r in chosen
                ]
            )
        equal, any_name = map(np.array, regrets)
        print(name, len(equal), "@1 @3 @5", equal.mean(0).round(2), any_name.mean(0).round(2))
        print("    better", (any_name < equal).sum(0), "worse", (any_name > equal).sum(0))


if __name__ == "__main__":
    main()
