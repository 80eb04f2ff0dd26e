"""HPO-B: tables and initialisations, in files made from the YAHPO extract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpob_json import write_hpob

from dre_bench.hpob_files import load_hpob, load_hpob_initialisations
from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace
from dre_plugins.transfer.archive import MetadataError
from dre_plugins.transfer.metadata import MetaDataset, Task

SPACES = {
    "rbv2_xgboost": SearchSpace(
        {
            "booster": Categorical(("gbtree", "gblinear", "dart")),
            "eta": Float(1e-4, 1.0, "log"),
            "max_depth": Integer(1, 15),
            "rate_drop": Float(0.0, 1.0),
        },
        [Condition("rate_drop", "booster", ("dart",))],
    ),
    "rbv2_rpart": SearchSpace({"cp": Float(1e-4, 1.0, "log"), "minsplit": Integer(1, 100)}),
}
N_TASKS, N_ROWS = 8, 250


def task_of(name: str, number: int) -> Task:
    """Return a task that is smooth in its units; parameters without a value count as 0."""
    space, rng = SPACES[name], np.random.default_rng(number)
    units = space.canonical(rng.random((N_ROWS, space.n_parameters)))
    peak = rng.random(space.n_parameters)
    values = 1.0 - (np.nan_to_num(units - peak) ** 2).mean(axis=1)
    return Task(str(number), space, units, values, np.zeros(N_ROWS, dtype=np.bool_))


@pytest.fixture(scope="module")
def extract() -> dict[str, MetaDataset]:
    return {name: MetaDataset.of([task_of(name, n) for n in range(N_TASKS)]) for name in SPACES}


@pytest.fixture
def folder(extract: dict[str, MetaDataset], tmp_path: Path) -> Path:
    for split in ("train", "validation", "test"):
        write_hpob(extract, tmp_path / f"meta-{split}-dataset.json")
    return tmp_path


def test_tables_come_back_with_the_features_as_parameters(
    extract: dict[str, MetaDataset], folder: Path
) -> None:
    loaded = load_hpob(folder)
    assert list(loaded) == ["rbv2_xgboost", "rbv2_rpart"]
    for name, metadata in loaded.items():
        assert [task.name for task in metadata] == [task.name for task in extract[name]]
        for task, original in zip(metadata, extract[name], strict=True):
            width = original.space.n_features
            assert task.space == SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(width)})
            np.testing.assert_array_equal(task.values, original.values)
            features = original.space.features(original.units)
            np.testing.assert_array_equal(task.space.features(task.units), features)
            assert task.counts() == {"complete": N_ROWS, "pruned": 0, "failed": 0}


def test_spaces_and_splits_can_be_chosen(folder: Path) -> None:
    assert list(load_hpob(folder, split="test", spaces=["rbv2_rpart"])) == ["rbv2_rpart"]
    assert list(load_hpob(str(folder / "meta-test-dataset.json"))) == [
        "rbv2_xgboost",
        "rbv2_rpart",
    ]
    with pytest.raises(ValueError, match=r"\['5860'\].*'rbv2_rpart'"):
        load_hpob(folder, spaces=["5860"])
    with pytest.raises(ValueError, match=r"split.*'dev'"):
        load_hpob(folder, split="dev")  # type: ignore[arg-type]


def test_the_augmented_file_stands_in_for_the_training_file(folder: Path) -> None:
    (folder / "meta-train-dataset.json").rename(folder / "meta-train-dataset-augmented.json")
    assert len(load_hpob(folder)["rbv2_rpart"]) == N_TASKS
    (folder / "meta-test-dataset.json").unlink()
    with pytest.raises(MetadataError, match=r"meta-test-dataset\.json.*hpob-data"):
        load_hpob(folder, split="test")


def test_a_truncated_file_is_named(folder: Path) -> None:
    path = folder / "meta-train-dataset.json"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(MetadataError, match=r"meta-train-dataset\.json.*damaged"):
        load_hpob(folder)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"X": [[0.1], [0.2]], "y": [[1.0]]}, "X has 2 rows, y has 1"),
        ({"X": [[0.1]], "y": [[1.0, 2.0]]}, "X has 1 rows, y has 1 and 2 numbers"),
        ({"X": [[0.1], [0.2, 0.3]], "y": [[1.0], [2.0]]}, "ragged"),
        ({"X": [0.1], "y": [1.0]}, "1 axes"),
        ({"X": [["fast"]], "y": [1.0]}, "no numbers"),
        ({"X": [[0.1], [float("nan")]], "y": [1.0, 2.0]}, r"row 1 of X is \[nan\]"),
        ({"X": [[None]], "y": [1.0]}, "row 0 of X"),
        ({"X": [[0.1]]}, "no object with X and y"),
        ([1], "no object with X and y"),
        ({"X": float("nan"), "y": [[1.0]]}, "X or y is no list"),
    ],
)
def test_a_bad_table_is_named_with_file_space_and_data_set(
    tmp_path: Path, table: Any, message: str
) -> None:
    path = tmp_path / "meta-train-dataset.json"
    path.write_text(json.dumps({"5860": {"31": {"X": [[0.5]], "y": [[1]]}, "3": table}}))
    with pytest.raises(MetadataError, match=rf"dataset\.json.*'5860'.*'3'.*{message}"):
        load_hpob(tmp_path)


def test_data_sets_of_one_space_have_equal_width(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    tables = {"a": {"X": [[0.5]], "y": [1]}, "b": {"X": [[0.5, 0.5]], "y": [1]}}
    path.write_text(json.dumps({"5860": tables}))
    with pytest.raises(MetadataError, match=r"'5860'.*'b'.*2 columns.*1"):
        load_hpob(path)


def test_empty_tables_single_rows_and_nan_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    tables = {
        "empty": {"X": [], "y": []},
        "one": {"X": [[0.5, 1.0]], "y": [[0.9]]},
        "failed": {"X": [[0.5, 1.0]], "y": [[None]]},
    }
    path.write_text(json.dumps({"5860": tables, "none": {}}))
    loaded = load_hpob(path)
    assert [task.name for task in loaded["5860"]] == ["one", "failed"]
    assert loaded["5860"].skipped == {"empty study": 1}
    assert loaded["5860"].tasks[1].counts() == {"complete": 0, "pruned": 0, "failed": 1}
    assert len(loaded["none"]) == 0


def test_initialisations_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "bo-initializations.json"
    rows = {"5860": {"3": {"test0": [4, 0, 7], "test1": [1, 2, 3]}}}
    path.write_text(json.dumps(rows))
    assert load_hpob_initialisations(tmp_path) == load_hpob_initialisations(path) == rows
    path.write_text(json.dumps({"5860": {"3": {"test0": [1.5]}}}))
    with pytest.raises(MetadataError, match=r"bo-initializations\.json.*1\.5"):
        load_hpob_initialisations(tmp_path)
