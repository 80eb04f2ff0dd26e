"""Real studies, on a scenario that is a formula."""

from __future__ import annotations

import json

import numpy as np
import optuna
import pytest

from dre_bench import runs
from dre_bench.problems import catalogue, real_studies as problems
from dre_bench.problems.catalogue import PROBLEMS
from dre_bench.problems.maximise import reference_sample
from dre_bench.runs import Run, Sources
from dre_bench.tasks import Parameter

PARAMETERS = (Parameter("maxdepth", "int", 1, 30), Parameter("minsplit", "int", 1, 100))


class Scenario:
    """Deeper trees are better, slower and larger; a fold of the data costs its share."""

    name = "rbv2_rpart"
    metric = "acc"
    n_reference = 2000
    parameters = PARAMETERS

    def __init__(self):
        self.splits = {"train": [], "validation": [3, 11, 12], "test": []}

    def suggest(self, trial):
        return {parameter.name: parameter.suggest(trial) for parameter in PARAMETERS}

    def evaluate(self, task, configuration, *, trainsize=1.0):
        depth, size = configuration["maxdepth"] / 30, configuration["minsplit"] / 100
        return {
            "acc": 0.5 + 0.4 * depth - 0.1 * size * trainsize,
            "timetrain": trainsize * (1.0 + depth),
            # No configuration of task 12 is as small as it is fast.
            "memory": (2.0 - depth if task == 12 else depth) + 0.1 * size,
        }

    def evaluate_many(self, task, configurations):
        rows = [self.evaluate(task, configuration) for configuration in configurations]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def random_configurations(self, n, rng):
        return [{p.name: p.draw(rng) for p in PARAMETERS} for _ in range(n)]


class Spy(optuna.samplers.RandomSampler):
    """Remember what the study showed when each trial ended and when each one began."""

    def __init__(self):
        super().__init__(seed=1)
        self.constraints, self.n_running = [], []

    def before_trial(self, study, trial):
        running = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING])
        self.n_running.append(len(running))

    def after_trial(self, study, trial, state, values):
        self.constraints.append(dict(trial.constraints))


@pytest.fixture
def scenario(monkeypatch):
    scenario = Scenario()
    monkeypatch.setattr(catalogue, "scenario_of", lambda sources, name: scenario)
    return scenario


@pytest.fixture(autouse=True)
def quiet():
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def a_run(problem, sampler="random", task=3, seed=0, trials=40):
    return Run(sampler, "rbv2_rpart", task, seed, trials, problem)


def perform(run):
    return runs.perform(catalogue.study, Sources(), run)


def test_area_by_hand():
    points = np.array([[0.5, 0.5], [1.0, 0.25], [0.25, 1.0], [0.5, 0.4], [0.0, 3.0]])
    assert problems.dominated_area(points) == pytest.approx(0.5 * 0.25 + 0.25 * 0.5 + 0.25 * 1.0)
    assert problems.dominated_area(np.zeros((3, 2))) == 0.0


def test_objectives_are_scaled_by_the_random_sample():
    sample = np.stack([np.linspace(0.0, 1.0, 101), np.linspace(0.0, 100.0, 101)], axis=1)
    values = np.array([[0.01, 99.0], [1.0, 1.0], [1.99, 0.0], [0.0, 100.0]])
    scaled = problems.scaled(values, sample, log_cost=False)
    # Better accuracy than any of the sample counts, a cost below its 1 % quantile does not.
    np.testing.assert_allclose(scaled, [[0, 0], [1, 1], [2, 1], [0, 0]], atol=1e-12)
    logarithmic = problems.scaled(np.array([[1.0, 10.0]]), sample, log_cost=True)
    np.testing.assert_allclose(logarithmic[0, 1], np.log(9.9) / np.log(99.0))


@pytest.mark.parametrize("name", ["random", "untold-random"])
def test_constraints_are_told_unless_untold(scenario, name):
    spy, run = Spy(), a_run("constrained-50", name)
    record = problems.constrained(scenario, run, spy, quantile=0.5)
    assert len(record["values"]) == len(record["violations"]) == run.trials
    if name == "random":
        assert [[*told.values()] for told in spy.constraints] == record["violations"]
        assert {*spy.constraints[0]} == {"memory", "timetrain"}
    else:
        assert spy.constraints == [{}] * run.trials
    reference = record["reference"]
    assert 0.3 < reference["share"] < 0.6
    _, outputs = reference_sample(scenario, 3)
    assert reference["median"] < reference["best"] < outputs["acc"].max()


