"""Tables of evaluations: CSV files, data frames, columns."""

import math
from pathlib import Path

import numpy as np
import pytest

from dre_plugins.recommend.trials import TrialState
from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Float,
    Integer,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.transfer.sources.cells import EMPTY, Misfit, number, typed
from dre_plugins.transfer.sources.tables import from_table

pd = pytest.importorskip("pandas")

CSV = """\
task,lr,layers,optimiser,nesterov,seed,loss
iris,0.0001,1,adam,,7,0.5
iris,0.001,2,sgd,True,7,0.25
wine,0.01,3,sgd,False,7,nan
wine,0.1,3,adam,,7,diverged
wine,1,2,adam,,7,
wine,0.01,1,adam,,7,-inf
"""


def test_a_csv_file_becomes_tasks_over_one_inferred_space(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(CSV)
    metadata = from_table(path, value="loss", task="task")
    assert [task.name for task in metadata] == ["iris", "wine"]
    assert metadata.source == "runs" and metadata.skipped == {}
    space = metadata.tasks[0].space
    assert space == metadata.tasks[1].space
    assert space == SearchSpace(
        {
            "lr": Float(0.0001, 1.0, "log"),
            "layers": Integer(1, 3),
            "optimiser": Categorical(("adam", "sgd")),
            "nesterov": Categorical((True, False)),
            "seed": Constant(7),
        },
        [Condition("nesterov", "optimiser", ("sgd",))],
    )
    np.testing.assert_array_equal(metadata.tasks[0].values, [-0.5, -0.25])
    np.testing.assert_array_equal(metadata.tasks[1].values, [math.nan] * 3 + [math.inf])
    assert metadata.tasks[1].counts() == {"complete": 1, "pruned": 0, "failed": 3}
    assert metadata.tasks[0].trials()[1].configuration == {
        "lr": pytest.approx(0.001),
        "layers": 2,
        "optimiser": "sgd",
        "nesterov": True,
        "seed": 7,
    }


def test_columns_without_a_name_are_no_parameters(tmp_path: Path) -> None:
    """As the row numbers that pandas writes, and a separator at the end of each line."""
    path = tmp_path / "runs.csv"
    table = pd.DataFrame({"lr": [0.1, 0.2], "loss": [1.0, 2.0]})
    path.write_text(table.to_csv().replace("\n", ",\n"))
    metadata = from_table(path, value="loss")
    assert metadata.tasks[0].space.names == ("lr",)
    assert metadata.skipped == {"columns without a name": 2}


@pytest.mark.parametrize("values", [("0,5", "0,25"), ("90%", "80%", ""), ("bad", "nan")])
def test_values_without_any_number_are_refused(tmp_path: Path, values: tuple[str, ...]) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["lr;loss", *(f"0.1;{value}" for value in values)]))
    with pytest.raises(ValueError, match=f"'loss' has no number.*'{values[0]}'"):
        from_table(path, value="loss")


def test_without_a_task_column_the_file_is_one_task(tmp_path: Path) -> None:
    path = tmp_path / "one.tsv"
    path.write_text("\ufeffx\tacc\n0.5\t1\n0.7\t2\n\n", encoding="utf-8")
    metadata = from_table(str(path), value="acc", direction="maximize")
    assert [task.name for task in metadata] == ["one"]
    np.testing.assert_array_equal(metadata.tasks[0].values, [1.0, 2.0])


def test_a_frame_columns_and_a_file_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(CSV)
    frame = pd.read_csv(path)
    columns = {name: frame[name].astype(object).tolist() for name in frame}
    first = from_table(path, value="loss", task="task")
    for source in (
        frame,
        frame.convert_dtypes(),
        frame.astype({"optimiser": "category"}),
        columns,
    ):
        other = from_table(source, value="loss", task="task")
        assert other.tasks[0].space == first.tasks[0].space
        for task, expected in zip(first, other, strict=True):
            np.testing.assert_array_equal(task.units, expected.units)
            np.testing.assert_array_equal(task.values, expected.values)


