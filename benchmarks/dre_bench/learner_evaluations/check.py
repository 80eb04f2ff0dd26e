"""Print whether exported evaluations look right: medians over data sets for each learner.

python -m dre_bench.learner_evaluations.check FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dre_bench.learner_evaluations.plan import DEFAULT, POSITIONS, SEARCH, SOBOL
from dre_bench.learner_evaluations.tables import Table, read_tables

LOSSES = {"classification": "log_loss", "regression": "rmse"}


def best_of(table: Table, dataset: int, kind: str, metric: str) -> float:
    """Give the least loss that a kind of position found on a data set; NaN if it has none."""
    kinds = np.array([POSITIONS[position][0] == kind for position in table.position], dtype=bool)
    values = table.metrics[metric][(table.dataset == dataset) & kinds, -1]
    values = values[np.isfinite(values)]
    return float(values.min()) if len(values) else float("nan")


def main() -> None:
    """Print a line for each learner and task."""
    _, tables = read_tables(Path(sys.argv[1]))
    header = ("sets", "rows", "failed", "default", "Sobol", "search", "seconds")
    print(f"{'learner':38s}" + "".join(f"{column:>9s}" for column in header))
    for (learner, task), table in tables.items():
        found = np.unique(table.dataset)
        medians = [
            np.nanmedian([best_of(table, int(index), kind, LOSSES[task]) for index in found])
            if any(POSITIONS[position][0] == kind for position in table.position)
            else float("nan")
            for kind in (DEFAULT, SOBOL, SEARCH)
        ]
        failed = float((table.status != 0).mean())
        seconds = float(np.nansum(table.seconds, axis=1).mean())
        print(
            f"{learner + ' ' + LOSSES[task]:38s}{len(found):9d}{len(table.position):9d}"
            f"{failed:9.3f}" + "".join(f"{value:9.4f}" for value in medians) + f"{seconds:9.2f}"
        )


if __name__ == "__main__":
    main()
