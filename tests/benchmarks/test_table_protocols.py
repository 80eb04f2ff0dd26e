"""The protocol of HPO-B on files of its exact shape, made from the YAHPO extract."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dre_plugins.benchmarks import hpob, table
from dre_plugins.benchmarks.tasks import load_extract
from dre_plugins.engine import PRESETS
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.sources.hpob import to_hpob_json

SPLITS = {"train": slice(0, 5), "validation": slice(5, 6), "test": slice(6, 8)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the four files of the benchmark: one search space, 8 data sets."""
    folder = tmp_path_factory.mktemp("hpob")
    samples = [s for s in load_extract("data/yahpo_extract.npz") if s.scenario == "rbv2_rpart"]
    tasks = []
    for sample in samples:
        columns = [i for i, name in enumerate(sample.parameters) if name not in sample.choices]
        raw = np.log1p(sample.values[:60, columns].astype(np.float64))
        units = (raw - raw.min(0)) / (raw.max(0) - raw.min(0))
        space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(len(columns))})
        values = sample.outputs["acc"][:60].astype(np.float64)
        tasks.append(Task(str(sample.task), space, units, values, np.zeros(60, dtype=bool)))
    for split, part in SPLITS.items():
        to_hpob_json({"4796": MetaDataset.of(tasks[part])}, folder / f"meta-{split}-dataset.json")
    starts = {"test0": [0, 1, 2, 3, 4], "test1": [5, 6, 7, 8, 9]}
    starts = {"4796": {task.name: starts for task in tasks[SPLITS["test"]]}}
    (folder / "bo-initializations.json").write_text(json.dumps(starts))
    return folder


def test_all_runs_of_a_space_by_one_command(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(hpob, "ONE_THREAD", {})  # the environment of the tests is not ours
    out = tmp_path / "hpob.jsonl"
    arguments = f"--data {folder} --out {out} --steps 4 --training-steps 40".split()
    hpob.main(arguments)
    first = capsys.readouterr().out
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 2 * 2 * 2  # data sets, starts, methods
    assert {len(record["regret"]) for record in records} == {5}
    assert all(np.diff(record["regret"]).max() <= 0 for record in records)
    assert "space 4796: 300 evaluations" in first
    assert [line.split()[:3] for line in first.splitlines()[-4:]] == [
        ["prior", "all", "4"],
        ["prior", "4796", "4"],
        ["none", "all", "4"],
        ["none", "4796", "4"],
    ]
    hpob.main(arguments)  # nothing is left to run
    assert [json.loads(line) for line in out.read_text().splitlines()] == records
    assert capsys.readouterr().out.splitlines()[-4:] == first.splitlines()[-4:]


def test_the_table_protocol_starts_alike_for_all_methods(monkeypatch):
    units = np.random.default_rng(0).random((table.N_ROWS, 2))
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    monkeypatch.setattr(table, "_table", lambda *_: (space, units, -((units - 0.3) ** 2).sum(1)))
    quick = PRESETS["default"]
    quick = replace(quick, from_random=replace(quick.from_random, n_steps=20))
    curves = [
        table.regret_curve(None, 1, 0, 6, choose)
        for choose in (None, table.dre_chooser({"preset": quick}, None))
    ]
    assert curves[0][: table.N_INITIAL] == curves[1][: table.N_INITIAL]
    assert all(len(curve) == table.N_INITIAL + 6 for curve in curves)
    assert curves[1][-1] < curves[1][0]
    records = [{"method": "random", "regret": curves[0], "seconds": 0.1}]
    assert "random" in table.report(records, ["random", "gp"])
