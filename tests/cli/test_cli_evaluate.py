"""`dre evaluate`: what a prior would have saved."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dre_plugins.cli.replays import verdict
from dre_plugins.engine.settings import PRESETS, FittingSettings, ScorerSettings
from dre_plugins.transfer import replay

FEW = ("--steps", 3, "--trials", 11, "--seeds", 1)


@pytest.fixture(autouse=True)
def small_fits(monkeypatch):
    fitting = FittingSettings(n_steps=3, learning_rate=0.01)
    scorer = ScorerSettings(n_members=2, hidden=(8,))
    preset = replace(PRESETS["default"], scorer=scorer, from_random=fitting, from_prior=fitting)
    settings = partial(replay.RecommenderSettings, preset=preset)
    monkeypatch.setattr(replay, "RecommenderSettings", settings)


def test_every_task_is_replayed(dre, tasks, tmp_path):
    pytest.importorskip("matplotlib")
    picture, figures = tmp_path / "saved.png", tmp_path / "saved.json"
    result = dre("evaluate", tasks, *FEW, "-o", picture, "--json", figures)
    assert result.stderr == ""  # no bar in a file
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(figures.read_text())
    assert [task["task"] for task in found["tasks"]] == ["adult", "bank", "credit"]
    assert found["goal"] == replay.GOAL and found["left_out"] == []
    for row in [*found["tasks"], found["mean"]]:
        assert [*row["regret"]] == [*row["needed"]] == [*replay.WAYS]
        assert all(len(curve) == 11 for curve in row["regret"].values())
        assert row["saved"]["prior"] == row["needed"]["your order"] - row["needed"]["prior"]
        assert row["task"] in result.stdout
    mean = found["mean"]["needed"]["prior"]
    assert mean == pytest.approx(sum(task["needed"]["prior"] for task in found["tasks"]) / 3)
    assert f"prior {mean:.1f}" in result.stdout
    for text in ("@1", "@5", "@10", "needed", "saved", "no prior", "random order", "your order"):
        assert text in result.stdout
    assert "@20" not in result.stdout


@pytest.mark.parametrize(
    ("needed", "conclusion"),
    [
        ([(2, 9, 9), (3, 8, 9)], "worth it. A prior needs 2.5 evaluations a task, no prior 8.5"),
        ([(9, 2, 9), (9, 8, 3)], "not worth it. A prior needs 9.0 evaluations a task, no prior"),
        ([(1, 30, 30), (9, 8, 8)], "unclear. A prior needs 5.0 evaluations a task, no prior 19.0"),
        ([(5, 5, 6)], "not worth it."),
        ([(5, 9, 6)], "worth it. A prior needs 5.0 evaluations a task, random order 6.0"),
    ],
)
def test_the_verdict_is_one_line(needed, conclusion):
    ways = (replay.PRIOR, replay.NO_PRIOR, replay.RANDOM)
    curves = {way: np.zeros(1) for way in replay.WAYS}
    replays = [
        replay.Replay(
            str(n), 9, curves, {**dict(zip(ways, counts, strict=True)), replay.YOURS: 1.0}
        )
        for n, counts in enumerate(needed)
    ]
    text = verdict(replays)
    assert text.startswith(f"Verdict: {conclusion}") and "\n" not in text
    assert text.endswith(f"of {len(needed)} tasks.")


def test_a_storage_is_read_like_the_file_that_import_writes(dre, tasks, studies, tmp_path):
    found = []
    for place, source in enumerate((tasks, studies)):
        figures = tmp_path / f"{place}.json"
        result = dre("evaluate", source, "--task", "bank", *FEW, "--json", figures)
        assert result.stdout.splitlines()[-1].startswith("Verdict: ")
        found.append(json.loads(figures.read_text()))
    assert found[0] == found[1]
    both = dre("evaluate", tasks, studies, "--task", "nope", *FEW, code=1).stderr
    assert "'adult', 'bank', 'credit', 'adult (2)'" in both


def test_storages_that_cannot_be_read_are_named(dre, tmp_path):
    optuna = pytest.importorskip("optuna")
    url = f"sqlite:///{tmp_path}/empty.db"
    optuna.create_study(storage=url, study_name="empty")
    assert "no study to learn from" in dre("evaluate", url, code=1).stderr
    assert "no/such.db" in dre("evaluate", "sqlite:///no/such.db", code=1).stderr


def test_one_task_with_a_given_prior(dre, tasks, prior, tmp_path):
    figures = tmp_path / "saved.json"
    options = ("--prior", prior, "--task", "bank", *FEW, "--json", figures)
    result = dre("evaluate", tasks, *options)
    assert "too good" in result.stderr  # it was meta-trained on these very tasks
    assert [task["task"] for task in json.loads(figures.read_text())["tasks"]] == ["bank"]


def test_tasks_that_cannot_be_replayed_are_named(dre, tasks, prior, table, tmp_path):
    other = tmp_path / "other.json"
    columns = ("--parameter", "layers", "--value", "accuracy")
    dre("import", "csv", table, *columns, "-o", other)
    result = dre("evaluate", tasks, other, "--prior", prior, "--task", "runs", *FEW, code=1)
    text = " ".join(result.stderr.split())
    assert "task 'runs' is left out: it has 3 different configurations" in text
    assert "No task could be replayed" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "picture.gif"], ".png"),
        (["-o", "no/picture.png"], "folder"),
        (["--json", "figures.txt"], ".json"),
        (["--trials", 0], "--trials"),
        (["--seeds", 0], "--seeds"),
        (["--steps", 0], "--steps"),
        (["--threads", 0], "--threads"),
        (["--task", "nope"], "'nope'"),
        (["--prior", "nope"], "'nope'"),
    ],
)
def test_wrong_options_are_named(dre, tasks, options, message):
    assert message in dre("evaluate", tasks, *options, code=1).stderr


def test_a_single_task_needs_a_prior(dre, studies, tmp_path):
    single = tmp_path / "one.json"
    dre("import", "optuna", studies, "--study", "bank", "-o", single)
    assert "--prior" in dre("evaluate", single, code=1).stderr
