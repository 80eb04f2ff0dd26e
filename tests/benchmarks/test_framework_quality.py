"""The benchmark through the frameworks' own tuners: spaces, records, and two real trials."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre_plugins.benchmarks import framework_quality, report
from dre_plugins.benchmarks.framework_quality import METHODS, Objective, active_part, method_of
from dre_plugins.benchmarks.quality import Run
from dre_plugins.benchmarks.tasks import Parameter, load_extract

REPOSITORY = Path(__file__).parents[2]
EXTRACT = REPOSITORY / "data" / "yahpo_extract.npz"
DATA = Path(os.environ.get("DRE_YAHPO_DATA", REPOSITORY.parent / "shared" / "data" / "yahpo"))

PARAMETERS = (
    Parameter("booster", "categorical", choices=("linear", "tree", "dart")),
    Parameter("alpha", "float", 1e-3, 1e3, log=True),
    Parameter("share", "float", 0.1, 1.0),
    Parameter("rounds", "int", 7, 2981, log=True),
    Parameter("eta", "float", 1e-3, 1.0, True, (), "booster", ("tree", "dart")),
    Parameter("depth", "int", 1, 3, False, (), "booster", ("tree", "dart")),
    Parameter("drop", "float", 0.0, 1.0, False, (), "booster", ("dart",)),
)
ACTIVE = {
    "linear": {"booster", "alpha", "share", "rounds"},
    "tree": {"booster", "alpha", "share", "rounds", "eta", "depth"},
    "dart": {"booster", "alpha", "share", "rounds", "eta", "depth", "drop"},
}
RUN = Run("ray:random", "rbv2_rpart", 3, 0, 2)


def is_in_range(parameter: Parameter, value: Any) -> bool:
    if parameter.choices:
        return value in parameter.choices
    return parameter.low <= value <= parameter.high


def check_domains(space: dict[str, Any]) -> None:
    """Draw from every domain: all in range, both ends of a short range, logarithms."""
    assert list(space) == [one.name for one in PARAMETERS]
    for parameter in PARAMETERS:
        values = [space[parameter.name].sample() for _ in range(200)]
        assert all(is_in_range(parameter, value) for value in values)
    assert {space["depth"].sample() for _ in range(100)} == {1, 2, 3}
    assert {space["booster"].sample() for _ in range(100)} == {"linear", "tree", "dart"}
    for name, middle in [("alpha", 1.0), ("rounds", 144), ("eta", 0.03), ("share", 0.55)]:
        below = np.mean([space[name].sample() < middle for _ in range(500)])
        assert 0.35 < below < 0.65, name


@pytest.mark.ray
def test_param_space():
    ray_quality = pytest.importorskip("dre_plugins.benchmarks.ray_quality")
    check_domains(ray_quality.param_space(PARAMETERS))


@pytest.mark.ray
def test_conditional_param_space():
    """A choice of dictionaries, in each of which only what is active has a domain."""
    ray_quality = pytest.importorskip("dre_plugins.benchmarks.ray_quality")
    space = ray_quality.conditional_param_space(PARAMETERS)
    assert set(space) == ACTIVE["linear"]
    for branch in space["booster"].categories:
        config = {name: domain.sample() for name, domain in space.items() if name != "booster"}
        config["booster"] = {
            name: value.sample() if hasattr(value, "sample") else value
            for name, value in branch.items()
        }
        flat = ray_quality.unnested(config)
        assert set(flat) == ACTIVE[flat["booster"]]
        assert active_part(PARAMETERS, flat) == flat


@pytest.mark.syne_tune
def test_config_space():
    syne_tune_quality = pytest.importorskip("dre_plugins.benchmarks.syne_tune_quality")
    check_domains(syne_tune_quality.config_space(PARAMETERS))


@pytest.mark.ray
@pytest.mark.syne_tune
def test_methods_are_those_of_the_modules():
    ray_quality = pytest.importorskip("dre_plugins.benchmarks.ray_quality")
    syne_tune_quality = pytest.importorskip("dre_plugins.benchmarks.syne_tune_quality")
    assert set(METHODS["ray"]) == set(ray_quality.SEARCHERS)
    assert set(METHODS["syne-tune"]) == {"random", "dre", *syne_tune_quality.BASELINES}


@pytest.mark.parametrize("booster", ACTIVE)
def test_active_part_of_a_flat_configuration(booster):
    configuration = {one.name: one.low for one in PARAMETERS} | {"booster": booster}
    assert set(active_part(PARAMETERS, configuration)) == ACTIVE[booster]


def test_method_of():
    def parsed(sampler: str) -> tuple[str, dict[str, Any]]:
        return method_of(Run(sampler, "rbv2_rpart", 3, 0, 2))

    assert parsed("ray:dre") == ("dre", {})
    assert parsed("ray:dre:acquisition=lcb,n_threads=2") == (
        "dre",
        {"acquisition": "lcb", "n_threads": 2},
    )
    assert parsed("syne-tune:dre:prior=shipped") == ("dre", {"prior": "decision-tree"})


class Scenario:
    """One parameter; the best value is at 0.7."""

    metric = "acc"
    parameters = (Parameter("x", "float", 0.0, 1.0),)

    def evaluate(self, task, configuration):
        return {"acc": 1.0 - (configuration["x"] - 0.7) ** 2}

    def evaluate_many(self, task, configurations):
        return {"acc": np.array([self.evaluate(task, c)["acc"] for c in configurations])}

    def random_configurations(self, n, rng):
        return [{"x": rng.uniform()} for _ in range(n)]


@pytest.mark.ray
def test_perform_writes_what_the_report_reads(tmp_path, monkeypatch):
    ray_quality = pytest.importorskip("dre_plugins.benchmarks.ray_quality")

    def tune_task(parameters, evaluate, run):
        assert parameters == Scenario.parameters
        return [evaluate({"x": x, "unknown": 3}) for x in (0.1, 0.5)], [0.1234567, 0.0]

    monkeypatch.setattr(framework_quality, "_scenario", lambda folder: Scenario())
    monkeypatch.setattr(ray_quality, "tune_task", tune_task)
    record = json.loads(json.dumps(framework_quality.perform(tmp_path, RUN)))
    assert record["values"] == pytest.approx([0.64, 0.96])
    assert record["ask_seconds"] == [0.12346, 0.0]
    assert record["warnings"] == []
    results = report.collect([record, {**record, "sampler": "ray:optuna"}])
    assert results.samplers == ("ray:random", "ray:optuna")
    assert results.regret[0, 0, 0] > results.regret[0, 0, 1] > 0


@pytest.mark.ray
def test_perform_records_an_error(tmp_path):
    pytest.importorskip("ray")
    record = framework_quality.perform(tmp_path, RUN)
    assert "FileNotFoundError" in record["error"]
    assert "values" not in record


def test_main_resumes(tmp_path, monkeypatch, capsys):
    def execute(data, runs, out):
        for run in runs:
            failed = {"error": "no"} if run.task == 11 else {"values": [0.5]}
            record = {**vars(run), **failed}
            with out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            yield record

    def plan(data, *, samplers, tasks_per_scenario, **options):
        return [Run(sampler, "rbv2_rpart", task, 0, 2) for task in (3, 11) for sampler in samplers]

    monkeypatch.setattr(framework_quality, "execute", execute)
    monkeypatch.setattr(framework_quality, "plan", plan)
    command = ["--framework", "ray", "--data", str(tmp_path), "--out", str(tmp_path / "r.jsonl")]
    with pytest.raises(SystemExit, match="1 runs failed"):
        framework_quality.main([*command, "--methods", "random"])
    assert "1/2 ray:random rbv2_rpart task 3 seed 0: best 0.5000" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="1 runs failed"):
        framework_quality.main([*command, "--methods", "random"])
    assert "1 runs to do, 1 done before" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        framework_quality.main([*command, "--methods", "random", "nonsense"])
    assert "unknown methods nonsense; known: random, optuna" in capsys.readouterr().err


def extract_task() -> tuple[tuple[Parameter, ...], Any]:
    """Return the parameters of a task of the extract, and its nearest row's accuracy."""
    sample = next(one for one in load_extract(EXTRACT) if one.scenario == "rbv2_rpart")
    low, high = np.nanmin(sample.values, axis=0), np.nanmax(sample.values, axis=0)
    choices, names = sample.choices, sample.parameters
    values, accuracy = sample.values, sample.outputs["acc"]
    parameters = tuple(
        Parameter(name, "categorical", choices=choices[name])
        if name in choices
        else Parameter(name, "float", float(low[i]), float(high[i]))
        for i, name in enumerate(names)
    )

    def evaluate(configuration: dict[str, Any]) -> float:  # local: pickled by value for Ray
        row = [
            choices[name].index(configuration[name]) if name in choices else configuration[name]
            for name in names
        ]
        distance = (((values - row) / (high - low)) ** 2).sum(1)
        return float(accuracy[distance.argmin()])

    return parameters, evaluate


