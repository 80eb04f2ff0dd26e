"""Tables in files: CSV and npz."""

import numpy as np
import pytest

from dre_bench.runs import Sources
from dre_bench.synthetic import synthetic_scenario
from dre_bench.table_sources import files
from dre_bench.tables import tables_of
from dre_plugins.space import Categorical, Float, Integer

DATASETS = ("train", "validation", "test")


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
        ({"a.csv": "x,x,y\n0,1,2\n"}, "'x' more than once"),
        (
            {"a.csv": "x,y\n1,2\n3\n"},
            r"a.csv' has {'rows with another number of cells than the header': 1}",
        ),
        ({"a.csv": "x,y\n1,good\n2,bad\n"}, "'y' has no number, but text such as 'good'"),
        ({"a.csv": "x,y\n" + "1,2\n2,3\n" * 10 + "oops,3\n"}, "'x', such as 'oops'.*correct"),
        ({"a.npz": {"X": [[1.0]]}}, "no NumPy archive with the numbers X and y.*y"),
        ({"a.npz": {"X": [[1.0]], "y": np.array([{}])}}, "no NumPy archive with the numbers"),
        ({"a.npz": {"X": [[1.0]], "y": [1.0, 2.0]}}, r"shape \(1, 1\) and y of shape \(2,\)"),
        ({"a.npz": {"X": [[1.0], [np.nan]], "y": [1.0, 2.0]}}, r"row 1 of X is \[nan\]"),
        ({"a.npz": {"X": [[1.0]], "y": [np.nan]}}, "'a' in .* has no values"),
        (
            {"a.npz": {"X": [[1.0]], "y": [1.0]}, "b.npz": {"X": [[1.0, 2.0]], "y": [1.0]}},
            "same number of columns",
        ),
    ],
)
def test_what_is_wrong_with_files_is_named(tmp_path, content, message):
    for name, entry in content.items():
        if isinstance(entry, str):
            (tmp_path / name).write_text(entry)
        else:
            np.savez(tmp_path / name, **{key: np.asarray(array) for key, array in entry.items()})
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
