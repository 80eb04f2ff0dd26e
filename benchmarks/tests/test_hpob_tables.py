"""Tables of HPO-B."""

import json

import numpy as np
import pytest

from dre_bench import tables as module
from dre_bench.runs import Sources
from dre_bench.tables import N_INITIAL, HpobTables, expanded, tables_of
from dre_plugins.transfer.metadata import MetadataError

N_ROWS = 20
WIDTHS = {"4796": 2, "5971": 3}
DATASETS = {"train": ["1", "2", "3"], "validation": ["4"], "test": ["9", "31"]}
SEEDS = {f"test{n}": [n, 19, 18, 17, 16] for n in (0, 10, 1, 3, 2, 5, 4, 6, 7, 9, 8)}


def hpob_table(space, dataset):
    rng = np.random.default_rng([int(space), int(dataset)])
    return rng.random((N_ROWS, WIDTHS[space])), rng.random((N_ROWS, 1))


@pytest.fixture
def hpob_sources(tmp_path):
    """The four files of HPO-B; the second search space has no validation data set."""
    for split, datasets in DATASETS.items():
        tree = {}
        for space in list(WIDTHS)[: 1 if split == "validation" else 2]:
            tables = {name: hpob_table(space, name) for name in datasets}
            tree[space] = {k: {"X": X.tolist(), "y": y.tolist()} for k, (X, y) in tables.items()}
        (tmp_path / f"meta-{split}-dataset.json").write_text(json.dumps(tree))
    starts = {space: {name: SEEDS for name in DATASETS["test"]} for space in WIDTHS}
    (tmp_path / "bo-initializations.json").write_text(json.dumps(starts))
    return Sources(hpob=tmp_path)


def test_tables_of_hpob_are_those_of_its_files(hpob_sources):
    tables = tables_of(hpob_sources, "hpob:4796")
    assert {split: tables.tasks(split) for split in DATASETS} == DATASETS
    table = tables.table("31", 0)
    X, y = hpob_table("4796", "31")
    np.testing.assert_allclose(table.features, X, atol=1e-6)
    np.testing.assert_array_equal(table.values, y[:, 0])
    assert tables.metadata("train").n_evaluations == 3 * N_ROWS
    assert expanded(hpob_sources, ["hpob", "branin"]) == ["hpob:4796", "hpob:5971", "branin"]


def test_test_data_sets_begin_with_the_rows_that_hpob_gives(hpob_sources):
    tables = HpobTables(hpob_sources.hpob, "4796")
    assert [tables.table("9", seed).start[0] for seed in range(11)] == [*range(11)]
    with pytest.raises(ValueError, match="'9' has initial rows for 11 seeds, not for seed 11"):
        tables.table("9", 11)


def test_other_data_sets_begin_with_rows_that_are_drawn(hpob_sources):
    tables = HpobTables(hpob_sources.hpob, "4796")
    starts = {
        (task, seed): tuple(tables.table(task, seed).start) for task in "1234" for seed in (0, 99)
    }
    assert all(len({*rows}) == N_INITIAL and max(rows) < N_ROWS for rows in starts.values())
    assert len({*starts.values()}) == len(starts)  # neither tasks nor seeds share their luck
    again = HpobTables(hpob_sources.hpob, "4796")
    assert tuple(again.table("4", 99).start) == starts["4", 99]


def test_a_search_space_without_validation_has_no_tasks_there(hpob_sources):
    tables = HpobTables(hpob_sources.hpob, "5971")
    assert tables.tasks("validation") == []
    assert len(tables.metadata("validation")) == 0
    assert len(tables.metadata("train")) == 3


def test_each_file_of_hpob_is_parsed_once_and_only_when_asked_for(hpob_sources, monkeypatch):
    parsed, load = [], module.load_hpob
    monkeypatch.setattr(
        module, "load_hpob", lambda path, split: parsed.append(split) or load(path, split=split)
    )
    expanded(hpob_sources, ["hpob"])
    for space in WIDTHS:
        HpobTables(hpob_sources.hpob, space).table("9", 0)
    assert parsed == ["test"]
    for space in WIDTHS:
        HpobTables(hpob_sources.hpob, space).metadata("train")
    assert parsed == ["test", "train"]


def test_what_hpob_lacks_is_named(hpob_sources, tmp_path):
    for folder in (None, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=r"meta-test-dataset\.json with --hpob"):
            tables_of(Sources(hpob=folder), "hpob:4796")
        with pytest.raises(ValueError, match=r"meta-test-dataset\.json with --hpob"):
            expanded(Sources(hpob=folder), ["hpob"])
    with pytest.raises(ValueError, match="no search space '1'; it has 4796, 5971"):
        HpobTables(hpob_sources.hpob, "1")
    (tmp_path / "meta-train-dataset.json").write_text("{}")
    tables = HpobTables(hpob_sources.hpob, "4796")
    with pytest.raises(ValueError, match="train file of HPO-B has no search space '4796'"):
        tables.metadata("train")
    (tmp_path / "bo-initializations.json").unlink()
    with pytest.raises(MetadataError, match=r"bo-initializations\.json"):
        HpobTables(hpob_sources.hpob, "4796")