def check_run(framework: str, method: str) -> None:
    module = pytest.importorskip(framework_quality.FRAMEWORKS[framework])
    parameters, evaluate = extract_task()
    run = Run(f"{framework}:{method}", "rbv2_rpart", 3, 0, 2)
    values, seconds = module.tune_task(parameters, evaluate, run)
    assert len(values) == len(seconds) == 2
    assert all(0.0 < value <= 1.0 for value in values)
    assert all(0.0 <= one < 60.0 for one in seconds)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS["ray"])
def test_two_trials_through_ray(method):
    if method == "hyperopt":
        pytest.importorskip("hyperopt")
    check_run("ray", method)


@pytest.mark.syne_tune
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS["syne-tune"])
def test_two_trials_through_syne_tune(method):
    pytest.importorskip("huggingface_hub")
    if method == "botorch":
        pytest.importorskip("botorch")
    check_run("syne-tune", method)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the full YAHPO data: DRE_YAHPO_DATA=path")
def test_objective_ignores_what_is_inactive():
    objective = Objective(DATA / "rbv2_xgboost", 16)
    linear = {
        "booster": "gblinear",
        "alpha": 0.3129562313495207,
        "lambda": 0.0071159429343074345,
        "nrounds": 20,
        "num.impute.selected.cpo": "impute.median",
        "subsample": 0.4772750629629653,
    }
    assert objective(linear) == pytest.approx(0.60576, rel=1e-5)
    assert objective({**linear, "eta": 0.3, "max_depth": 4}) == objective(linear)