def test_a_task_without_feasible_configurations_is_not_posed(scenario):
    planned = catalogue.plan(
        Sources(),
        ["crash", "constrained-10"],
        scenarios=["rbv2_rpart"],
        split="validation",
        tasks_per_scenario=3,
        seeds=2,
    )
    assert {run.task for run in planned if run.problem == "crash"} == {3, 11, 12}
    assert {run.task for run in planned if run.problem == "constrained-10"} == {3, 11}
    # An interrupted benchmark has all problems for the first seeds.
    assert [run.seed for run in planned] == sorted(run.seed for run in planned)
    assert {run.problem for run in planned if run.seed == 0} == {"crash", "constrained-10"}
    assert {run.sampler for run in planned if run.problem == "crash"} == {
        *PROBLEMS["crash"].samplers
    }


def test_a_region_crashes_and_the_study_goes_on(scenario):
    record = problems.crash(scenario, a_run("crash", trials=200), Spy())
    crashed = [value is None for value in record["values"]]
    assert len(crashed) == 200
    assert 0.2 < np.mean(crashed) < 0.4
    # The best configurations are deep trees with small nodes, which crash.
    assert max(value for value in record["values"] if value is not None) < 0.9
    assert record["reference"]["best"] < 0.9
    assert problems.risk_of(scenario, {"maxdepth": 30, "minsplit": 1}) == 1.0
    assert problems.risk_of(scenario, {"maxdepth": 1, "minsplit": 100}) == -1.0


def test_hypervolume_grows_to_that_of_the_sample(scenario):
    run = a_run("pareto-timetrain", trials=200)
    record = problems.pareto(scenario, run, Spy(), cost="timetrain")
    areas = record["hypervolume"]
    assert np.all(np.diff(areas) > -1e-12)
    assert 0.9 < areas[-1] < 1.05
    assert len(record["values"]) == len(areas) == 200


def test_successive_halving_pays_for_every_rung(scenario):
    record = problems.asha(scenario, a_run("asha", trials=500), Spy())
    rungs = np.array([rung for rung, _, _ in record["evaluations"]])
    costs = np.array([cost for _, cost, _ in record["evaluations"]])
    assert len(record["values"]) == np.sum(rungs == 1) < 500
    assert np.sum(rungs == 1) > 2 * np.sum(rungs == 3) > 2 * np.sum(rungs == 9)
    assert costs[-1] >= 1.0 > costs[rungs == 1][-1] - costs[0]
    _, sample = reference_sample(scenario, 3)
    paid = np.diff(costs, prepend=0.0) * 50 * sample["timetrain"].mean()
    assert np.all((paid > rungs / 27) & (paid <= 2 * rungs / 27 + 1e-9))
    assert len(problems.asha(scenario, a_run("asha", trials=5), Spy())["values"]) == 5


def test_workers_never_wait(scenario):
    spy, run = Spy(), a_run("async-8")
    record = problems.workers(scenario, run, spy, n_workers=8)
    assert spy.n_running == [min(n, 7) + 1 for n in range(run.trials)]
    assert record["finished"] == sorted(record["finished"])
    sequential = problems.workers(scenario, run, Spy(), n_workers=1)
    # The random sampler suggests the same in both; only the order of results differs.
    assert sorted(sequential["values"]) == sorted(record["values"])
    assert sequential["values"] != record["values"]
    times = np.diff(sequential["finished"], prepend=0.0)
    _, sample = reference_sample(scenario, 3)
    np.testing.assert_array_less(times * run.trials * sample["timetrain"].mean(), 2.0 + 1e-9)
    # Eight workers share the same work, in units that are as much shorter.
    assert record["finished"][-1] == pytest.approx(sequential["finished"][-1], rel=0.3)


def test_perform_records_the_study_or_its_error(scenario):
    run = a_run("crash", trials=5)
    record = json.loads(json.dumps(perform(run)))
    assert runs.run_of(record) == run
    assert record["stats"] == {} and record["seconds"] >= 0.0 and record["warnings"] == []
    again = perform(run)
    assert again["values"] == record["values"]
    assert runs.describe(record).startswith("crash random rbv2_rpart task 3 seed 0: ")
    failed = perform(a_run("crash", "random:nonsense=1"))
    assert "nonsense" in failed["error"]
    problem = failed["error"].splitlines()[-1]
    assert runs.describe(failed).endswith(f": FAILED, {problem}") and "nonsense" in problem


@pytest.mark.slow
@pytest.mark.long
def test_our_sampler_runs_every_problem(scenario):
    by_optuna = [
        name for name, problem in PROBLEMS.items() if {"tpe", "dre"} <= {*problem.samplers}
    ]
    # The plain ones need a scenario that can be evaluated as a whole.
    for name in {*by_optuna} - {runs.MAXIMISE, catalogue.BATCHES}:
        record = perform(a_run(name, "dre", trials=24))
        assert "error" not in record, record["error"]
        assert record["stats"]["model"] > 0
        assert "fallbacks" not in record["stats"]
