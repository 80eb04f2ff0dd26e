"""Metadata from Syne Tune: a real experiment, files in its format, offline evaluations."""

import json
import math
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from marks import label_of
from readers import make_syne_tune, read_syne_tune
from syne_tune import config_space as cs
from syne_tune.backend import LocalBackend
from syne_tune.experiments import load_experiment
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving
from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
    TransferLearningTaskEvaluations,
)
from syne_tune_tuning import SPACE, TRAIN, reap, tuned

from dre_plugins.adapters.syne_tune import DRE
from dre_plugins.adapters.syne_tune.conversion import domain_of, space_of
from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments
from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, Ordinal, SearchSpace

# ---- domains

DOMAINS: list[tuple[Any, Domain]] = [
    (cs.uniform(0.5, 2), Float(0.5, 2.0)),
    (cs.uniform(1, 1), Float(1.0, 1.0)),
    (cs.loguniform(1e-4, 1), Float(1e-4, 1.0, "log")),
    (cs.reverseloguniform(0.9, 0.999), Float(0.9, 0.999, "reverse-log")),
    (cs.quniform(0, 1, 0.25), Float(0.0, 1.0, step=0.25)),
    (cs.qloguniform(0.5, 8, 0.5), Float(0.5, 8.0, "log", 0.5)),
    (cs.randint(1, 4), Integer(1, 4)),
    (cs.lograndint(1, 1000), Integer(1, 1000, "log")),
    (cs.qrandint(4, 12, 4), Integer(4, 12, step=4)),
    (cs.qrandint(3, 13, 4), Integer(4, 12, step=4)),
    (cs.qlograndint(4, 64, 4), Integer(4, 64, "log", 4)),
    (cs.choice(["b", "a"]), Categorical(("b", "a"))),
    (cs.choice([16, 32]), Ordinal((16, 32))),
    (cs.ordinal(["small", "large"]), Ordinal(("small", "large"))),
    (cs.ordinal([1, 2, 8], kind="equal"), Ordinal((1, 2, 8))),
    (cs.ordinal([1, 2, 8]), Ordinal((1, 2, 8), "linear")),
    (cs.logordinal([1, 2, 8]), Ordinal((1, 2, 8), "log")),
    (cs.finrange(0.0, 1.0, 5), Ordinal((0.0, 0.25, 0.5, 0.75, 1.0), "linear")),
    (cs.finrange(1, 3, 5, cast_int=True), Ordinal((1, 2, 3), "linear")),
    (7, Constant(7)),
    ({"nested": [1, 2]}, Constant({"nested": [1, 2]})),
]


@pytest.mark.parametrize(("domain", "expected"), DOMAINS, ids=label_of)
def test_domains_are_converted(domain: Any, expected: Domain) -> None:
    assert domain_of("x", domain) == expected


@pytest.mark.parametrize(
    "domain", [domain for domain, _ in DOMAINS if isinstance(domain, cs.Domain)], ids=label_of
)
def test_what_syne_tune_draws_is_in_the_domain(domain: Any) -> None:
    converted = domain_of("x", domain)
    for value in domain.sample(size=20, random_state=np.random.RandomState(0)):
        if isinstance(domain.get_sampler(), cs.Quantized):
            value = domain.cast(value)  # many draws at once are not cast by Syne Tune itself
            value = min(max(value, converted.from_unit(0.0)), converted.from_unit(1.0))
        assert converted.contains(value), value


def test_choices_of_numbers_can_stay_unordered() -> None:
    space = space_of({"x": cs.choice([16, 32])}, ordered=False)
    assert space == SearchSpace({"x": Categorical((16, 32))})


