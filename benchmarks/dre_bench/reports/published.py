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
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dre_bench.reports.results import Key, Protocol, Results, paired, table_regret
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
Curves: TypeAlias = Mapping[str, Mapping[Key, Floats]]
"""Regret by method and (space, data set, seed)."""
PREFIX = "hpob:"
"""Of the names of its tables in our records; a search space follows."""
SHAPE = 'expected {space: {data set: {"test0": [incumbents], …}}}'
DECIMALS = 6
"""Of regrets: more in one of two sources would turn ties into differences."""


def load_published(path: Path) -> dict[str, dict[Key, Floats]]:
    """Read the curves of one method, or of a folder of them.

    Args:
        path: A JSON file, or a folder whose JSON files are one method each.

    Returns:
        Regret after 0, 1, … steps by method and (space, data set, seed).

    Raises:
        ValueError: If a file is of another shape, or none is there.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path}: no JSON files; expected one for each method.")
    return {file.stem: _curves(file) for file in files}


def chosen(curves: Curves, methods: Collection[str], scenario: str | None) -> Curves:
    """Return some of the curves.

    Args:
        curves: From `load_published`.
        methods: Only these; all if there are none.
        scenario: The name of a space in our records: only this one.
    """
    return {
        name: {k: curve for k, curve in runs.items() if scenario in (None, PREFIX + k[0])}
        for name, runs in curves.items()
        if not methods or name in methods
    }


def own_curves(records: Sequence[Record]) -> dict[str, dict[Key, Floats]]:
    """Arrange our own finished runs as `load_published` does.

    Args:
        records: Records of tables of HPO-B; of different lengths only the longest count.
    """
    curves = defaultdict[str, dict[Key, Floats]](dict)
    longest = max((record["trials"] for record in records), default=0)
    for record in records:
        if record["trials"] < longest:
            continue
        key = record["scenario"].removeprefix(PREFIX), record["task"], record["seed"]
        after_initial = table_regret(record)[record["n_initial"] - 1 :]
        curves[record["sampler"]][key] = np.round(after_initial, DECIMALS)
    return curves


def combined(*sources: Curves) -> Results:
    """Pair the methods of several sources.

    Args:
        sources: Curves by method and key, from `load_published` and `own_curves`.

    Raises:
        ValueError: If two sources have a method of the same name, or the methods have no
            (space, data set, seed) in common.
    """
    names = [name for source in sources for name in source]
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise ValueError(f"two methods are named {doubled[0]!r}; rename one file.")
    curves = {
        (name, *key): curve
        for source in sources
        for name, runs in source.items()
        for key, curve in runs.items()
    }
    return paired(curves, {}, PROTOCOL)


def _curves(file: Path) -> dict[Key, Floats]:
    try:
        content = json.loads(regular(file).read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: no JSON, {error}.") from error
    found: dict[Key, Floats] = {}
    for space, datasets in _items(file, content, "the file"):
        for dataset, starts in _items(file, datasets, f"space {space}"):
            for start, incumbents in _items(file, starts, f"data set {space}/{dataset}"):
                where = f"{file}: {space}/{dataset}/{start}"
                try:
                    found[space, dataset, _seed(start)] = _regret(incumbents)
                except ValueError as error:
                    raise ValueError(f"{where}: {error}") from error
    lengths = {len(curve) for curve in found.values()}
    if len(lengths) != 1:
        raise ValueError(
            f"{file}: curves of different lengths, {sorted(lengths)}; "
            "pad one that ended early with its last incumbent."
        )
    return found


def _items(file: Path, content: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{file}: {name} is {_brief(content)}; {SHAPE}.")
    yield from content.items()


def _seed(start: str) -> int:
    match = re.fullmatch(r"test(\d+)", start)
    if not match:
        raise ValueError(f"the seed is named {start!r}; expected test0, test1, ….")
    return int(match[1])


def _regret(incumbents: Any) -> Floats:
    try:
        values = np.array(incumbents, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1 or not len(values) or isinstance(incumbents, (str, dict)):
        raise ValueError(f"got {_brief(incumbents)}; expected a list of incumbents.")
    if not np.all(np.isfinite(values)) or values.min() < -1e-6 or values.max() > 1 + 1e-6:
        raise ValueError(
            f"incumbents from {values.min():g} to {values.max():g}; expected them scaled to "
            "[0, 1] by the range of the data set, as the handler of HPO-B returns them."
        )
    falls = np.flatnonzero(np.diff(values) < -1e-9)
    if len(falls):
        raise ValueError(
            f"falls at step {falls[0] + 1}; expected the best value so far, not that of each step."
        )
    return np.round(1.0 - np.clip(values, 0.0, 1.0), DECIMALS)


def _brief(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 60 else f"{text[:60]}…"
