"""Tables of HPO-B, of files and of Syne Tune's blackbox repository."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dre_bench.hpob_scenario import HpobScenario
from dre_bench.runs import Sources
from dre_bench.scenarios import scenario_of
from dre_bench.synthetic import synthetic_scenario
from dre_bench.table_sources import blackboxes, files, hpob
from dre_bench.tables import N_INITIAL, expanded, tables_of
from dre_plugins.space import Categorical, Float, Integer, Ordinal
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


# ---- HPO-B


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
    assert [(one.name, one.kind, one.low, one.high) for one in scenario.parameters] == [
        (f"x{column}", "float", 0.0, 1.0) for column in range(3)
    ]


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


# ---- files


def save(path, X, y):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, X=X, y=y)


def test_columns_of_npz_files_are_scaled_by_all_files_together(tmp_path):
    y = np.array([1.0, np.nan, 3.0])
    X = {
        "a": [[0.2, 10.0, 7.0, 1.0], [0.3, 20.0, 7.0, 1.0], [0.2, 10.0, 7.0, 1.0]],
        "b": [[0.4, 30.0, 7.0, 1.0], [0.5, 50.0, 7.0, 1.0], [0.5, 50.0, 7.0, 1.0]],
    }
    for name, rows in X.items():
        save(tmp_path / f"{name}.npz", np.array(rows), y if name == "a" else y[:, None])
    (tmp_path / "README.md").write_text("Not a table.")
    tables = tables_of(Sources(), f"file:{tmp_path}")
    table, other = tables.table("a", 0), tables.table("b", 0)
    # Within [0, 1] as it was, scaled to the range 10 to 50, constant outside, constant inside.
    np.testing.assert_allclose(table.units[:2], [[0.2, 0.0, 0.0, 1.0], [0.3, 0.25, 0.0, 1.0]])
    np.testing.assert_allclose(other.units[:2], [[0.4, 0.5, 0.0, 1.0], [0.5, 1.0, 0.0, 1.0]])
    assert table.space.domains == {f"x{column}": Float(0.0, 1.0) for column in range(4)}
    np.testing.assert_array_equal(table.values, y)
    np.testing.assert_array_equal(other.values, y)
    assert tables.metadata("test").tasks[0].counts() == {"complete": 2, "pruned": 0, "failed": 1}
    assert sorted(table.start) == [0, 1, 2]


def test_files_side_by_side_are_split_by_position_like_scenarios(tmp_path):
    names = [f"task{number:02}" for number in range(13)]
    for number, name in enumerate(names):
        save(tmp_path / f"{name}.npz", np.array([[0.5], [0.1]]), np.array([number, 0.0]))
    tables = files.read(Sources(), str(tmp_path))
    splits = synthetic_scenario("mixed").splits
    for split, tasks in splits.items():
        assert tables.tasks(split) == [names[task] for task in tasks if task < 13]
    assert tables.tasks("test") == ["task00", "task10"]
    assert tables.table("task12", 0).values[0] == 12.0


def test_subfolders_are_splits(tmp_path):
    for place in ("train/a", "train/b", "test/c"):
        save(tmp_path / f"{place}.npz", np.array([[0.5]]), np.array([1.0]))
    tables = files.read(Sources(), str(tmp_path))
    assert [tables.tasks(split) for split in DATASETS] == [["a", "b"], [], ["c"]]
    assert [task.name for task in tables.metadata("train")] == ["a", "b"]
    save(tmp_path / "d.npz", np.array([[0.5]]), np.array([1.0]))
    with pytest.raises(ValueError, match=r"'d\.npz' beside \['train', 'test'\]"):
        files.read(Sources(), str(tmp_path))
    (tmp_path / "d.npz").rename(tmp_path / "test" / "b.npz")
    with pytest.raises(ValueError, match="several files 'b'"):
        files.read(Sources(), str(tmp_path))


def test_csv_files_share_a_search_space(tmp_path):
    (tmp_path / "a.csv").write_text(
        "rate,depth,kind,slope,score\n0.1,2,x,,0.5\n0.2,3,y,1.5,\n0.5,2,x,,0.9\n"
    )
    (tmp_path / "b.csv").write_text("rate,depth,kind,slope,score\n0.9,7,z,,0.1\n0.4,2,y,2,nan\n")
    tables = tables_of(Sources(), f"file:{tmp_path}")
    assert [tables.tasks(split) for split in DATASETS] == [["b"], [], ["a"]]
    first, second = tables.table("a", 0), tables.table("b", 0)
    assert first.space == second.space
    assert first.space.domains == {
        "rate": Float(0.1, 0.9),
        "depth": Integer(2, 7),
        "kind": Categorical(("x", "y", "z")),
        "slope": Float(1.5, 2),
    }
    np.testing.assert_array_equal(first.values, [0.5, np.nan, 0.9])  # larger is better
    np.testing.assert_array_equal(second.values, [0.1, np.nan])
    assert first.space.to_configuration(first.units[0]) == {"rate": 0.1, "depth": 2, "kind": "x"}
    assert second.space.to_configuration(second.units[1]) == {
        **{"rate": 0.4, "depth": 2, "kind": "y"},
        "slope": 2.0,
    }


def test_a_single_file_is_a_test_task(tmp_path):
    (tmp_path / "mine.csv").write_text("x;y\n1;0,5\n2;3\n".replace(",", "."))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    tables = files.read(Sources(), str(tmp_path / "mine.csv"))
    assert [tables.tasks(split) for split in DATASETS] == [[], [], ["mine"]]
    assert tables.table("mine", 0).values.tolist() == [0.5, 3.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, r"one kind, \.csv or \.npz; it has none"),
        ({"a.csv": "x,y\n1,2\n", "b.npz": {}}, r"one kind.*\.csv, \.npz"),
        ({"a.csv": "x,y\n1,2\n", "b.csv": "y,x\n1,2\n"}, r"b\.csv' has the columns \['y', 'x'\]"),
        ({"a.csv": "x,y\n"}, "has no rows"),
        ({"a.csv": ""}, "is no CSV file with a header"),
        ({"a.csv": "y\n1\n"}, "needs different names"),
        ({"a.csv": ",x,y\n0,1,2\n"}, "needs different names"),
        ({"a.csv": "x,x,y\n0,1,2\n"}, "'x' more than once"),
        (
            {"a.csv": "x,y\n1,2\n3\n"},
            r"a.csv' has {'rows with another number of cells than the header': 1}",
        ),
        ({"a.csv": "x,y\n1,good\n2,bad\n"}, "'a' in .* has no values"),
        ({"a.csv": "x,y\n" + "1,2\n2,3\n" * 10 + "oops,3\n"}, "'x', such as 'oops'.*correct"),
        ({"a.npz": {"X": [[1.0]]}}, "no NumPy archive with the numbers X and y.*y"),
        ({"a.npz": {"X": [[1.0]], "y": ["low"]}}, "no NumPy archive with the numbers"),
        ({"a.npz": {"X": [[1.0]], "y": np.array([{}])}}, "no NumPy archive with the numbers"),
        ({"a.npz": {"X": [[1.0]], "y": [1.0, 2.0]}}, r"shape \(1, 1\) and y of shape \(2,\)"),
        ({"a.npz": {"X": [1.0], "y": [1.0]}}, r"shape \(1,\) and y"),
        ({"a.npz": {"X": [[1.0]], "y": [[1.0, 2.0]]}}, r"y of shape \(1, 2\)"),
        ({"a.npz": {"X": np.zeros((0, 2)), "y": []}}, r"shape \(0, 2\)"),
        ({"a.npz": {"X": [[1.0], [np.nan]], "y": [1.0, 2.0]}}, r"row 1 of X is \[nan\]"),
        ({"a.npz": {"X": [[1.0]], "y": [np.nan]}}, "'a' in .* has no values"),
        (
            {"a.npz": {"X": [[1.0]], "y": [1.0]}, "b.npz": {"X": [[1.0, 2.0]], "y": [1.0]}},
            "same number of columns",
        ),
    ],
)
def test_what_is_wrong_with_files_is_named(tmp_path, content, message):
    for name, one in content.items():
        if isinstance(one, str):
            (tmp_path / name).write_text(one)
        else:
            np.savez(tmp_path / name, **{key: np.asarray(array) for key, array in one.items()})
    with pytest.raises(ValueError, match=message):
        files.read(Sources(), str(tmp_path))


def test_what_is_no_table_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("x,y\n1,2\n")
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "latin.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    for name, message in {
        "nowhere": r"nowhere' must be or hold .* it has none",
        "notes.txt": r"it has \.txt",
        "torn.npz": "no NumPy archive",
        "latin.csv": "no CSV file",
    }.items():
        with pytest.raises(ValueError, match=message):
            files.read(Sources(), str(tmp_path / name))


# ---- Syne Tune's blackbox repository

FIDELITIES = np.array([1, 9, 3])  # in no order: the second is the highest
METRICS = ["val_accuracy", "metric_elapsed_time", "temperature"]


def blackbox_tasks():
    """Two seeds, three fidelities, three metrics; hyper-parameters of four kinds."""
    cs = pytest.importorskip("syne_tune.config_space")
    pandas = pytest.importorskip("pandas")
    space = {
        "rate": cs.loguniform(1e-4, 1.0),
        "layers": cs.choice(["True", "2", "3"]),
        "dropout": cs.finrange(0.0, 0.6, 3),
        "units": cs.logfinrange(16, 512, 6, cast_int=True),
    }
    table = pandas.DataFrame(
        {
            "rate": [0.001, 0.1, 1.0, 0.0001],
            "layers": ["True", "2", "3", "2"],
            "dropout": [0.0, 0.3, 0.6, 0.3],
            "units": [16, 32, 512, 256],
        }
    )
    rng = np.random.default_rng(0)
    return {
        f"task{number}": {
            "hyperparameters": table,
            "configuration_space": space,
            "fidelity_space": {"epoch": cs.randint(1, 9)},
            "objectives_evaluations": rng.random((4, 2, 3, 3)).astype(np.float32),
            "fidelity_values": FIDELITIES,
            "objectives_names": METRICS,
        }
        for number in range(11)
    }


@pytest.fixture
def repository(monkeypatch):
    """An entry "lcbench" that needs neither the network nor what reads its files."""
    tasks = blackbox_tasks()
    module = SimpleNamespace(
        blackbox_list=lambda: ["lcbench", "fcnet"],
        load_blackbox=lambda _: {key: SimpleNamespace(**one) for key, one in tasks.items()},
    )
    monkeypatch.setitem(sys.modules, "syne_tune.blackbox_repository", module)
    return tasks


def final_means(tasks, task, metric):
    return tasks[task]["objectives_evaluations"][:, :, 1, METRICS.index(metric)].mean(axis=1)


def check_entry(tables, tasks):
    assert tables.tasks("test") == ["task0", "task10"]
    assert tables.tasks("validation") == ["task5"]
    assert len(tables.metadata("train")) == 8
    table = tables.table("task10", 0)
    np.testing.assert_allclose(table.values, final_means(tasks, "task10", "val_accuracy"))
    assert table.space.domains == {
        "rate": Float(1e-4, 1.0, "log"),
        "layers": Categorical(("True", "2", "3")),
        "dropout": Ordinal((0.0, 0.3, 0.6), "linear"),
        "units": Ordinal((16, 32, 64, 128, 256, 512), "log"),
    }
    configuration = table.space.to_configuration(table.units[1])
    assert configuration == {
        **{"rate": pytest.approx(0.1), "layers": "2", "dropout": pytest.approx(0.3)},
        "units": 32,
    }


def test_blackboxes_have_the_means_of_seeds_at_the_highest_fidelity(repository):
    check_entry(tables_of(Sources(), "syne-tune:lcbench"), repository)


def test_metrics_are_turned_so_that_larger_is_better(repository):
    time = final_means(repository, "task0", "metric_elapsed_time")
    for name, values in {
        "lcbench/metric_elapsed_time": -time,
        "lcbench/metric_elapsed_time/max": time,
        "lcbench/temperature/min": -final_means(repository, "task0", "temperature"),
        "lcbench//min": -final_means(repository, "task0", "val_accuracy"),
    }.items():
        np.testing.assert_allclose(
            blackboxes.read(Sources(), name).table("task0", 0).values, values
        )


@pytest.mark.parametrize(
    ("metric", "mode"),
    [
        *[(name, "max") for name in ("val_balanced_accuracy", "metric_accuracy", "valid_r2")],
        ("WEIGHTED_AVG_AUC_DOWNSTREAM_PERFORMANCE", "max"),
        *[(name, "min") for name in ("val_cross_entropy", "time", "training_runtime")],
        *[(name, "min") for name in ("metric_valid_error_rate", "metric_CRPS", "metric_flops")],
        *[(name, "min") for name in ("metric_n_params", "metric_latency", "metric_valid_loss")],
    ],
)
def test_names_of_metrics_tell_which_values_are_good(metric, mode):
    assert blackboxes.mode_of("entry", metric) == mode


def test_a_metric_that_does_not_tell_must_be_told(repository):
    message = "'temperature' are good: write lcbench/temperature/max or lcbench/temperature/min"
    with pytest.raises(ValueError, match=message):
        blackboxes.read(Sources(), "lcbench/temperature")
    with pytest.raises(ValueError, match="'accuracy_loss' are good"):
        blackboxes.mode_of("entry", "accuracy_loss")
    for name, message in {
        "lcbench/speed": "no metric 'speed'; it has val_accuracy, metric_elapsed_time",
        "lcbench/temperature/up": "mode must be max or min, got 'up'",
        "lcbench/temperature/max/min": "mode must be max or min, got 'max/min'",
        "other": "no blackbox 'other'; it has lcbench, fcnet",
    }.items():
        with pytest.raises(ValueError, match=message):
            blackboxes.read(Sources(), name)


def test_rows_that_do_not_fit_the_search_space_are_left_out_with_a_warning(repository):
    for task in repository.values():
        task["hyperparameters"] = task["hyperparameters"].assign(units=[16, 32, 512, 17])
    tables = blackboxes.read(Sources(), "lcbench")
    with pytest.warns(UserWarning, match=r"tables lack .*'units', such as 17.*: 2"):
        assert tables.tasks("test") == ["task0", "task10"]
    expected = final_means(repository, "task0", "val_accuracy")[:3]
    np.testing.assert_allclose(tables.table("task0", 0).values, expected)


def test_what_the_repository_needs_is_said(repository, monkeypatch):
    def load(_):
        raise FileNotFoundError("check your internet connection")

    monkeypatch.setattr(sys.modules["syne_tune.blackbox_repository"], "load_blackbox", load)
    with pytest.raises(ValueError, match=r"cannot be downloaded or read: .*check your internet"):
        blackboxes.read(Sources(), "lcbench")
    monkeypatch.setitem(sys.modules, "syne_tune.blackbox_repository", None)
    with pytest.raises(ValueError, match=r"pip install .*huggingface_hub"):
        blackboxes.read(Sources(), "lcbench")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # how Syne Tune uses pandas
def test_an_entry_that_syne_tune_has_written_is_read(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    pytest.importorskip("fastparquet")
    from syne_tune.blackbox_repository import blackbox_tabular
    from syne_tune.blackbox_repository import repository as stored

    tasks = blackbox_tasks()
    made = {key: blackbox_tabular.BlackboxTabular(**one) for key, one in tasks.items()}
    blackbox_tabular.serialize(made, tmp_path / "lcbench")
    monkeypatch.setattr(stored, "repository_path", tmp_path)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    check_entry(blackboxes.read(Sources(), "lcbench"), tasks)