# ---- experiments


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run an experiment with processes of trials and return the folder of experiments."""
    folder = tmp_path_factory.mktemp("syne_tune")
    space = {**SPACE, "act": cs.choice(["relu", "tanh", "None"]), "epochs": 3, "crash": "tanh"}
    scheduler = AsynchronousSuccessiveHalving(
        space, "loss", time_attr="epoch", max_t=3, reduction_factor=2, random_seed=1
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNETUNE_FOLDER", str(folder))
        backend = LocalBackend(TRAIN, rotate_gpus=False)
        reap(tuned(scheduler, backend, 6, n_workers=2, sleep_time=0.1, tuner_name="real"))
        yield folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Syne Tune and pandas about themselves
def test_a_real_experiment_is_read(root: Path, tmp_path: Path) -> None:
    metadata = metadata_from_experiments(root / "real")
    (task,) = metadata
    assert task.name == "real" and metadata.skipped == {}
    assert task.space.domains == {
        "lr": Float(1e-4, 1.0, "log"),
        "act": Categorical(("relu", "tanh", "None")),
        "layers": Integer(1, 6),
        "epochs": Constant(3),
        "crash": Constant("tanh"),
    }
    results = load_experiment("real", local_path=str(root)).results
    assert len(task) == results.trial_id.nunique()
    found = dict(zip(results.trial_id.unique(), task.trials(), strict=True))
    for trial_id, rows in results.groupby("trial_id"):
        trial, last = found[trial_id], rows.iloc[-1]
        assert trial.configuration["lr"] == pytest.approx(last.config_lr)
        # pandas reads a float in another way, up to the last digit.
        expected = {e: -v for e, v in zip(rows.epoch, rows.loss, strict=True)}
        # A crash is in the table if it came before the last report was fetched.
        has_failed = last.st_status == "Failed"
        assert trial.rungs == pytest.approx({} if has_failed else expected)
        assert trial.value == (pytest.approx(-last.loss) if last.epoch == 3 else None)
        if trial.configuration["act"] == "tanh":  # crashed, which its missing epochs show
            assert trial.value is None
    loaded = load_experiment("real", local_path=str(root))
    for source in (str(root / "real"), "real", loaded, [root / "real"], root):
        other = metadata_from_experiments(source).tasks[0]
        np.testing.assert_array_equal(other.units, task.units)
    shutil.copytree(root / "real", tmp_path / "copied")
    together = metadata_from_experiments([root, loaded, tmp_path])
    assert [task.name for task in together] == ["real"]
    assert together.skipped == {"experiment that is given twice": 2}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Syne Tune and pandas about themselves
def test_metric_mode_and_space_can_be_stated(root: Path) -> None:
    by_loss = metadata_from_experiments(root).tasks[0]
    by_accuracy = metadata_from_experiments(root, metric="accuracy").tasks[0]
    upwards = metadata_from_experiments(root, metric="accuracy", mode="max").tasks[0]
    assert by_loss.n_complete == by_accuracy.n_complete > 0
    np.testing.assert_array_equal(by_accuracy.values, -upwards.values)
    narrowed = {"lr": cs.loguniform(0.1, 1), "act": cs.choice(["relu", "tanh", "None"])}
    task = metadata_from_experiments(root, space=narrowed).tasks[0]
    assert task.space == space_of(narrowed)
    assert task.units[:, 0].min() < 0.0  # out of the narrower range
    with pytest.raises(ValueError, match=r"metric 'speed'.*'loss'"):
        metadata_from_experiments(root, metric="speed")
    with pytest.raises(ValueError, match=r"mode.*'down'"):
        metadata_from_experiments(root, mode="down")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no folder.*nowhere"):
        metadata_from_experiments("nowhere")
    for given in (3, ""):  # not the present folder
        with pytest.raises(ValueError, match=f"source has {given!r}"):
            metadata_from_experiments([given])  # type: ignore[list-item]


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_a_folder_needs_no_home_directory(folder: str, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    with pytest.raises(ValueError, match=r"There is no (folder 'nowhere'|experiment)"):
        metadata_from_experiments(folder)


def test_a_folder_that_is_missing_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^There is no folder '[^']*missing'; check the path"):
        metadata_from_experiments(tmp_path / "missing")


def written(folder: Path, table: str, metadata: Any = None) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / "results.csv.zip", "w") as archive:
        archive.writestr("results.csv", table)
    if metadata is not None:
        (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


def test_without_metadata_the_space_is_inferred(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "old",
        "loss,st_decision,st_status,trial_id,config_x,config_kind\n"
        "0.5,CONTINUE,Completed,0,1.5,a\n,CONTINUE,InProgress,1,2.5,b\n"
        "0.25,CONTINUE,Failed,2,3.5,b\n0.125,CONTINUE,InProgress,3,0.5,a\n",
    )
    task = metadata_from_experiments(folder, metric="loss").tasks[0]
    assert task.space == SearchSpace({"x": Float(0.5, 3.5), "kind": Categorical(("a", "b"))})
    np.testing.assert_array_equal(task.values, [-0.5, math.nan, math.nan, -0.125])
    np.testing.assert_array_equal(task.failed, [False, True, True, False])
    with pytest.raises(ValueError, match=r"metric None.*'loss'"):
        metadata_from_experiments(folder)
    named_alike = written(tmp_path / "named", "config_loss,trial_id,config_x\n1,0,.5\n")
    (task,) = metadata_from_experiments(named_alike, metric="config_loss", mode="min").tasks
    assert [*task.space.domains] == ["x"]
    with pytest.raises(ValueError, match=r"space, \['y'\]; there are \['kind', 'x'\]"):
        metadata_from_experiments(folder, metric="loss", space={"y": cs.uniform(0, 1)})


def test_a_trial_whose_last_report_lacks_the_metric_counts_by_its_earlier_ones(tmp_path) -> None:
    table = "loss,size,trial_id,config_x\n3,1,0,.5\n2,1,0,.5\n,1,0,.5\n"
    folder = written(tmp_path / "old", table, {"metric_names": ["loss"]})
    (trial,) = metadata_from_experiments(folder).tasks[0].trials()
    assert (trial.value, trial.rungs) == (-2.0, {1.0: -3.0, 2.0: -2.0})


def test_a_trial_that_was_paused_and_begins_again_counts_by_its_last_run(tmp_path: Path) -> None:
    """As Syne Tune wrote it of a script without checkpoints that ended earlier the second time."""
    table = "loss,epoch,trial_id,config_x\n1,1,0,.5\n2,2,0,.5\n3,3,0,.5\n8,1,0,.5\n9,2,0,.5\n"
    named = {"metric_names": ["loss"], "scheduler_kwargs": {"time_attr": "epoch"}}
    (trial,) = metadata_from_experiments(written(tmp_path / "old", table, named)).tasks[0].trials()
    assert (trial.value, trial.rungs) == (-9.0, {1.0: -8.0, 2.0: -9.0})


@pytest.mark.parametrize(
    ("stated", "mode", "is_warned"),
    [({}, None, True), ({}, "max", False), ({"metric_mode": "max"}, None, False)],
)
def test_a_mode_that_nothing_states_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stated: Any, mode: Any, is_warned: bool
) -> None:
    table = "trial_id,config_x,loss,sane\n0,0.1,5.0,True\n1,0.2,6.0,False\n"
    folder = written(tmp_path / "old", table, {"metric_names": ["loss"], **stated})
    task = metadata_from_experiments(folder, mode=mode).tasks[0]
    assert task.values.tolist() == ([-5.0, -6.0] if is_warned else [5.0, 6.0])
    assert ("small or large values of 'loss' in 'old'" in caplog.text) is is_warned
    limited = metadata_from_experiments(folder, mode=mode, constraints={"sane": (1, 1), "size": 9})
    assert limited.tasks[0].failed.tolist() == [False, True]
    assert limited.skipped == {"limit on 'size', which an experiment does not report": 1}


def test_domains_that_the_metadata_does_not_keep_are_inferred(tmp_path: Path) -> None:
    space = {"x": cs.quniform(0, 1, 0.25), "k": cs.logordinal([1, 2, 8]), "n": cs.randint(1, 9)}
    stated = json.dumps(cs.config_space_to_json_dict(space), default=str)
    folder = written(
        tmp_path / "quantised",
        "acc,trial_id,config_x,config_k,config_n\n1,0,0.25,1,3\n2,1,0.75,8,4\n3,2,0.5,5,4\n",
        {"config_space": stated, "metric_names": ["acc"], "metric_mode": "max"},
    )
    metadata = metadata_from_experiments(folder)
    assert metadata.tasks[0].space.domains == {
        "k": Ordinal((1, 2, 8), "log"),
        "n": Integer(1, 9),
        "x": Float(0.25, 0.75),
    }
    np.testing.assert_array_equal(metadata.tasks[0].values, [1.0, 2.0])
    assert metadata.skipped == {"rows without a fitting value in 'k', such as '5'": 1}


def test_a_reversed_scale_and_tuples_are_kept(tmp_path: Path) -> None:
    """Syne Tune itself states another scale, and lists in place of the tuples of the table."""
    space = {"x": cs.reverseloguniform(0.5, 0.99), "t": cs.choice([(1, 2), (3,)])}
    table = 'loss,trial_id,config_x,config_t\n1,0,0.9,"(1, 2)"\n2,1,0.8,"(3,)"\n'
    folder = written(tmp_path / "new", table, DRE(space, "loss").metadata())
    (task,) = metadata_from_experiments(folder)
    tuples = Categorical(([1, 2], [3]))
    assert task.space.domains == {"x": Float(0.5, 0.99, "reverse-log"), "t": tuples}
    assert [trial.configuration["t"] for trial in task.trials()] == [[1, 2], [3]]


def test_an_experiment_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    table = "loss,trial_id,config_x,config_k\n0.5,0,1.5,a\n,1,2.5,b\n"
    named = {"metric_names": ["loss"], "metric_mode": ["max"]}
    for name, lines in (("one", table), ("other", table.replace("0.5", "0.6"))):
        folder = written(tmp_path / name, lines, named)
    shutil.copytree(tmp_path / "one", tmp_path / "copy of one")
    metadata = metadata_from_experiments([tmp_path, folder])
    assert [task.name for task in metadata] == ["copy of one", "other"]
    assert metadata.skipped == {"experiment that is given twice": 2}


def test_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    table = "loss,trial_id,config_x\n0.5,0,1.5\n"
    named = {"metric_names": ["loss"], "metric_mode": ["max"]}
    written(tmp_path / "good", table, named)
    written(tmp_path / "header", table.splitlines()[0], named)
    written(tmp_path / "other", table.replace("loss", "error"), named)
    cut = written(tmp_path / "cut", table, named) / "results.csv.zip"
    cut.write_bytes(cut.read_bytes()[:-30])
    written(tmp_path / "broken", table, named)
    (tmp_path / "broken" / "metadata.json").write_text('{"metric_names"')
    written(tmp_path / "list", table, [named])
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "metadata.json").write_text("{}")
    metadata = metadata_from_experiments(tmp_path)
    assert [task.name for task in metadata] == ["good"]
    np.testing.assert_array_equal(metadata.tasks[0].values, [0.5])
    reasons = " ".join(metadata.skipped)
    assert len(metadata.skipped) == 6 and "empty study" in reasons
    for name in ("'cut'", "'broken'", "'list'", "'none'", "'other' without the metric 'loss'"):
        assert name in reasons


# ---- offline evaluations


def evaluations(values: Any, **arguments: Any) -> TransferLearningTaskEvaluations:
    n = len(values)
    return TransferLearningTaskEvaluations(
        **{
            "configuration_space": {
                "lr": cs.loguniform(1e-3, 1),
                "units": cs.logfinrange(16, 128, 4, cast_int=True),
                "epochs": 3,
            },
            "hyperparameters": pd.DataFrame(
                {"lr": [0.1] * n, "units": ([16, 32, 64, 128] * n)[:n], "epochs": 3}
            ),
            "objectives_names": ["loss", "accuracy"],
            "objectives_evaluations": np.asarray(values, dtype=float),
            **arguments,
        }
    )


def test_offline_evaluations_become_tasks_with_rungs() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 3, 4, 2))
    values[0, 1] = np.nan  # a seed that is missing
    values[1, :, -2:] = np.nan  # stopped early
    values[2] = np.nan  # crashed
    values[3, :, :, 1] = np.inf
    values[4, 0, -1, 1], values[4, 1, -1, 1] = np.inf, -np.inf
    source = {"iris": evaluations(values), "wine": evaluations(values[:1])}
    metadata = metadata_from_experiments(source, metric="accuracy", mode="max")
    iris, wine = metadata
    assert (iris.name, wine.name, len(wine)) == ("iris", "wine", 1)
    assert iris.space == SearchSpace(
        {
            "lr": Float(1e-3, 1.0, "log"),
            "units": Ordinal((16, 32, 64, 128), "log"),
            "epochs": Constant(3),
        }
    )
    assert iris.counts() == {"complete": 2, "pruned": 2, "failed": 1}
    assert iris.values[0] == pytest.approx(values[0, [0, 2], -1, 1].mean())
    assert iris.values[3] == math.inf
    assert [*iris.rungs] == [1.0, 2.0, 3.0]
    assert iris.rungs[2.0][1] == pytest.approx(values[1, :, 1, 1].mean())
    limited = metadata_from_experiments(source, constraints={"accuracy": -9.0}).tasks[0]
    assert limited.failed.tolist() == [True, True, True, True, False]  # unknown: inf - inf
    downwards = metadata_from_experiments(source).tasks[0]
    assert downwards.values[0] == pytest.approx(-values[0, [0, 2], -1, 0].mean())
    source = {"t": evaluations(np.arange(4.0).reshape(2, 1, 1, 2))}  # one fidelity
    task = metadata_from_experiments(source).tasks[0]
    assert task.n_complete == 2 and task.rungs == {}
    limited = metadata_from_experiments(source, constraints={"accuracy": 1.0}).tasks[0]
    assert limited.failed.tolist() == [False, True]


def test_offline_evaluations_that_cannot_be_used_are_counted() -> None:
    good = evaluations(np.ones((2, 1, 1, 2)))
    nested = evaluations(
        np.ones((1, 1, 1, 2)),
        configuration_space={"model": {"lr": cs.uniform(0, 1)}},
        hyperparameters=pd.DataFrame({"model": [0.1]}),
    )
    empty = evaluations(np.ones((0, 1, 1, 2)))
    strange = evaluations(
        np.ones((2, 1, 1, 2)), hyperparameters=pd.DataFrame({"lr": [0.1, 0.2], "units": [17, 16]})
    )
    metadata = metadata_from_experiments(
        {"good": good, "nested": nested, "empty": empty, "strange": strange}
    )
    assert [(task.name, len(task)) for task in metadata] == [("good", 2), ("strange", 1)]
    assert metadata.skipped["empty study"] == 1
    assert metadata.skipped["rows without a fitting value in 'units', such as 17"] == 1
    assert any("'nested'" in reason and "'model'" in reason for reason in metadata.skipped)
    with pytest.raises(ValueError, match=r"metric 'speed'.*'accuracy'"):
        metadata_from_experiments({"good": good}, metric="speed")


@pytest.mark.parametrize(
    "state",
    [
        {"domain_cls": "FiniteRange", "domain_kwargs": {"lower": 0, "upper": 1, "size": 10**11}},
        {"domain_cls": "copy", "domain_kwargs": {"x": 1}},
        {"domain_cls": "sys", "domain_kwargs": {}},
        {"domain_cls": ["Float"], "domain_kwargs": {}},
        {"domain_cls": "Float", "domain_kwargs": {}, "sampler_cls": "_class__"},
    ],
    ids=str,
)
def test_domains_of_an_experiment_name_domains(tmp_path: Path, state: dict[str, Any]) -> None:
    folder = tmp_path / "experiment"
    make_syne_tune(folder)
    file = folder / "metadata.json"
    stated = json.loads(file.read_text())
    file.write_text(json.dumps({**stated, "config_space": json.dumps({"m": state})}))
    (task,) = read_syne_tune(folder).tasks
    assert len(task) and set(task.space.domains) == {"lr", "n", "m"}  # inferred from the table
