"""`dre import` on real storages, tables and folders."""

import os

import pytest
from readers import make_ray, make_syne_tune

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
    ("name", "message"),
    [("t.txt", ".json or .npz"), ("no/t.json", "folder"), ("shut/t.json", "not be written to")],
)
def test_an_output_that_cannot_be_written_is_told_first(dre, tmp_path, name, message, monkeypatch):
    url = "sqlite:///does_not_exist.db"
    (tmp_path / "shut").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: path.name != "shut" or mode != os.W_OK)
    assert message in dre("import", "optuna", url, "-o", tmp_path / name, code=1).stderr


def test_csv(dre, table, tmp_path):
    output = tmp_path / "tasks.json"
    options = ("--value", "accuracy", "--task", "dataset", "--maximize", "--log", "lr")
    columns = ("--parameter", "lr", "--parameter", "layers")
    text = dre("import", "csv", table, *options, *columns, "-o", output).output
    assert "2 tasks, 16 evaluations (14 complete, 2 failed) from runs" in text
    assert "good values of 'accuracy': large\n" in text
    wine, _ = MetaDataset.load(output)
    assert wine.space.names == ("lr", "layers")
    assert isinstance(wine.space.domains["lr"], Float) and wine.space.domains["lr"].scale == "log"
    assert wine.space.domains["layers"] == Integer(1, 3)
    assert wine.values[0] > 0  # larger is better, as told


def test_csv_without_options_takes_all_other_columns(dre, table, tmp_path):
    output = tmp_path / "tasks.json"
    text = dre("import", "csv", table, "--value", "accuracy", "-o", output).output
    assert "good values of 'accuracy': small (--maximize: large)" in text
    (task,) = MetaDataset.load(output)
    assert task.name == "runs" and task.space.names == ("dataset", "lr", "layers")
    assert task.values[0] < 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--value", "accurracy"], "'accurracy'"),
        (["--value", "accuracy", "--task", "data"], "'data'"),
        (["--value", "accuracy", "--log", "dataset"], "'dataset'"),
        (["--value", "y"], "nothing.csv"),
        (["--value", "y"], "got ''"),
    ],
)
def test_csv_names_what_is_wrong(dre, table, tmp_path, options, message):
    path = {"nothing.csv": tmp_path / message, "got ''": ""}.get(message, table)
    arguments = ("import", "csv", path, *options, "-o", tmp_path / "t.json")
    assert message in dre(*arguments, code=1).stderr


@pytest.mark.ray
def test_ray(dre, tmp_path):
    pytest.importorskip("ray")
    output = tmp_path / "tasks.json"
    make_ray(tmp_path / "experiment")
    arguments = ("import", "ray", "--mode", "min", "-o", output, tmp_path / "experiment")
    assert "3 evaluations (3 complete)" in dre(*arguments, "--metric", "loss").output
    assert MetaDataset.load(output).tasks[0].values.tolist() == [-1 / 3] * 3
    limited = ("--metric", "loss", "--constraint", "training_iteration=2")
    assert "3 evaluations (3 failed)" in dre(*arguments, *limited).output
    assert "'loss'" in dre(*arguments, "--metric", "los", code=1).stderr
    wrong = {"results has ''": "", "no experiment of Ray": tmp_path / "experiment" / "train_0"}
    for message, folder in wrong.items():
        assert message in dre(*arguments[:-1], folder, "--metric", "loss", code=1).stderr


@pytest.mark.syne_tune
def test_syne_tune(dre, tmp_path):
    pytest.importorskip("syne_tune")
    output = tmp_path / "tasks.json"
    make_syne_tune(tmp_path / "experiment")
    arguments = ("import", "syne-tune", tmp_path / "experiment", "-o", output)
    assert "4 evaluations (4 complete)" in dre(*arguments).output
    losses = [1 / 2, 1 / 4, 1 / 6, 1 / 8]
    assert MetaDataset.load(output).tasks[0].values.tolist() == [-loss for loss in losses]
    dre(*arguments, "--metric", "loss", "--mode", "max")
    assert MetaDataset.load(output).tasks[0].values.tolist() == losses
    for limits, n in (("0.2", 2), ("0.2:", 2), (":0.3", 3), ("0.15:0.3", 2), ("-1:1e9", 4)):
        dre(*arguments, "--constraint", f"loss={limits}", "--constraint", "epoch=2")
        assert MetaDataset.load(output).tasks[0].n_complete == n
    for limit in ("loss", "=1", "loss=small", "loss=1:2:3", "loss=", "loss=2:1", "loss=nan"):
        message = dre(*arguments, "--constraint", limit, code=1).stderr
        assert ("constraint" in message and "number" in message) or "not empty" in message
    assert "'los'" in dre(*arguments, "--metric", "los", code=1).stderr
    (tmp_path / "folder" / "empty").mkdir(parents=True)
    assert "source has ''" in dre("import", "syne-tune", "", "-o", output, code=1).stderr
    arguments = ("import", "syne-tune", tmp_path / "folder", "-o", output)
    assert "no experiment of Syne Tune" in dre(*arguments, code=1).stderr
    (tmp_path / "folder" / "results.csv").touch()
    assert "the results have no column 'trial_id'" in dre(*arguments, code=1).output
