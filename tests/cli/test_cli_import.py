"""`dre import` on real storages, tables and folders."""

from __future__ import annotations

import json

import pytest

from dre_plugins.space import Float, Integer
from dre_plugins.transfer.metadata import MetaDataset


def test_optuna(dre, studies, tmp_path):
    output = tmp_path / "tasks.json"
    text = dre("import", "optuna", studies, "-o", output).output
    assert "3 tasks, 36 evaluations (36 complete)" in text
    assert "adult: 12 evaluations" in text and "skipped: 1 × empty study" in text
    assert f"written to {output}" in text
    assert [task.name for task in MetaDataset.load(output)] == ["adult", "bank", "credit"]


def test_optuna_by_name(dre, studies, tmp_path):
    output = tmp_path / "tasks.npz"
    dre("import", "optuna", studies, "--study", "bank", "--study", "adult", "-o", output)
    assert [task.name for task in MetaDataset.load(output)] == ["adult", "bank"]
    text = dre("import", "optuna", studies, "--study", "nope", "-o", output, code=1).stderr
    assert "'nope'" in text and "'credit'" in text


def test_nothing_to_write_is_an_error(dre, studies, tmp_path):
    output = tmp_path / "tasks.json"
    result = dre("import", "optuna", studies, "--study", "empty", "-o", output, code=1)
    assert "empty study" in result.stdout and "No task" in result.stderr
    assert not output.exists()


@pytest.mark.parametrize(
    ("name", "message"), [("t.txt", ".json or .npz"), ("no/t.json", "folder")]
)
def test_an_output_that_cannot_be_written_is_told_first(dre, tmp_path, name, message):
    url = "sqlite:///does_not_exist.db"
    assert message in dre("import", "optuna", url, "-o", tmp_path / name, code=1).stderr


def test_csv(dre, table, tmp_path):
    output = tmp_path / "tasks.json"
    options = ("--value", "accuracy", "--task", "dataset", "--maximize", "--log", "lr")
    columns = ("--parameter", "lr", "--parameter", "layers")
    text = dre("import", "csv", table, *options, *columns, "-o", output).output
    assert "2 tasks, 16 evaluations (14 complete, 2 failed) from runs" in text
    wine, _ = MetaDataset.load(output)
    assert wine.space.names == ("lr", "layers")
    assert isinstance(wine.space.domains["lr"], Float) and wine.space.domains["lr"].scale == "log"
    assert wine.space.domains["layers"] == Integer(1, 3)
    assert wine.values[0] > 0  # larger is better, as told


def test_csv_without_options_takes_all_other_columns(dre, table, tmp_path):
    output = tmp_path / "tasks.json"
    dre("import", "csv", table, "--value", "accuracy", "-o", output)
    (task,) = MetaDataset.load(output)
    assert task.name == "runs" and task.space.names == ("dataset", "lr", "layers")
    assert task.values[0] < 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--value", "accurracy"], "'accurracy'"),
        (["--value", "accuracy", "--task", "data"], "'data'"),
        (["--value", "accuracy", "--log", "dataset"], "'dataset'"),
    ],
)
def test_csv_names_what_is_wrong(dre, table, tmp_path, options, message):
    assert (
        message in dre("import", "csv", table, *options, "-o", tmp_path / "t.json", code=1).stderr
    )


def test_a_missing_csv_file(dre, tmp_path):
    path = tmp_path / "nothing.csv"
    options = ("--value", "y", "-o", tmp_path / "t.json")
    assert "nothing.csv" in dre("import", "csv", path, *options, code=1).stderr


@pytest.mark.ray
def test_ray(dre, tmp_path):
    pytest.importorskip("ray")
    states = []
    for trial, rate in enumerate((0.1, 0.2, 0.3)):
        folder = tmp_path / "experiment" / f"trial_{trial}"
        folder.mkdir(parents=True)
        (folder / "params.json").write_text(json.dumps({"lr": rate}))
        report = {"loss": rate**2, "training_iteration": 1, "done": True}
        (folder / "result.json").write_text(json.dumps(report) + "\n")
        state = {"relative_logdir": folder.name, "status": "TERMINATED"}
        states.append([json.dumps(state), "{}"])
    path = tmp_path / "experiment" / "experiment_state-2026-01-01_00-00-00.json"
    path.write_text(json.dumps({"trial_data": states}))
    output = tmp_path / "tasks.json"
    arguments = ("import", "ray", tmp_path / "experiment", "--mode", "min", "-o", output)
    text = dre(*arguments, "--metric", "loss").output
    assert "3 evaluations (3 complete)" in text
    assert MetaDataset.load(output).tasks[0].values.tolist() == pytest.approx(
        [-0.01, -0.04, -0.09]
    )
    assert "'loss'" in dre(*arguments, "--metric", "los", code=1).stderr


@pytest.mark.syne_tune
def test_syne_tune(dre, tmp_path):
    pytest.importorskip("syne_tune")
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "metadata.json").write_text('{"metric_names": ["loss"], "metric_mode": "min"}')
    rows = "".join(f"{trial},{trial / 10},{trial}\n" for trial in range(4))
    (folder / "results.csv").write_text("trial_id,config_lr,loss\n" + rows)
    output = tmp_path / "tasks.json"
    arguments = ("import", "syne-tune", folder, "-o", output)
    assert "4 evaluations (4 complete)" in dre(*arguments).output
    assert MetaDataset.load(output).tasks[0].values.tolist() == [0.0, -1.0, -2.0, -3.0]
    dre(*arguments, "--metric", "loss", "--mode", "max")
    assert MetaDataset.load(output).tasks[0].values.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert "'los'" in dre(*arguments, "--metric", "los", code=1).stderr
