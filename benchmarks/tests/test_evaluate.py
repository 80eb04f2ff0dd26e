"""`dre-bench evaluate`: what a prior would have saved."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import optuna
import pytest

from dre_bench.replays import replay
from dre_bench.replays.words import verdict
from dre_plugins.adapters.optuna.sources import metadata_from_studies
from dre_plugins.engine.settings import PRESETS, FittingSettings, ScorerSettings
from dre_plugins.space import Integer, SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

SCORER = ScorerSettings(n_members=2, hidden=(8,))
FEW = ("--steps", 3, "--trials", 11, "--seeds", 1)


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Return the URL of a storage with three studies."""
    url = f"sqlite:///{tmp_path_factory.mktemp('studies') / 'studies.db'}"

    def objective(trial):
        rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
        booster = trial.suggest_categorical("booster", ["tree", "dart"])
        drop = trial.suggest_float("rate_drop", 0.0, 1.0) if booster == "dart" else 0.0
        return (math.log10(rate) + 2.0) ** 2 + drop

    for seed, name in enumerate(("adult", "bank", "credit")):
        study = optuna.create_study(
            storage=url, study_name=name, sampler=optuna.samplers.RandomSampler(seed=seed)
        )
        study.optimize(objective, n_trials=12)
    return url


@pytest.fixture(scope="module")
def tasks(studies, tmp_path_factory):
    """Return a file of the three studies."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.json"
    metadata_from_studies(studies).save(path)
    return path


@pytest.fixture(scope="module")
def prior(tasks, tmp_path_factory):
    """Return the file of a prior of the three studies."""
    path = tmp_path_factory.mktemp("prior") / "boosting.safetensors"
    few = MetaTrainingSettings(n_steps=3)
    Prior.train(MetaDataset.load(tasks), scorer=SCORER, settings=few).save(path)
    return path


@pytest.fixture(autouse=True)
def small_fits(monkeypatch):
    fitting = FittingSettings(n_steps=3, learning_rate=0.01)
    preset = replace(PRESETS["default"], scorer=SCORER, from_random=fitting, from_prior=fitting)
    settings = partial(replay.RecommenderSettings, preset=preset)
    monkeypatch.setattr(replay, "RecommenderSettings", settings)


def test_every_task_is_replayed(bench, tasks, tmp_path):
    picture, figures = tmp_path / "saved.png", tmp_path / "saved.json"
    result = bench("evaluate", tasks, *FEW, "-o", picture, "--json", figures)
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


def test_a_storage_is_read_like_the_file_that_import_writes(bench, tasks, studies, tmp_path):
    found = []
    for place, source in enumerate((tasks, studies)):
        figures = tmp_path / f"{place}.json"
        result = bench("evaluate", source, "--task", "bank", *FEW, "--json", figures)
        assert result.stdout.splitlines()[-1].startswith("Verdict: ")
        found.append(json.loads(figures.read_text()))
    assert found[0] == found[1]
    both = bench("evaluate", tasks, studies, "--task", "nope", *FEW, code=1).stderr
    assert "'adult', 'bank', 'credit', 'adult (2)'" in both


def test_storages_that_cannot_be_read_are_named(bench, tmp_path):
    url = f"sqlite:///{tmp_path}/empty.db"
    optuna.create_study(storage=url, study_name="empty")
    assert "no study to learn from" in bench("evaluate", url, code=1).stderr
    assert "no/such.db" in bench("evaluate", "sqlite:///no/such.db", code=1).stderr


def test_one_task_with_a_given_prior(bench, tasks, prior, tmp_path):
    figures = tmp_path / "saved.json"
    options = ("--prior", prior, "--task", "bank", *FEW, "--json", figures)
    result = bench("evaluate", tasks, *options)
    assert "too good" in result.stderr  # it was meta-trained on these very tasks
    assert [task["task"] for task in json.loads(figures.read_text())["tasks"]] == ["bank"]


def test_tasks_that_cannot_be_replayed_are_named(bench, tasks, prior, tmp_path):
    other = tmp_path / "other.json"
    space = SearchSpace({"layers": Integer(1, 3)})
    units, failed = space.canonical(np.linspace(0, 1, 9)[:, None]), np.zeros(9, dtype=bool)
    MetaDataset.of([Task("runs", space, units, np.arange(9.0), failed)], source="").save(other)
    result = bench("evaluate", tasks, other, "--prior", prior, "--task", "runs", *FEW, code=1)
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
def test_wrong_options_are_named(bench, tasks, options, message):
    assert message in bench("evaluate", tasks, *options, code=1).stderr


def test_a_single_task_needs_a_prior(bench, studies, tmp_path):
    single = tmp_path / "one.json"
    metadata_from_studies(studies, study_names=["bank"]).save(single)
    assert "--prior" in bench("evaluate", single, code=1).stderr
