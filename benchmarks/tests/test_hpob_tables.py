"""Tables and surrogates of HPO-B."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from dre_bench.hpob_scenario import HpobScenario
from dre_bench.runs import Sources
from dre_bench.scenarios import scenario_of
from dre_bench.table_sources import hpob
from dre_bench.tables import N_INITIAL, expanded, tables_of
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
    assert hpob.spaces(hpob_sources) == ["4796", "5971"]
    assert expanded(hpob_sources, ["hpob", "branin"]) == ["hpob:4796", "hpob:5971", "branin"]


def test_test_data_sets_begin_with_the_rows_that_hpob_gives(hpob_sources):
    tables = hpob.read(hpob_sources, "4796")
    assert [tables.table("9", seed).start[0] for seed in range(11)] == [*range(11)]
    with pytest.raises(ValueError, match="'9' has initial rows for 11 seeds, not for seed 11"):
        tables.table("9", 11)


def test_other_data_sets_begin_with_rows_that_are_drawn(hpob_sources):
    tables = hpob.read(hpob_sources, "4796")
    starts = {
        (task, seed): tuple(tables.table(task, seed).start) for task in "1234" for seed in (0, 99)
    }
    assert all(len({*rows}) == N_INITIAL and max(rows) < N_ROWS for rows in starts.values())
    assert len({*starts.values()}) == len(starts)  # neither tasks nor seeds share their luck
    again = hpob.read(hpob_sources, "4796")
    assert tuple(again.table("4", 99).start) == starts["4", 99]


def test_a_search_space_without_validation_has_no_tasks_there(hpob_sources):
    tables = hpob.read(hpob_sources, "5971")
    assert tables.tasks("validation") == []
    assert len(tables.metadata("validation")) == 0
    assert len(tables.metadata("train")) == 3


def test_each_file_of_hpob_is_parsed_once_and_only_when_asked_for(hpob_sources, monkeypatch):
    parsed, load = [], hpob.load_hpob
    monkeypatch.setattr(
        hpob, "load_hpob", lambda path, split: parsed.append(split) or load(path, split=split)
    )
    hpob.spaces(hpob_sources)
    for space in WIDTHS:
        hpob.read(hpob_sources, space).table("9", 0)
    assert parsed == ["test"]
    for space in WIDTHS:
        hpob.read(hpob_sources, space).metadata("train")
    assert parsed == ["test", "train"]


def test_what_hpob_lacks_is_named(hpob_sources, tmp_path):
    for folder in (None, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=r"meta-test-dataset\.json with --hpob"):
            hpob.read(Sources(hpob=folder), "4796")
        with pytest.raises(ValueError, match=r"meta-test-dataset\.json with --hpob"):
            hpob.spaces(Sources(hpob=folder))
    with pytest.raises(ValueError, match="no search space '1'; it has 4796, 5971"):
        hpob.read(hpob_sources, "1")
    (tmp_path / "meta-train-dataset.json").write_text("{}")
    tables = hpob.read(hpob_sources, "4796")
    with pytest.raises(ValueError, match="train file of HPO-B has no search space '4796'"):
        tables.metadata("train")
    (tmp_path / "bo-initializations.json").unlink()
    with pytest.raises(MetadataError, match=r"bo-initializations\.json"):
        hpob.read(hpob_sources, "4796")


# ---- surrogates of HPO-B


@pytest.fixture(scope="module")
def surrogates(tmp_path_factory):
    """Surrogates of two data sets, beside the folder of the tables, as HPO-B ships them."""
    xgboost = pytest.importorskip("xgboost")
    root = tmp_path_factory.mktemp("hpob")
    (root / "hpob-data").mkdir()
    (root / "saved-surrogates").mkdir()
    statistics = {}
    for dataset in ("31", "9"):
        X, y = hpob_table("5971", dataset)
        model = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), num_boost_round=30)
        name = f"surrogate-5971-{dataset}"
        model.save_model(root / "saved-surrogates" / f"{name}.json")
        statistics[name] = {"y_min": float(y.min()), "y_max": float(y.max())}
    (root / "saved-surrogates" / "summary-stats.json").write_text(json.dumps(statistics))
    return root


def test_a_surrogate_scenario_searches_the_unit_cube(surrogates):
    scenario = scenario_of(Sources(hpob=surrogates / "hpob-data"), "hpob-surrogate:5971")
    assert isinstance(scenario, HpobScenario)
    assert scenario.name == "hpob-surrogate:5971"
    assert scenario.tasks == [9, 31]
    assert scenario.splits == {"train": [], "validation": [], "test": [9, 31]}
    assert [
        (parameter.name, parameter.kind, parameter.low, parameter.high)
        for parameter in scenario.parameters
    ] == [(f"x{column}", "float", 0.0, 1.0) for column in range(3)]


def test_a_surrogate_scenario_gives_the_scaled_values_of_the_table(surrogates):
    scenario = scenario_of(Sources(hpob=surrogates), "hpob-surrogate:5971")
    X, y = hpob_table("5971", "31")
    rows = [{f"x{column}": float(cell) for column, cell in enumerate(row)} for row in X]
    values = scenario.evaluate_many(31, rows)[scenario.metric]
    scaled = (y[:, 0] - y.min()) / (y.max() - y.min())
    np.testing.assert_allclose(values, scaled, atol=0.1)  # it has learnt the table by heart
    assert values.min() >= 0.0 and values.max() <= 1.0
    assert values.argmax() == scaled.argmax()  # larger is better
    assert scenario.value(31, rows[3]) == pytest.approx(values[3])
    with pytest.raises(ValueError, match="data set '99'"):
        scenario.value(99, rows[0])


def test_the_folder_of_surrogates_may_be_inside_or_named_itself(surrogates):
    for folder in (surrogates, surrogates / "saved-surrogates", surrogates / "hpob-data"):
        sources = Sources(hpob=folder)
        assert scenario_of(sources, "hpob-surrogate:5971").tasks == [9, 31]
        assert scenario_of(sources, "hpob-surrogate:5971") is scenario_of(
            replace(sources), "hpob-surrogate:5971"
        )


def test_missing_surrogates_are_named(surrogates, tmp_path, monkeypatch):
    for folder in (None, tmp_path):
        with pytest.raises(ValueError, match=r"saved-surrogates/summary-stats\.json with --hpob"):
            scenario_of(Sources(hpob=folder), "hpob-surrogate:5971")
    with pytest.raises(ValueError, match="no surrogate of '1'; it has 5971"):
        scenario_of(Sources(hpob=surrogates), "hpob-surrogate:1")
    (tmp_path / "summary-stats.json").write_text('{"surrogate-1-2": {"y_min": 0, "y_max": 1}}')
    (tmp_path / "surrogate-1-2.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "xgboost", None)  # as if it were not installed
    with pytest.raises(ValueError, match="pip install xgboost"):
        scenario_of(Sources(hpob=tmp_path), "hpob-surrogate:1")