@pytest.mark.parametrize("wrong", ["fast", math.inf])
def test_what_is_no_number_in_a_numeric_column_drops_the_row_and_is_counted(wrong: object) -> None:
    lr = [0.1 * i for i in range(1, 20)] + [wrong]
    metadata = from_table({"lr": lr, "loss": [*range(20)]}, value="loss")
    assert len(metadata.tasks[0]) == 19
    assert metadata.skipped == {f"rows without a fitting value in 'lr', such as {wrong!r}": 1}
    assert metadata.tasks[0].space.domains["lr"] == Float(0.1, 0.1 * 19)


def test_a_column_of_text_and_numbers_is_categorical() -> None:
    metadata = from_table({"depth": ["auto", 3, 3, True, 1], "loss": [*range(5)]}, value="loss")
    assert metadata.tasks[0].space.domains["depth"] == Categorical(("auto", 3, True, 1))


def test_the_log_scale_needs_evidence_or_a_statement() -> None:
    rng = np.random.default_rng(0)
    columns = {
        "uniform": rng.random(2000),
        "log": 10.0 ** rng.uniform(-5, 0, 2000),
        "log_int": np.rint(10.0 ** rng.uniform(0, 4, 2000)).astype(int),
        "giant": 1e308 * rng.uniform(size=2000),
        "giant_log": 10.0 ** rng.uniform(-300, 308, 2000),
        "narrow": rng.uniform(1.0, 2.0, 2000),
        "y": rng.random(2000),
    }
    domains = from_table(columns, value="y", log="narrow").tasks[0].space.domains
    scales = {name: domain.scale for name, domain in domains.items()}
    assert scales == {
        **{"uniform": "linear", "log": "log", "log_int": "log", "narrow": "log"},
        **{"giant": "linear", "giant_log": "log"},
    }


def test_unstated_absence_is_learnt_as_a_condition_or_as_optional() -> None:
    columns = {
        "depth": [1, 2, 3, 4, 5, 6] * 2,
        "shrink": [None, None, None, 0.1, 0.2, 0.3] * 2,
        "note": [0.1, None, 0.3, 0.4, None, 0.6, None, 0.2, 0.4, None, 0.2, 0.2],
        "y": [0.0] * 12,
    }
    space = from_table(columns, value="y").tasks[0].space
    assert space.conditions == (RangeCondition("shrink", "depth", low=3.5),)
    assert space.optional == {"note"}


def test_a_given_space_decides_the_types_and_refuses_rows(tmp_path: Path) -> None:
    space = SearchSpace(
        {
            "width": Ordinal((16, 32, 64)),
            "code": Categorical(("1", "2", None)),
            "depth": Integer(1, 8),
            "lr": Float(0.1, 1.0),
            "seed": Constant(3),
        },
        optional=["depth"],
    )
    path = tmp_path / "t.csv"
    path.write_text(
        "width,code,depth,lr,y\n16,1,2.0,0.5,1\n32,None,,1.5,2\n17,1,3,0.5,3\n64,2,2.5,0.5,4\n"
        "64,1,3,slow,5\n"
    )
    metadata = from_table(path, value="y", space=space, direction="maximize")
    half = pytest.approx(0.5)
    assert [trial.configuration for trial in metadata.tasks[0].trials()] == [
        {"width": 16, "code": "1", "depth": 2, "lr": half, "seed": 3},
        {"width": 32, "code": None, "lr": 1.5, "seed": 3},  # out of range, not out of order
        {"width": 64, "code": "2", "depth": 3, "lr": half, "seed": 3},
    ]
    assert metadata.skipped == {
        "rows without a fitting value in 'width', such as '17'": 1,
        "rows without a fitting value in 'lr', such as 'slow'": 1,
    }


