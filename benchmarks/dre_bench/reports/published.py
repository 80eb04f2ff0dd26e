"""Published result curves of HPO-B beside our own runs of it.

A method's file is JSON, as the benchmark publishes it: space -> data set -> "test0", "test1", … ->
the incumbent after the 5 initial configurations and after each of the steps that follow (101
numbers for 100 steps). Incumbents are as the benchmark's handler returns them: scaled to the
range of the data set's table, larger is better, so that regret is 1 - incumbent.

    dre-bench report hpob.jsonl --published FOLDER --html report.html

FOLDER holds one file for each method; the name of the file is the name of the method. Our runs are
those of tables named "hpob:SPACE"; seed 0 is "test0".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dre_bench.reports.results import Protocol, Results, key_of, paired, table_regret
from dre_bench.reports.statistics import Floats
from dre_bench.runs import Record
from dre_plugins.engine.files import regular

PROTOCOL = Protocol(
    regret=(
        "The distance of the best configuration so far to the best one of the data set, as a "
        "share of the range of its table (HPO-B): 0 is the best of the table, 1 its worst. "
        "Steps are counted after the initial configurations."
    ),
    step="steps",
    first_step=0,
    n_startup=1,
    checkpoints=(5, 10, 25, 50, 75, 100),
)
PREFIX = "hpob:"
"""Of the names of its tables in our records; a search space follows."""
SHAPE = 'expected {space: {data set: {"test0": [incumbents], …}}}'
DECIMALS = 6
"""Of regrets: more in one of two sources would turn ties into differences."""


def load_published(path: Path) -> list[Record]:
    """Read the curves of one method, or of a folder of them, as records of runs on tables.

    Args:
        path: A JSON file, or a folder whose JSON files are one method each.

    Raises:
        ValueError: If a file is of another shape, or none is there.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path}: no JSON files; expected one for each method.")
    return [record for file in files for record in _records(file)]


def combined(ours: Sequence[Record], curves: Sequence[Record]) -> Results:
    """Pair our finished runs on tables of HPO-B with published ones, by steps after the initial.

    Args:
        ours: Of different lengths only the longest count.
        curves: From `load_published`.

    Raises:
        ValueError: If two methods have the same name, or the methods have no (space, data set,
            seed) in common.
    """
    longest = max((record["trials"] for record in ours), default=0)
    records = [
        {**record, "scenario": record["scenario"].removeprefix(PREFIX), "ask_seconds": []}
        for record in [*(run for run in ours if run["trials"] == longest), *curves]
    ]
    runs = Counter((record["sampler"], *key_of(record)) for record in records)
    doubled = [name for (name, *_), n in runs.items() if n > 1]
    if doubled:
        raise ValueError(f"two methods are named {doubled[0]!r}; rename one file.")
    return paired(records, _after_initial, PROTOCOL)


def _after_initial(record: Record) -> Floats:
    return np.round(table_regret(record)[record["n_initial"] - 1 :], DECIMALS)


def _records(file: Path) -> list[Record]:
    """Read one method's curves.

    Raises:
        ValueError: With the place in the file, if something there is of another shape.
    """
    try:
        content = json.loads(regular(file).read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: no JSON, {error}.") from error
    found = [_record(file, path, curve) for path, curve in _leaves(file, (), content)]
    lengths = {record["trials"] for record in found}
    if len(lengths) != 1:
        raise ValueError(
            f"{file}: curves of different lengths, {sorted(lengths)}; "
            "pad one that ended early with its last incumbent."
        )
    return found


def _leaves(
    file: Path, path: tuple[str, ...], content: Any
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the names of space, data set and start, and what the file has there."""
    if len(path) == 3:
        yield path, content
        return
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{_place(file, path)} is {content!r:.60}; {SHAPE}.")
    for name, inner in content.items():
        yield from _leaves(file, (*path, name), inner)


def _place(file: Path, path: tuple[str, ...]) -> str:
    return f"{file}: {'/'.join(path)}".removesuffix(": ")


def _record(file: Path, path: tuple[str, ...], incumbents: Any) -> Record:
    where, (space, dataset, start) = _place(file, path), path
    seed = re.fullmatch(r"test(\d+)", start)
    if not seed:
        raise ValueError(f"{where}: expected test0, test1, … as the name of a seed.")
    if not isinstance(incumbents, list) or not incumbents:
        raise ValueError(f"{where} is {incumbents!r:.60}; expected a list of incumbents.")
    values = pd.to_numeric(pd.Series(incumbents, dtype=object), errors="coerce")
    if not values.between(-1e-6, 1 + 1e-6).all():
        raise ValueError(
            f"{where}: expected incumbents scaled to [0, 1] by the range of the data set, as the "
            f"handler of HPO-B returns them, got {incumbents!r:.60}."
        )
    if (values.diff() < -1e-9).any():
        raise ValueError(f"{where} falls; expected the best value so far, not that of each step.")
    return {
        "sampler": file.stem,
        "problem": "table",
        "scenario": f"{PREFIX}{space}",
        "task": dataset,
        "seed": int(seed[1]),
        "trials": len(incumbents),
        "n_initial": 1,  # all of them are one number
        "values": np.clip(incumbents, 0.0, 1.0),
        "reference": {"best": 1.0, "worst": 0.0},
    }
