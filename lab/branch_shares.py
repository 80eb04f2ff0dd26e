"""Regret, rank and the share of trials in wrong branches, from runs of the conditional suite.

    dre-bench run --suite conditional --data PATH/yahpo -o conditional.jsonl
    python lab/branch_shares.py conditional.jsonl

A branch is wrong if its best value of all runs lies more than 2 % of the scale below the best
known; the scale is from the best known value to the median of random search.
"""

import json
import sys
from collections import Counter, defaultdict

import numpy as np
import pandas as pd

CHECKPOINTS = (10, 20, 30, 40, 60)
CHOICES = ("classifier", "learner", "branch")
FIRST = 30  # trials from here on are counted


def branch_of(configuration: dict) -> str:
    """Return the branch of a configuration: XGBoost's boosters are three."""
    choice = next((configuration[name] for name in CHOICES if name in configuration), "all")
    return f"{choice}/{configuration.get('xgboost.booster', '')}"


def main(path: str) -> None:
    """Print a table."""
    with open(path) as file:
        records = [record for record in map(json.loads, file) if "error" not in record]
    best: defaultdict = defaultdict(lambda: -np.inf)
    best_in: defaultdict = defaultdict(lambda: -np.inf)
    random_values: defaultdict = defaultdict(list)
    for record in records:
        task = record["scenario"], record["task"]
        best[task] = max(best[task], *record["values"])
        for configuration, value in zip(record["configurations"], record["values"], strict=True):
            key = (*task, branch_of(configuration))
            best_in[key] = max(best_in[key], value)
        if record["sampler"] == "random":
            random_values[task] += record["values"]
    rows = []
    for record in records:
        task = record["scenario"], record["task"]
        scale = max(best[task] - np.median(random_values[task]), 1e-12)
        regret = (best[task] - np.maximum.accumulate(record["values"])) / scale
        tried = Counter(branch_of(c) for c in record["configurations"][FIRST:])
        wrong = [
            count / tried.total()
            for name, count in tried.items()
            if best[task] - best_in[(*task, name)] > 0.02 * scale
        ]
        row = {name: record[name] for name in ("sampler", "scenario", "task", "seed")}
        row |= {f"@{n}": regret[n - 1] for n in CHECKPOINTS}
        rows.append(row | {"wrong > half": max(wrong, default=0.0) > 0.5})
    frame = pd.DataFrame(rows)
    figures = [f"@{n}" for n in CHECKPOINTS]
    ranks = frame.groupby(["scenario", "task", "seed"])[figures].rank()
    frame[[f"rank {figure}" for figure in figures]] = ranks
    print(frame.drop(columns=["scenario", "task", "seed"]).groupby("sampler").mean().round(3).T)


if __name__ == "__main__":
    main(sys.argv[1])
