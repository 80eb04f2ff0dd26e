"""Write the files that `run` resumes from, out of an exported file.

    python -m dre_bench.learner_evaluations.restore --exported FILE --raw FOLDER

A run elsewhere thereby goes on after what is committed. The exported values are means over folds,
so a restored record has one fold; pairs that have a file in the folder are left as they are.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations import plan, records
from dre_bench.learner_evaluations.parameters import from_row
from dre_bench.learner_evaluations.tables import STATUSES, Table, read_tables
from dre_bench.learner_evaluations.worker import OK


def restore(exported: Path, raw: Path) -> int:
    """Write the records of all pairs that the folder does not have; return how many."""
    names, tables = read_tables(exported)
    written = 0
    for (learner, _), table in tables.items():
        for dataset in np.unique(table.dataset):
            path = records.path_of(raw, learner, names[dataset])
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = np.flatnonzero(table.dataset == dataset)
            for row in rows[np.argsort(table.position[rows])]:
                records.append(path, record_of(table, int(row)))
                written += 1
    return written


def record_of(table: Table, row: int) -> dict[str, Any]:
    """Make the record of a row of a table."""
    kind, number = plan.POSITIONS[table.position[row]]
    record: dict[str, Any] = {
        "kind": kind,
        "number": number,
        "configuration": from_row(table.space, table.configurations[row].tolist()),
        "status": STATUSES[table.status[row]],
    }
    if record["status"] == OK:
        record["metrics"] = {
            name: [[None if math.isnan(value) else value for value in values[row].tolist()]]
            for name, values in table.metrics.items()
        }
    names = ("fit_seconds", "predict_seconds")
    for name, value in zip(names, table.seconds[row].tolist(), strict=True):
        if not math.isnan(value):
            record[name] = value
    return record


def main() -> None:
    """Read the command line and restore."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exported", type=Path, required=True, help="the committed file")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the evaluations")
    chosen = parser.parse_args()
    print(f"{restore(chosen.exported, chosen.raw)} evaluations restored")


if __name__ == "__main__":
    main()
