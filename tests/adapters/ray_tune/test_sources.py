"""Metadata from Ray Tune: a real run, in memory and on disk, and folders in its format."""

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray import tune

from dre_plugins.adapters.ray_tune.arguments import past_metadata
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.history import ResultReader
from dre_plugins.adapters.ray_tune.sources import metadata_from_results
from dre_plugins.space import (
    Categorical,
    Float,
    Integer,
    Ordinal,
    SearchSpace,
    UnsupportedDomainError,
)

# ---- a real run

SPACE = {"opt": {"lr": tune.choice([0.1, 0.2]), "fn": len}, "layers": tune.choice([(8, 4)])}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Run four trials: one ends well, one is stopped, one crashes, one gives NaN."""
    import ray

    def trainable(config: dict[str, Any]) -> None:
        for step in range(1, 5):
            if config["kind"] == "crash" and step == 3:
                raise RuntimeError("out of memory")
            loss = math.nan if config["kind"] == "nan" else 1.0 / step
            tune.report({"loss": loss, "nested": {"accuracy": step}})

    class Stopper(tune.Stopper):
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return result["config"]["kind"] == "bad" and result["training_iteration"] >= 2

        def stop_all(self) -> bool:
            return False

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield tune.Tuner(
        trainable,
        param_space={**SPACE, "kind": tune.grid_search(["good", "bad", "crash", "nan"])},
        run_config=tune.RunConfig(
            storage_path=str(tmp_path_factory.mktemp("ray")),
            name="real",
            stop=Stopper(),
            verbose=0,
        ),
    ).fit()
    ray.shutdown()


def assert_real(metadata: Any) -> None:
    (task,) = metadata
    assert task.name == "real" and metadata.skipped == {}
    assert set(task.space.domains) == {"opt/lr", "layers", "kind"}
    trials = {trial.configuration["kind"]: trial for trial in task.trials()}
    assert trials["good"].value == -0.25
    assert trials["good"].rungs == {1.0: -1.0, 2.0: -0.5, 3.0: -1.0 / 3, 4.0: -0.25}
    assert trials["bad"].value is None
    assert trials["bad"].rungs == {1.0: -1.0, 2.0: -0.5}
    assert task.counts() == {"complete": 1, "pruned": 1, "failed": 2}


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.filterwarnings("ignore")
def test_a_real_run_is_the_same_in_memory_and_on_disk(grid: Any, tmp_path: Path) -> None:
    folder = Path(grid.experiment_path)
    analysis = tune.ExperimentAnalysis(folder, default_metric="loss", default_mode="min")
    for source in (grid, folder, str(folder), folder.parent, [folder], analysis):
        assert_real(metadata_from_results(source, metric="loss", mode="min"))
    assert_real(metadata_from_results(analysis))
    copied = shutil.copytree(folder, tmp_path / "copied")
    together = metadata_from_results([grid, folder, analysis, copied], metric="loss", mode="min")
    assert [task.name for task in together] == ["real"]
    assert together.skipped == {"experiment that is given twice": 3}


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.filterwarnings("ignore")
def test_a_real_run_with_its_space_and_a_nested_metric(grid: Any) -> None:
    space = {**SPACE, "kind": tune.choice(["good", "bad", "crash", "nan"])}
    for source in (grid, grid.experiment_path):
        metadata = metadata_from_results(source, metric="nested/accuracy", mode="max", space=space)
        task = metadata.tasks[0]
        assert task.space == ParamSpace.of_results(space).space
        assert not np.isnan(task.units).any()
        assert sorted(task.values[~np.isnan(task.values)]) == [4.0, 4.0]
    with pytest.raises(ValueError, match=r"needs metric and mode.*'loss', 'nested/accuracy'"):
        metadata_from_results(grid)
    with pytest.raises(ValueError, match=r"metric 'speed'.*'nested/accuracy'"):
        metadata_from_results(grid, metric="speed", mode="min")


# ---- folders in Ray's format

READER = ResultReader.of("loss", "min")


def written(
    folder: Path,
    name: str,
    params: Any,
    reports: list[dict[str, Any]],
    state: str | None = "TERMINATED",
) -> Path:
    trial = folder / name
    trial.mkdir(parents=True)
    (trial / "params.json").write_text(json.dumps(params))
    (trial / "result.json").write_text("".join(json.dumps(report) + "\n" for report in reports))
    states = folder / "experiment_state-2026-01-01_00-00-00.json"
    data = json.loads(states.read_text())["trial_data"] if states.exists() else []
    if state is not None:
        results = "{}" if state != "STOPPED" else '{"last_result": {}}'
        status = state if state != "STOPPED" else "TERMINATED"
        data.append([json.dumps({"relative_logdir": name, "status": status}), results])
        states.write_text(json.dumps({"trial_data": data}))
    return trial


def report(loss: float, iteration: int = 1, done: bool = False) -> dict[str, Any]:
    return {"loss": loss, "training_iteration": iteration, "done": done}


def test_spaces_are_inferred_without_objects(tmp_path: Path) -> None:
    params = {"x": 0.5, "n": 3, "fn": "<function f at 0x7f>", "m": {"on": True, "data": ["<a>"]}}
    written(tmp_path, "a", {**params, "__trial_index__": 1}, [report(1.0)])  # of a Repeater
    written(tmp_path, "b", {**params, "x": 0.75, "n": 5, "m": {"on": False}}, [report(2.0)])
    task = metadata_from_results(tmp_path, metric="loss", mode="max").tasks[0]
    assert task.space == SearchSpace(
        {"x": Float(0.5, 0.75), "n": Integer(3, 5), "m/on": Categorical((True, False))}
    )
    np.testing.assert_array_equal(task.values, [1.0, 2.0])


def test_dictionaries_in_lists_are_read_without_a_space(tmp_path: Path) -> None:
    for place in range(6):
        params = {"l": [place / 5, {"n": place}], "plain": [1, place % 2]}
        written(tmp_path, f"{place}", params, [report(place)])
    task = metadata_from_results(tmp_path, metric="loss", mode="min").tasks[0]
    assert task.space == SearchSpace(
        {"l/0": Float(0.0, 1.0), "l/1/n": Integer(0, 5), "plain": Categorical(([1, 0], [1, 1]))}
    )


def test_parameters_in_lists_are_read_by_their_places(tmp_path: Path) -> None:
    for place in range(6):
        written(tmp_path, f"{place}", {"l": [place / 5, "same", {"n": place}]}, [report(place)])
    space = ParamSpace.of({"l": [tune.uniform(0, 1), "same", {"n": tune.randint(0, 10)}]})
    task = past_metadata(str(tmp_path), READER, space).tasks[0]
    assert task.space == space.space
    np.testing.assert_array_equal(task.units[:, 0], np.arange(6) / 5)


def test_a_parameter_that_cannot_be_read_leaves_the_domains_of_the_others(tmp_path: Path) -> None:
    """An object, a parameter that is new, and one that had choices of another kind."""
    for place in range(6):
        params = {"rate": 0.1 + place / 100, "units": 2**place, "fn": "<function f at 0x7f>"}
        written(tmp_path, f"{place}", {**params, "kind": place % 2, "old": place}, [report(place)])
    space = {"rate": tune.loguniform(1e-5, 1), "units": tune.choice([1, 2, 4, 8, 16, 32, 64])}
    space |= {"fn": tune.choice([len, max]), "drop": tune.uniform(0, 1)}
    space |= {"kind": tune.choice(["a", "b"])}
    param_space = ParamSpace.of(space)
    task = past_metadata(str(tmp_path), READER, param_space).tasks[0]
    shared = {name: param_space.space.domains[name] for name in ("rate", "units")}
    assert shared["units"] == Ordinal((1, 2, 4, 8, 16, 32, 64))
    assert task.space.domains == {**shared, "kind": Integer(0, 1), "old": Integer(0, 5)}


def test_a_given_space_may_have_choices_of_dictionaries(tmp_path: Path) -> None:
    """Branches that differ in the range of a key have parameters of their own.

    A key of the user may look like the name of such a parameter.
    """
    sgd = {"name": "sgd", "lr": tune.uniform(0, 1), "m": {"k": tune.uniform(0, 1)}}
    sgd["m[1]"] = {"k": tune.uniform(0, 1)}
    adam = {"name": "adam", "lr": tune.uniform(0, 9)}
    configs = [
        {"name": "sgd", "lr": 0.5, "m": {"k": 0.25}, "m[1]": {"k": 0.75}},
        {"name": "adam", "lr": 4.5},
    ]
    for place, opt in enumerate(configs):
        written(tmp_path, f"{place}", {"opt": opt}, [report(place)])
    space = {"opt": tune.choice([sgd, adam])}
    metadata = metadata_from_results(tmp_path, metric="loss", mode="min", space=space)
    param_space, (task,) = ParamSpace.of(space), metadata
    assert task.space == param_space.space and not metadata.skipped
    found = [param_space.to_config(trial.configuration)["opt"] for trial in task.trials()]
    assert found == configs
    (task,) = past_metadata(str(tmp_path), READER, param_space)
    assert task.space.domains == param_space.space.domains
    found = [param_space.to_config(trial.configuration)["opt"] for trial in task.trials()]
    assert found == configs


def test_what_the_tuner_draws_is_no_parameter() -> None:
    drawn = tune.sample_from(lambda spec: 3)
    param_space = ParamSpace.of_results({"x": tune.uniform(0, 1), "model": {"n": drawn}})
    assert param_space.space.names == ("x",)


def test_states_come_from_the_newest_file_that_has_them(tmp_path: Path) -> None:
    """The runs of an experiment of one name share a folder; of each, Ray writes a file."""
    for name in ("TERMINATED", "ERROR", "RUNNING", "PAUSED"):
        written(tmp_path, name, {"x": 0.5}, [report(1.0, 2 if name == "PAUSED" else 1)], name)
    written(tmp_path, "silent", {"x": 0.5}, [report(math.nan), {"speed": 3.0}], "RUNNING")
    written(tmp_path, "stopped", {"x": 0.5}, [], "STOPPED")
    written(tmp_path, "error", {"x": 0.5}, [report(1.0)], None)
    (tmp_path / "error" / "error.txt").write_text("out of memory")
    written(tmp_path, "unknown", {"x": 0.5}, [], None)
    metadata = metadata_from_results(tmp_path, metric="loss", mode="max")
    assert metadata.tasks[0].counts() == {"complete": 2, "pruned": 1, "failed": 3}
    assert metadata.skipped == {"unfinished trial": 2}
    assert len(metadata_from_results(tmp_path, metric="training_iteration", mode="min")) == 1
    for content in ('{"trial_data": []}', '{"trial_data": [["{", 1]]}'):
        (tmp_path / "experiment_state-2026-01-02.json").write_text(content)
        again = metadata_from_results(tmp_path, metric="loss", mode="max")
        assert again.tasks[0].counts() == metadata.tasks[0].counts()


def test_a_failed_trial_that_was_replaced_does_not_count(tmp_path: Path) -> None:
    """As `Tuner.restore(restart_errored=True)` writes it: a new record without the old trial."""
    written(tmp_path, "crashed", {"x": 0.5}, [report(3.0)])
    written(tmp_path, "good", {"x": 0.75}, [report(2.0)])
    written(tmp_path, "new", {"x": 0.5}, [report(1.0)])
    for day, states in ((1, {"crashed": 0.5, "good": 0.75}), (2, {"new": 0.5, "good": 0.75})):
        trials = [
            {"relative_logdir": name, "config": {"x": x}, "status": "TERMINATED"}
            | ({"status": "ERROR"} if name == "crashed" else {})
            for name, x in states.items()
        ]
        data = json.dumps({"trial_data": [[json.dumps(trial), "{}"] for trial in trials]})
        (tmp_path / f"experiment_state-2026-01-0{day}_00-00-00.json").write_text(data)
    task = metadata_from_results(tmp_path, metric="loss", mode="max").tasks[0]
    np.testing.assert_array_equal(np.sort(task.values), [1.0, 2.0])


def test_trials_without_files_have_the_last_reports_of_the_record(tmp_path: Path) -> None:
    """As with TUNE_DISABLE_AUTO_CALLBACK_LOGGERS=1."""
    pickled = {"_type": "CLOUDPICKLE_FALLBACK", "value": "80"}
    states = [("TERMINATED", report(1.0, 3, True)), ("TERMINATED", report(2.0, 2, True))]
    states += [("ERROR", report(3.0)), ("ERROR", {}), ("RUNNING", report(4.0)), ("PENDING", {})]
    data = []
    for place, (status, last) in enumerate(states):
        config = {"net": {"x": place / 8}, "act": pickled, "acts": [pickled]}
        trial = {"relative_logdir": f"t{place}", "status": status, "config": config}
        data.append([json.dumps(trial), json.dumps({"last_result": {**last, "fn": pickled}})])
    data[3][1] = data[5][1] = '{"last_result": {}}'
    (tmp_path / "experiment_state-2026.json").write_text(json.dumps({"trial_data": data}))
    metadata = metadata_from_results(tmp_path, metric="loss", mode="min")
    assert set(metadata.tasks[0].space.domains) == {"net/x"} and metadata.skipped == {}
    trials = {trial.configuration["net/x"]: trial for trial in metadata.tasks[0].trials()}
    assert metadata.tasks[0].counts() == {"complete": 1, "pruned": 2, "failed": 2}
    assert trials[0.0].value == -1.0 and trials[0.125].rungs == {2.0: -2.0}


def test_a_metric_that_is_reported_now_and_then_has_a_final_value(tmp_path: Path) -> None:
    other = {"speed": 3.0, "training_iteration": 3, "done": True}
    crashed = [report(5.0), report(6.0, 2), report(7.0, 3)]  # before it began again
    written(tmp_path, "a", {"x": 0.5}, [*crashed, report(1.0), report(2.0, 2), other])
    written(tmp_path, "b", {"x": 0.75}, [report(1.0), {"loss": math.nan, "done": False}])
    task = metadata_from_results(tmp_path, metric="loss", mode="min").tasks[0]
    np.testing.assert_array_equal(task.values, [-2.0, math.nan])
    np.testing.assert_array_equal(task.failed, [False, True])
    for limit, has_failed in ((3.0, False), (2.5, True)):  # of the last report
        limited = metadata_from_results(
            tmp_path, metric="loss", mode="min", constraints={"speed": limit, "size": 1.0}
        )
        assert limited.skipped == {"limit on 'size', which an experiment does not report": 1}
        assert limited.tasks[0].failed.tolist() == [has_failed, True]


def test_values_that_do_not_fit_a_given_space_are_counted(tmp_path: Path) -> None:
    for name, value in (("a", [8, 4]), ("b", [4]), ("c", "big")):
        written(tmp_path, name, {"layers": value}, [report(1.0)])
    space = {"layers": tune.choice([(8, 4), (4,)])}
    metadata = metadata_from_results(tmp_path, metric="loss", mode="min", space=space)
    found = [trial.configuration["layers"] for trial in metadata.tasks[0].trials()]
    assert found == [(8, 4), (4,)]
    assert metadata.skipped == {"trials without a fitting 'layers', such as 'big'": 1}


def test_a_space_of_no_trial_is_an_error_and_of_some_tasks_leaves_the_others_out(tmp_path) -> None:
    written(tmp_path / "one", "a", {"model": {"lr": 0.1}}, [report(1.0)])
    written(tmp_path / "two", "b", {"depth": 3}, [report(1.0)])
    options: dict[str, Any] = {"metric": "loss", "mode": "min"}
    with pytest.raises(ValueError, match=r"space, \['lr'\]; there are \['depth', 'model/lr'\]"):
        metadata_from_results(tmp_path, space={"lr": tune.uniform(0, 1)}, **options)
    metadata = metadata_from_results(tmp_path, space={"depth": tune.randint(1, 9)}, **options)
    assert [task.name for task in metadata] == ["two"]
    assert metadata.skipped == {"task without a parameter of the space": 1}


def test_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    written(tmp_path / "one", "good", {"x": 0.5}, [report(1.0)])
    cut = written(tmp_path / "one", "cut", {"x": 0.5}, [report(1.0), report(2.0, 2)])
    text = (cut / "result.json").read_text()
    (cut / "result.json").write_text(text[:-10])  # the last line was not finished
    bad = written(tmp_path / "one", "bad", {"x": 0.5}, [report(1.0), report(2.0)])
    (bad / "result.json").write_text(text[10:])
    (written(tmp_path / "one", "worse", {}, []) / "params.json").write_text('{"x": 0.')
    written(tmp_path / "two", "empty", {"x": 0.5}, [], "PENDING")
    metadata = metadata_from_results(tmp_path, metric="loss", mode="max")
    assert [task.name for task in metadata] == ["one"]
    np.testing.assert_array_equal(np.sort(metadata.tasks[0].values), [1.0, 1.0])
    assert metadata.skipped["empty study"] == 1
    assert metadata.skipped["unfinished trial"] == 1
    assert [reason for reason in metadata.skipped if "bad" in reason]
    assert [reason for reason in metadata.skipped if "worse" in reason]


def test_an_experiment_that_is_given_twice_counts_once(tmp_path: Path, monkeypatch) -> None:
    for loss, folder in enumerate(("one", "two")):
        written(tmp_path / folder, "a", {"x": 0.5}, [report(loss)])
    shutil.copytree(tmp_path / "one", tmp_path / "zero")
    monkeypatch.chdir(tmp_path)
    sources = [tmp_path, str(tmp_path / "one"), Path("two")]
    metadata = metadata_from_results(sources, metric="loss", mode="max")
    assert [task.name for task in metadata] == ["one", "two"]
    assert metadata.skipped == {"experiment that is given twice": 3}


def test_a_pickle_in_a_folder_is_not_loaded(tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "harm"),)

    import pickle

    trial = written(tmp_path, "a", {"x": 0.5}, [report(1.0)])
    for name in ("params.pkl", "error.pkl"):
        (trial / name).write_bytes(pickle.dumps(Harm()))
    (tmp_path / "tuner.pkl").write_bytes(pickle.dumps(Harm()))
    fallback = {"_type": "CLOUDPICKLE_FALLBACK", "value": pickle.dumps(Harm()).hex()}
    state = {"relative_logdir": "a", "status": "TERMINATED", "config": fallback}
    states = {"trial_data": [[json.dumps(state), "{}"]], "runner_data": fallback}
    (tmp_path / "experiment_state-2026-01-03.json").write_text(json.dumps(states))
    metadata = metadata_from_results(tmp_path, metric="loss", mode="max")
    assert len(metadata.tasks[0]) == 1
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"results": "nowhere"}, r"no folder 'nowhere'"),
        ({"results": "~no-user/x"}, r"no folder '~no-user/x'"),
        ({"results": [3]}, r"results has 3"),
        ({"results": ""}, r"results has ''"),  # not the present folder
        ({"mode": "down"}, r"mode.*'down'"),
        ({"mode": None}, r"needs metric and mode, got 'loss' and None"),
        ({"metric": None}, r"needs metric and mode.*\['loss'\]"),
        ({"metric": "speed"}, r"metric 'speed'.*\['loss'\]"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments: dict[str, Any], message: str) -> None:
    written(tmp_path, "a", {"x": 0.5}, [{**report(1.0), "config": {"x": 0.5}}])
    arguments = {"results": tmp_path, "metric": "loss", "mode": "min", **arguments}
    with pytest.raises(ValueError, match=message):
        metadata_from_results(arguments.pop("results"), **arguments)


@pytest.mark.parametrize(
    "entry",
    [[tune.uniform(0, 1)], tune.choice([{"lr": tune.uniform(0, 1)}])],
    ids=["list", "choice"],
)
def test_other_domains_are_refused_by_name(entry: Any) -> None:
    with pytest.raises(UnsupportedDomainError, match=r"'model/x'.* Leave the space out"):
        ParamSpace.of_results({"model": {"x": entry}})
    with pytest.raises(UnsupportedDomainError, match="'model/a/b'"):
        ParamSpace.of_results({"model": {"a/b": 1}})