def test_damaged_rows_and_rows_of_no_task_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task,x,y\na,1,1\na,2\n,3,3\na,4,4,4\nb,5,5\n")
    metadata = from_table(path, value="y", task="task")
    assert [task.name for task in metadata] == ["a", "b"]
    assert metadata.skipped == {
        "rows with another number of cells than the header": 2,
        "rows without a name in 'task'": 1,
    }


@pytest.mark.parametrize("n_rows", [0, 1])
def test_tiny_tables_are_no_error(n_rows: int) -> None:
    metadata = from_table({"x": [1.0][:n_rows], "y": [2.0][:n_rows]}, value="y")
    assert len(metadata) == n_rows
    assert metadata.skipped == ({} if n_rows else {"empty study": 1})
    if n_rows:
        assert metadata.tasks[0].space.domains == {"x": Constant(1.0)}
        assert metadata.tasks[0].units.shape == (1, 0)


def test_a_table_of_failures_is_kept() -> None:
    task = from_table({"x": [1, 2], "y": [math.nan, None]}, value="y").tasks[0]
    assert [trial.state for trial in task.trials()] == [TrialState.FAILED] * 2


COLUMNS = {"x": [1.0, 2.0], "y": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": "z"}, r"no column 'z'.*\['x', 'y'\]"),
        ({"value": "y", "task": "z"}, r"no column 'z'.*\['x', 'y'\]"),
        ({"value": "y", "parameters": ["z"]}, r"no column 'z'"),
        ({"value": "y", "parameters": ["x", "y"]}, r"'y' is named twice"),
        ({"value": "y", "direction": "min"}, r"direction.*'min'"),
        ({"value": "y", "log": ["z"]}, r"log names \['z'\].*\['x'\]"),
        ({"value": "x", "log": ["y"], "source": {"x": [1, 2], "y": [0, 1]}}, r"'y'.*value 0"),
        ({"value": "y", "log": ["x"], "space": SearchSpace({"x": Float(0, 1)})}, r"log.*space"),
        ({"value": "y", "source": {"x": [1], "y": []}}, r"different lengths"),
        ({"value": "y", "source": 3}, r"source must be.*3"),
        ({"value": "y", "source": ""}, r"source must be.*''"),
        ({"value": "y", "source": pd.DataFrame([[1, 2]], columns=["y", "y"])}, r"more than once"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_table(arguments.pop("source", COLUMNS), **arguments)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", ".*it is empty"), (b"\xff\xfe\x00x", ""), (b"a,a\n1,2\n", "")]
)
def test_a_file_that_is_no_table_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"bad\.csv{message}"):
        from_table(path, value="a")


# ---- cells


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (3, 3.0),
        ("3", 3.0),
        (" 1e-3 ", 0.001),
        (np.float32(0.5), 0.5),
        ("inf", math.inf),
        (-(10**400), -math.inf),
        ("1" + "0" * 400, math.inf),
        ("1_000", math.nan),
        ("", math.nan),
        ("diverged", math.nan),
        (None, math.nan),
        (True, math.nan),
        ([1.0], math.nan),
    ],
)
def test_a_metric_is_a_number_or_nan(cell: object, expected: float) -> None:
    np.testing.assert_equal(number(cell), expected)


def test_columns_take_the_type_of_most_cells() -> None:
    assert typed(["1", "2", None]) == [1, 2, EMPTY]
    assert typed([np.int64(1), 2.5, math.nan]) == [1, 2.5, EMPTY]
    assert typed(["true", "FALSE", None]) == [True, False, EMPTY]
    assert typed(["1", "two"]) == ["1", "two"]
    assert typed([None, None]) == [EMPTY, EMPTY]
    assert typed([True, 1, "1"]) == [True, 1, "1"]
    *numbers, last = typed([*range(10), 10**400])
    assert numbers == [*range(10)]
    assert isinstance(last, Misfit) and last.cell == 10**400
