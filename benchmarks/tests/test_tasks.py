"""YAHPO scenarios against the published check values, and the extract that we ship."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import optuna
import pytest

from dre_bench import extract
from dre_bench.gate import EXTRACT
from dre_bench.tasks import YahpoScenario, load_extract

REPOSITORY = Path(__file__).parents[2]
DATA = Path(os.environ.get("DRE_YAHPO_DATA", REPOSITORY.parent / "shared" / "data" / "yahpo"))

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs the full YAHPO data: DRE_YAHPO_DATA=path"
)
IMPUTATION = "num.impute.selected.cpo"


@pytest.fixture(scope="module", params=["rbv2_xgboost", "rbv2_rpart"])
def scenario(request):
    return YahpoScenario(DATA / request.param)


@pytest.fixture(scope="module")
def xgboost():
    return YahpoScenario(DATA / "rbv2_xgboost")


@needs_data
def test_check_values_xgboost(xgboost):
    outputs = xgboost.evaluate(
        16,
        {
            "booster": "gblinear",
            "alpha": 0.3129562313495207,
            "lambda": 0.0071159429343074345,
            "nrounds": 20,
            IMPUTATION: "impute.median",
            "subsample": 0.4772750629629653,
        },
    )
    expected = {"acc": 0.60576, "auc": 0.917652, "timetrain": 4.165714, "memory": 360.578552}
    assert {name: outputs[name] for name in expected} == pytest.approx(expected, rel=1e-5)


@needs_data
def test_check_values_rpart():
    outputs = YahpoScenario(DATA / "rbv2_rpart").evaluate(
        41138,
        {
            "cp": 0.01689316854161867,
            "maxdepth": 1,
            "minbucket": 15,
            "minsplit": 19,
            IMPUTATION: "impute.median",
        },
    )
    expected = {"acc": 0.888605, "logloss": 0.21896, "memory": 2913.105469}
    assert {name: outputs[name] for name in expected} == pytest.approx(expected, rel=1e-5)


@needs_data
def test_splits(scenario):
    splits = scenario.splits
    assert scenario.tasks == sorted(scenario.tasks)
    assert sorted(task for tasks in splits.values() for task in tasks) == scenario.tasks
    assert splits["test"] == scenario.tasks[::10]
    assert splits["validation"] == scenario.tasks[5::10]


@needs_data
def test_random_configurations_are_in_the_space(scenario):
    configurations = scenario.random_configurations(500, np.random.default_rng(0))
    for configuration in configurations:
        for parameter in scenario.parameters:
            assert (parameter.name in configuration) == parameter.is_active(configuration)
        for parameter in scenario.parameters:
            if parameter.name not in configuration:
                continue
            value = configuration[parameter.name]
            if parameter.choices:
                assert value in parameter.choices
            else:
                assert parameter.low <= value <= parameter.high
                assert isinstance(value, int if parameter.kind == "int" else float)


@needs_data
def test_one_and_many_agree(xgboost):
    configurations = xgboost.random_configurations(7, np.random.default_rng(1))
    many = xgboost.evaluate_many(16, configurations, trainsize=0.3)
    ones = [xgboost.evaluate(16, configuration, trainsize=0.3) for configuration in configurations]
    for name, values in many.items():
        assert values == pytest.approx([values_of[name] for values_of in ones], rel=1e-4, abs=1e-5)


@needs_data
def test_objective_suggests_active_parameters_only(xgboost):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: xgboost.objective(trial, 16), n_trials=30)
    by_booster = {trial.params["booster"]: set(trial.params) for trial in study.trials}
    assert by_booster["dart"] - by_booster["gbtree"] == {"rate_drop", "skip_drop"}
    assert {"eta", "gamma", "max_depth"} <= by_booster["gbtree"] - by_booster["gblinear"]
    assert len(by_booster["gblinear"]) == 6


@needs_data
def test_unknown_task_and_scenario(xgboost, tmp_path):
    with pytest.raises(ValueError, match="no task 5"):
        xgboost.evaluate(5, {})
    with pytest.raises(ValueError, match="unknown scenario"):
        YahpoScenario(tmp_path / "rbv2_svm")


@needs_data
def test_extract_is_reproducible(tmp_path):
    """The file in the repository is what the script makes."""
    path = tmp_path / "extract.npz"
    extract.main(["--data", str(DATA), "--out", str(path)])
    for ours, made in zip(load_extract(EXTRACT), load_extract(path), strict=True):
        assert (ours.scenario, ours.task) == (made.scenario, made.task)
        np.testing.assert_allclose(ours.values, made.values, rtol=1e-6)
        for name in ours.outputs:
            np.testing.assert_allclose(ours.outputs[name], made.outputs[name], rtol=1e-3)


def test_extract():
    samples = load_extract(EXTRACT)
    assert EXTRACT.stat().st_size <= 1024**2
    assert [sample.scenario for sample in samples] == ["rbv2_xgboost"] * 8 + ["rbv2_rpart"] * 8
    for sample in samples:
        assert sample.values.shape == (250, len(sample.parameters))
        assert sample.values.dtype == np.float32
        assert set(sample.outputs) == {"acc", "logloss", "timetrain", "memory"}
        for values in sample.outputs.values():
            assert values.shape == (250,)
            assert np.isfinite(values).all()


def test_extract_marks_inactive_parameters():
    sample = load_extract(EXTRACT)[0]
    booster = sample.values[:, sample.parameters.index("booster")]
    linear = booster == sample.choices["booster"].index("gblinear")
    assert linear.any()
    eta = sample.values[:, sample.parameters.index("eta")]
    np.testing.assert_array_equal(np.isnan(eta), linear)
    assert not np.isnan(sample.values[:, sample.parameters.index("alpha")]).any()
