"""The exported file: evaluations of each learner and task as arrays of float32.

Keys of the archive: `provenance` (JSON), `datasets` (names), `rows/NAME` and `folds/NAME` (which
rows of a data set were used, and the fold in which each was tested), and for each learner and task
`LEARNER/TASK/FIELD` with the fields of `Table` and `space` (JSON).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.evaluation import mean_metric
from dre_bench.learner_evaluations.metrics import METRICS
from dre_bench.learner_evaluations.parameters import Space, from_json, to_json, to_row
from dre_bench.learner_evaluations.rungs import SHARES
from dre_bench.learner_evaluations.spaces import space_of
from dre_bench.learner_evaluations.worker import CRASHED, FAILED, OK, TIMED_OUT

STATUSES = (OK, FAILED, TIMED_OUT, CRASHED)


@dataclass(frozen=True)
class Table:
    """All evaluations of a learner on the data sets of a task, `N` of them.

    Attributes:
        space: the learner's space, D parameters.
        configurations: raw values, indices of choices, NaN where inactive `[N, D]`.
        dataset: index into the names of data sets `[N]`.
        position: position in the plan of the data set, 0 for the library's default `[N]`.
        status: index into `STATUSES` `[N]`.
        metrics: means over folds `[N, RUNGS]`; NaN where an evaluation failed or has no such rung.
        seconds: processor time to fit and to predict, over all folds `[N, 2]`.
    """

    space: Space
    configurations: np.ndarray
    dataset: np.ndarray
    position: np.ndarray
    status: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: np.ndarray


def make_table(
    learner: str, task: str, histories: Mapping[int, Sequence[Mapping[str, Any]]]
) -> Table:
    """Make a table from the records of each data set, given by the index of its name."""
    space = space_of(learner, task)
    entries = [
        (dataset, position, record)
        for dataset, history in histories.items()
        for position, record in enumerate(history)
    ]
    records = [record for _, _, record in entries]
    nothing = np.full(len(SHARES), np.nan)
    metrics = {
        name: np.array(
            [
                mean_metric(record["metrics"], name) if record["status"] == OK else nothing
                for record in records
            ],
            dtype=np.float32,
        ).reshape(-1, len(SHARES))
        for name in METRICS[task]
    }
    return Table(
        space,
        np.array(
            [to_row(space, record["configuration"]) for record in records], dtype=np.float32
        ).reshape(-1, len(space)),
        np.array([dataset for dataset, _, _ in entries], dtype=np.uint8),
        np.array([position for _, position, _ in entries], dtype=np.uint8),
        np.array([STATUSES.index(record["status"]) for record in records], dtype=np.uint8),
        metrics,
        np.array(
            [
                [record.get("fit_seconds", np.nan), record.get("predict_seconds", np.nan)]
                for record in records
            ],
            dtype=np.float32,
        ).reshape(-1, 2),
    )


def to_arrays(table: Table) -> dict[str, np.ndarray]:
    """Convert a table to the arrays that are stored."""
    return {
        "space": np.array(json.dumps(to_json(table.space))),
        "configurations": table.configurations,
        "dataset": table.dataset,
        "position": table.position,
        "status": table.status,
        "seconds": table.seconds,
        **{f"metrics/{name}": values for name, values in table.metrics.items()},
    }


def read_tables(path: Path) -> tuple[list[str], dict[tuple[str, str], Table]]:
    """Read the names of the data sets, and the table of each (learner, task)."""
    with np.load(path) as data:
        names = [str(name) for name in data["datasets"]]
        tables = {}
        for key in data.files:
            if not key.endswith("/space"):
                continue
            learner, task, _ = key.split("/")
            group = f"{learner}/{task}"
            fields = ("configurations", "dataset", "position", "status")
            tables[learner, task] = Table(
                from_json(json.loads(str(data[key]))),
                *(data[f"{group}/{field}"] for field in fields),
                {name: data[f"{group}/metrics/{name}"] for name in METRICS[task]},
                data[f"{group}/seconds"],
            )
        return names, tables
