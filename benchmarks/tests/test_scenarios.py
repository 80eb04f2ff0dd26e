"""Scenarios by name, synthetic functions, and suites."""

import math
import sys

import numpy as np
import pytest

from dre_bench.conditional import CONDITIONAL
from dre_bench.names import entry_of
from dre_bench.runs import Sources
from dre_bench.scenarios import scenario_of
from dre_bench.suites import ALL, SUITES
from dre_bench.synthetic import OWN, PUBLISHED, VALUE, synthetic_scenario
from dre_bench.tasks import SCENARIOS, Scenario

# Where the published functions have an optimum, and its value with the sign turned.
OPTIMA = {
    "branin": ((math.pi, 2.275), -0.397887),
    "hartmann6": ((0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), 3.32237),
    "ackley5": ((0.0,) * 5, 0.0),
    "levy8": ((1.0,) * 8, 0.0),
    "rosenbrock5": ((1.0,) * 5, 0.0),
}
OWN_OPTIMA = {
    "bowl": ({**{f"x{place}": 1.0 for place in range(5)}, "kind": "b", "n": 10}, 0.0),
    "sinusoid": ({"x": math.pi * 2}, math.sin(1.5 * math.pi)),
    "mixed": ({"rate": 0.01, "depth": 7, "share": 0.8, "kind": "b"}, 0.0),
    "branches": ({"branch": "deep", "rate": 10**-2.5, "width": 0.6}, 0.0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_functions_have_their_optima(name: str) -> None:
    pytest.importorskip("botorch")
    point, best = OPTIMA[name]
    configuration = {f"x{place}": value for place, value in enumerate(point)}
    assert synthetic_scenario(name).value(0, configuration) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("name", OWN)
def test_own_functions_have_their_optima(name: str) -> None:
    scenario = synthetic_scenario(name)
    configuration, value = OWN_OPTIMA[name]
    assert scenario.value(0, configuration) == pytest.approx(value, abs=1e-12)
    sample = scenario.random_configurations(2000, np.random.default_rng(0))
    values = scenario.evaluate_many(0, sample)[VALUE]
    best = 1.0 if name == "sinusoid" else 0.0
    near = 20.0 if name == "bowl" else 0.5  # seven parameters, and a range of 180
    assert best - near < values.max() <= best and np.isfinite(values).all()


def test_the_best_branch_is_the_worst_for_most_of_its_configurations() -> None:
    scenario = synthetic_scenario("branches")
    sample = scenario.random_configurations(3000, np.random.default_rng(0))
    values = scenario.evaluate_many(0, sample)[VALUE]
    branch = np.array([configuration["branch"] for configuration in sample])
    medians = {name: np.median(values[branch == name]) for name in ("linear", "tree", "deep")}
    assert min(medians, key=medians.__getitem__) == "deep"


def test_tasks_are_shifted_copies() -> None:
    scenario = synthetic_scenario("mixed")
    grid = [
        {"rate": float(rate), "depth": 7, "share": 0.8, "kind": "b"}
        for rate in np.logspace(-5, 0, 501)
    ]
    best = [
        grid[int(scenario.evaluate_many(task, grid)[VALUE].argmax())]["rate"] for task in range(5)
    ]
    assert best[0] == pytest.approx(0.01, rel=0.03) and len(set(best)) == 5
    assert all(abs(math.log10(rate) + 2.0) <= 0.55 for rate in best)  # a tenth of five decades
    configurations = scenario.random_configurations(50, np.random.default_rng(0))
    first, second = (scenario.evaluate_many(3, configurations)[VALUE] for _ in range(2))
    assert np.array_equal(first, second)
    with pytest.raises(ValueError, match="no task 20"):
        scenario.value(20, grid[0])


def test_scenarios_are_found_by_name(tmp_path, monkeypatch) -> None:
    assert scenario_of(Sources(), "mixed").name == "mixed"
    (tmp_path / "my_tasks.py").write_text(
        "from dre_bench.synthetic import synthetic_scenario\n"
        "def make():\n    return synthetic_scenario('branches')\n"
        "mine, other = make(), 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(scenario_of(Sources(), "my_tasks:mine"), Scenario)
    assert isinstance(scenario_of(Sources(), "my_tasks:make"), Scenario)
    for name, message in {
        "rbv2_xgboost": "needs the data",
        "unheard": "known: rbv2_xgboost",
        "my_tasks:nothing": "cannot be imported",
        "no_such_module:x": "cannot be imported",
        "my_tasks:other": "is no dre_bench",
    }.items():
        with pytest.raises(ValueError, match=message):
            scenario_of(Sources(), name)
    with pytest.raises(ValueError, match="needs the data"):
        scenario_of(Sources(data=tmp_path), "rbv2_rpart")
    sys.modules.pop("my_tasks")


def test_botorch_functions_by_name() -> None:
    pytest.importorskip("botorch")
    camel = scenario_of(Sources(), "botorch:SixHumpCamel")
    assert camel.value(0, {"x0": 0.0898, "x1": -0.7126}) == pytest.approx(1.0316, abs=1e-3)
    with pytest.raises(ValueError, match="no test function"):
        scenario_of(Sources(), "botorch:Nothing")


def test_what_botorch_needs_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "botorch", None)  # as if it were not installed
    with pytest.raises(ValueError, match=r"benchmarks\[rivals\]"):
        synthetic_scenario("branin")


NEED_DATA = ("pipelines", "learner-choice")


def test_conditional_problems_say_what_is_active() -> None:
    for name in CONDITIONAL:
        if name in NEED_DATA:
            with pytest.raises(ValueError, match="needs"):
                scenario_of(Sources(), name)
            continue
        scenario = scenario_of(Sources(), name)
        for configuration in scenario.random_configurations(20, np.random.default_rng(0)):
            for parameter in scenario.parameters:
                assert (parameter.name in configuration) == parameter.is_active(configuration)
            assert np.isfinite(scenario.value(3, configuration))


def test_the_best_of_the_branches_looks_worst() -> None:
    scenario = scenario_of(Sources(), "branches-4")
    drawn = scenario.random_configurations(4000, np.random.default_rng(0))
    values = scenario.evaluate_many(7, drawn)["value"]
    branches = np.array([configuration["branch"] for configuration in drawn])
    best = {name: values[branches == name].max() for name in "abcd"}
    typical = {name: np.median(values[branches == name]) for name in "abcd"}
    assert max(best, key=best.get) == min(typical, key=typical.get)


def test_suites_name_what_there_is() -> None:
    for suite in SUITES.values():
        needed = {
            *["--data" for name in suite.scenarios if name in (*SCENARIOS, *NEED_DATA)],
            *["--hpob" for name in suite.scenarios if name.startswith("hpob")],
        }
        assert {suite.needs} == (needed or {""})
        for name in {*suite.scenarios} & {*OWN}:
            n_tasks = len(scenario_of(Sources(), name).splits[suite.split])
            assert suite.tasks_per_scenario in (*range(1, n_tasks + 1), ALL)
    with pytest.raises(ValueError, match="known: quick"):
        entry_of(SUITES, "suite", "other")
