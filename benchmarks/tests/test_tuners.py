"""Searchers through the frameworks' own tuners: spaces, records, and two real trials."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import Any

import hill
import numpy as np
import pytest

from dre_bench import runs
from dre_bench.problems import catalogue
from dre_bench.problems.catalogue import PROBLEMS
from dre_bench.problems.tuners import Objective, active_part, method_of
from dre_bench.runs import Run, Sources
from dre_bench.suites import SUITES
from dre_bench.tasks import Parameter

REPOSITORY = Path(__file__).parents[2]
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


def is_in_range(parameter: Parameter, value: Any) -> bool:
    if parameter.choices:
        return value in parameter.choices
    return parameter.low <= value <= parameter.high


def check_domains(space: dict[str, Any]) -> None:
    """Draw from every domain: all in range, both ends of a short range, logarithms."""
    assert list(space) == [parameter.name for parameter in PARAMETERS]
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
    ray_tuner = pytest.importorskip("dre_bench.problems.ray_tuner")
    check_domains(ray_tuner.param_space(PARAMETERS))


@pytest.mark.syne_tune
def test_config_space():
    syne_tune_tuner = pytest.importorskip("dre_bench.problems.syne_tune_tuner")
    check_domains(syne_tune_tuner.config_space(PARAMETERS))


@pytest.mark.ray
@pytest.mark.syne_tune
def test_samplers_are_those_of_the_modules():
    ray_tuner = pytest.importorskip("dre_bench.problems.ray_tuner")
    syne_tune_tuner = pytest.importorskip("dre_bench.problems.syne_tune_tuner")
    assert {*PROBLEMS["ray"].samplers} == {*ray_tuner.SEARCHERS}
    assert {*PROBLEMS["syne-tune"].samplers} == {"random", "dre", *syne_tune_tuner.BASELINES}


@pytest.mark.parametrize("booster", ACTIVE)
def test_active_part_of_a_flat_configuration(booster):
    configuration = {parameter.name: parameter.low for parameter in PARAMETERS} | {
        "booster": booster
    }
    assert set(active_part(PARAMETERS, configuration)) == ACTIVE[booster]


def test_method_of():
    def parsed(sampler: str) -> tuple[str, dict[str, Any]]:
        return method_of(Run(sampler, "rbv2_rpart", 3, 0, 2))

    assert parsed("dre") == ("dre", {})
    assert parsed("dre:acquisition=ei,n_threads=2") == (
        "dre",
        {"acquisition": "ei", "n_threads": 2},
    )
    assert parsed("dre:prior=shipped") == ("dre", {"prior": "decision-tree"})


def check_run(problem: str, sampler: str) -> None:
    run = Run(sampler, hill.NAME, 3, 0, 2, problem)
    record = runs.perform(catalogue.study, Sources(), run)
    assert "error" not in record, record["error"]
    assert len(record["values"]) == len(record["ask_seconds"]) == 2
    assert all(0.0 < value <= 1.0 for value in record["values"])
    assert all(0.0 <= seconds < 60.0 for seconds in record["ask_seconds"])
    assert record["reference"]["median"] < record["reference"]["best"] <= 1.0


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sampler", PROBLEMS["ray"].samplers)
def test_two_trials_through_ray(sampler, monkeypatch):
    pytest.importorskip("ray")
    if sampler == "hyperopt":
        pytest.importorskip("hyperopt")
    # Ray's workers find the scenario by its import path.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    check_run("ray", sampler)


@pytest.mark.syne_tune
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sampler", PROBLEMS["syne-tune"].samplers)
def test_two_trials_through_syne_tune(sampler):
    pytest.importorskip("huggingface_hub")
    if sampler == "botorch":
        pytest.importorskip("botorch")
    check_run("syne-tune", sampler)


@pytest.mark.parametrize("problem", ["ray", "syne-tune"])
def test_an_unknown_searcher_is_said(problem):
    pytest.importorskip(problem.replace("-", "_"))
    record = runs.perform(catalogue.study, Sources(), Run("unheard", hill.NAME, 3, 0, 2, problem))
    assert "unknown sampler 'unheard'; known: random" in record["error"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_names_of_a_problems_samplers_are_known_before_they_run(problem):
    for framework in catalogue.FRAMEWORKS.get(problem, ()):
        pytest.importorskip(framework)
    suites = [suite.samplers or () for suite in SUITES.values() if problem in suite.problems]
    paths = ["optuna.samplers.CmaEsSampler", "dre_bench.rivals.random_search.Random"]
    for sampler in chain(PROBLEMS[problem].samplers, paths, *suites):
        catalogue.check_samplers([Run(sampler, hill.NAME, 3, 0, 2, problem)])
    with pytest.raises(ValueError, match=f"'unheard' of {problem}; known: [a-z]"):
        catalogue.check_samplers([Run("unheard:n=1", hill.NAME, 3, 0, 2, problem)])


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the full YAHPO data: DRE_YAHPO_DATA=path")
def test_objective_ignores_what_is_inactive():
    objective = Objective(Sources(data=DATA), "rbv2_xgboost", 16)
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
