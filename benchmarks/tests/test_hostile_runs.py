"""Files of runs and tables from strangers: a clear error or a correct load."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hpob_json import write_hpob
from readers import Reader, broken, metadata

from dre_bench.hpob_files import load_hpob, load_hpob_initialisations
from dre_bench.runs import read_records


def make_runs(path: Path) -> None:
    run = {"sampler": "tpe", "scenario": "mixed", "task": 0, "seed": 1, "values": [0.5, 0.25]}
    path.write_text("\n".join(json.dumps({**run, "seed": seed}) for seed in range(3)))


def read_runs(path: Path) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a damaged line is left out
        records = read_records(path)
    assert all(isinstance(record, dict) for record in records)
    return records


def make_initialisations(path: Path) -> None:
    path.write_text(json.dumps({"4796": {"3": {"test0": [0, 1, 2]}}}))


READERS = {
    "HPO-B": Reader(lambda path: write_hpob({"4796": metadata()}, path), load_hpob, "a.json"),
    "HPO-B starts": Reader(make_initialisations, load_hpob_initialisations, "a.json"),
    "runs": Reader(make_runs, read_runs, "a.jsonl"),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    reader = READERS[kind]
    path = tmp_path / reader.name
    reader.make(path)
    whole = path.read_bytes()
    reader.read(path)
    for seed in range(200):
        path.write_bytes(broken(whole, random.Random(seed)))
        try:
            reader.read(path)
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize("name", ["<b>", "\x1b[2J\x1b]0;title\x07", "\u202egnp.exe"])
def test_a_name_does_not_command_the_terminal(
    bench: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"problem": name, "scenario": name, "task": name, "sampler": name}))
    output = bench("report", path, code=1).output
    assert not set(output) & set("\x1b\x07\u202e")
