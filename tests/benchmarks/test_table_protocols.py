"""The protocol of HPO-B on files of its exact shape, made from the YAHPO extract."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from dre_plugins.adapters.table import DRETable
from dre_plugins.baselines.deep_ensemble import DeepEnsemble
from dre_plugins.baselines.random_search import Random
from dre_plugins.benchmarks import hpob, table
from dre_plugins.benchmarks.tasks import load_extract
from dre_plugins.engine import PRESETS
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.sources.hpob import (
    load_hpob,
    load_hpob_initialisations,
    to_hpob_json,
)

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


def published_incumbents(folder, method, start, n_trials):
    """What the benchmark's own handler reports, as its documentation and its code describe it.

    Values are scaled to [0, 1] by the whole table; the method is shown columns, values as a
    column, and the rows that are left, and answers with a position among these; what counts is
    the best value after each of its choices (the initial ones are not reported).
    """
    tables = json.loads((folder / "meta-test-dataset.json").read_text())["4796"]
    starts = json.loads((folder / "bo-initializations.json").read_text())["4796"]
    curves = {}
    for dataset, content in tables.items():
        X, y = np.array(content["X"]), np.array(content["y"])
        y = (y - y.min()) / (y.max() - y.min())
        assert y.shape == (len(X), 1)
        seen = starts[dataset][start][:5]
        left = [row for row in range(len(X)) if row not in seen]
        curves[dataset] = []
        for _ in range(n_trials):
            seen = [*seen, left.pop(method.observe_and_suggest(X[seen], y[seen], X[left]))]
            curves[dataset].append(float(y[seen].max()))
    return curves


def our_incumbents(folder, method, start, n_trials):
    curves = {}
    for task in load_hpob(folder, split="test")["4796"]:
        X, y = task.space.features(task.units).astype(np.float64), task.values
        rows = load_hpob_initialisations(folder)["4796"][task.name][start]
        rows = table.visit(method, X, y, rows, n_trials)
        best = np.maximum.accumulate(y[rows])[5:]
        curves[task.name] = (best - y.min()) / (y.max() - y.min())
    return curves


@pytest.fixture(scope="module")
def prior(folder):
    path = folder / "4796-40.safetensors"
    hpob.train(folder, 40, "4796", path)
    return path


@pytest.mark.parametrize(
    ("name", "start"),
    [("random", "test0"), ("random", "test1"), ("none", "test1"), ("prior", "test0")],
)
def test_our_driver_agrees_with_the_published_loop(folder, prior, name, start):
    seed = int(start[-1])

    def method():
        if name == "random":
            return Random(seed=seed)
        return DRETable(seed=seed, prior=prior if name == "prior" else None)

    published = published_incumbents(folder, method(), start, 4)
    ours = our_incumbents(folder, method(), start, 4)
    assert len(published) == 2
    for dataset, curve in published.items():
        assert len(curve) == 4
        np.testing.assert_allclose(ours[dataset], curve, rtol=0, atol=1e-9)
    if name == "none":  # so does the command for the whole benchmark
        # With a prior, contrasts are drawn by the order of the rows, which is another one there.
        dataset, curve = next(iter(published.items()))
        record = hpob.run(folder, folder, ("4796", dataset, start, name, 4, 40))
        np.testing.assert_allclose(1.0 - np.array(record["regret"][1:]), curve, atol=1e-6)


def test_a_table_is_visited_to_its_last_row_and_no_further(folder):
    (task, _) = load_hpob(folder, split="test")["4796"]
    X, y = task.space.features(task.units), task.values
    rows = table.visit(Random(seed=0), X, y, [7, 3], 100)
    assert rows[:2] == [7, 3]
    assert sorted(rows) == list(range(60))
    assert table.visit(Random(seed=0), X, y, [7, 3], 4) == rows[:6]


# ---- the table protocol of the paper


@pytest.fixture
def hill(monkeypatch):
    """A smooth table in place of those of the surrogates."""
    units = np.random.default_rng(0).random((table.N_ROWS, 2))
    values = -((units - 0.3) ** 2).sum(1)
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    monkeypatch.setattr(table, "_table", lambda *_: (space, units, values))
    failed = np.zeros(50, dtype=bool)
    past = [Task(f"{n}", space, units[:50], values[:50] + n, failed) for n in range(3)]
    monkeypatch.setattr(table, "_past", lambda _: MetaDataset.of(past))


class LastRow:
    """A method of somebody else."""

    def __init__(self, seed, skip=0):
        self.skip = skip

    def observe_and_suggest(self, X_observed, y_observed, X_pending):
        assert y_observed.shape == (len(X_observed), 1)
        return len(X_pending) - 1 - self.skip


def test_methods_of_others_are_run_by_import_path(hill, tmp_path):
    path = f"{__name__}.LastRow"
    record = table.perform(tmp_path, (f"{path}:skip=3", "rbv2_rpart", 1, 0, 4))
    assert record["method"] == f"{path}:skip=3"
    assert len(record["regret"]) == table.N_INITIAL + 4
    space, units, _ = table._table()
    choose = table.chooser(path, tmp_path, 0)
    assert choose(space, units, [999, 0, 1], np.zeros(3), 0) == 998
    with pytest.raises(ValueError, match=r"methods.*'deep-ensemble'.*'gpp'"):
        table.chooser("gpp", tmp_path, 0)


def test_baselines_are_named_with_their_arguments(hill, tmp_path):
    rows = [*range(5)]
    units = table._table()[1]
    method = table.chooser("deep-ensemble:n_members=2,n_steps=5", tmp_path, 3)
    chosen = method(*table._table()[:2], rows, np.arange(5.0), 0)
    direct = DeepEnsemble(n_members=2, n_steps=5, seed=3)
    features = units.astype(np.float32).astype(np.float64)
    pending = direct.observe_and_suggest(features[:5], np.arange(5.0), features[5:])
    assert chosen == pending + 5


def test_what_learns_from_past_tasks_does_so_once(hill, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.13 deprecates what linear_operator is made of
        pytest.importorskip("botorch")
    first, second = (table.chooser("taf:n_rows=10", tmp_path, seed).args[0] for seed in (0, 1))
    assert (first.seed, second.seed) == (0, 1)
    assert vars(first)["_past"] is vars(second)["_past"]
    record = table.perform(tmp_path, ("taf:n_rows=10", "rbv2_rpart", 1, 0, 3))
    assert record["regret"][-1] < 0.02


def test_the_table_protocol_starts_alike_for_all_methods(hill):
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
