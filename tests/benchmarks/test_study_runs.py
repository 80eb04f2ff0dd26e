"""The problems of the study benchmark and their report, on a scenario that is a formula."""

from __future__ import annotations

import json

import numpy as np
import optuna
import pytest

from dre_plugins.benchmarks import studies, studies_report
from dre_plugins.benchmarks import study_problems as problems
from dre_plugins.benchmarks.quality import reference_sample
from dre_plugins.benchmarks.studies import PROBLEMS, StudyRun
from dre_plugins.benchmarks.tasks import Parameter

PARAMETERS = (
    Parameter("maxdepth", "int", 1, 30),
    Parameter("minsplit", "int", 1, 100),
)


class Scenario:
    """Deeper trees are better, slower and larger; a fold of the data costs its share."""

    name = "rbv2_rpart"
    metric = "acc"
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
    monkeypatch.setattr(studies, "scenario_of", lambda data, name: scenario)
    monkeypatch.setattr("dre_plugins.benchmarks.quality.scenario_of", lambda data, name: scenario)
    return scenario


@pytest.fixture(autouse=True)
def quiet():
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def a_run(problem, sampler="random", task=3, seed=0, trials=40):
    return StudyRun(sampler, "rbv2_rpart", task, seed, trials, problem)


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


def test_a_task_without_feasible_configurations_is_not_posed(scenario, tmp_path):
    runs = studies.plan_studies(
        tmp_path,
        names=["crash", "constrained-10"],
        scenarios=["rbv2_rpart"],
        split="validation",
        tasks_per_scenario=3,
        seeds=2,
    )
    assert {run.task for run in runs if run.problem == "crash"} == {3, 11, 12}
    assert {run.task for run in runs if run.problem == "constrained-10"} == {3, 11}
    # An interrupted benchmark has all problems for the first seeds.
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert {run.problem for run in runs if run.seed == 0} == {"crash", "constrained-10"}
    assert {run.sampler for run in runs if run.problem == "crash"} == {*PROBLEMS["crash"].samplers}


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
    one = problems.workers(scenario, run, Spy(), n_workers=1)
    # The random sampler suggests the same in both; only the order of results differs.
    assert sorted(one["values"]) == sorted(record["values"])
    assert one["values"] != record["values"]
    times = np.diff(one["finished"], prepend=0.0)
    _, sample = reference_sample(scenario, 3)
    np.testing.assert_array_less(times * run.trials * sample["timetrain"].mean(), 2.0 + 1e-9)
    # Eight workers share the same work, in units that are as much shorter.
    assert record["finished"][-1] == pytest.approx(one["finished"][-1], rel=0.3)


def test_perform_records_the_study_or_its_error(scenario, tmp_path):
    run = a_run("crash", trials=5)
    record = json.loads(json.dumps(studies.perform(tmp_path, run)))
    assert studies.study_run_of(record) == run
    assert record["stats"] == {} and record["seconds"] >= 0.0 and record["warnings"] == []
    again = studies.perform(tmp_path, run)
    assert again["values"] == record["values"]
    assert studies.describe(record).startswith("crash random rbv2_rpart task 3 seed 0: ")
    failed = studies.perform(tmp_path, a_run("crash", "random:nonsense=1"))
    assert "nonsense" in failed["error"]
    assert studies.describe(failed).endswith("FAILED")


@pytest.mark.slow
def test_our_sampler_runs_every_problem(scenario, tmp_path):
    for name in (name for name, problem in PROBLEMS.items() if "dre" in problem.samplers):
        record = studies.perform(tmp_path, a_run(name, "dre", trials=20))
        assert "error" not in record, record["error"]
        assert record["stats"]["model"] > 0
        assert "fallbacks" not in record["stats"]


def a_record(problem, sampler, seed=0, task=3, **results):
    run = StudyRun(sampler, "rbv2_rpart", task, seed, 10, problem)
    return {**vars(run), "seconds": 1.0, "stats": {}, **results}


def constrained(sampler, values, violations, **more):
    reference = {"median": 0.5, "best": 0.7}
    pairs = [[violation, -1.0] for violation in violations]
    return a_record(
        "constrained-50", sampler, values=values, violations=pairs, reference=reference, **more
    )


def test_regret_counts_feasible_trials_only():
    (table,) = studies_report.collect(
        [
            # 0.9 is feasible and the best that is known: the scale is 0.9 - 0.5.
            constrained("a", [0.7] * 9 + [0.9], [0.0] * 9 + [-1.0], stats={"fallbacks": 2}),
            constrained("b", [1.0, 0.6] + [0.4] * 8, [0.1, 0.0] + [1.0] * 8),
            constrained("c", [1.0] * 10, [0.1] * 10),
        ]
    )
    at = table.columns.index("regret@10")
    np.testing.assert_allclose(table.figures[:, 0, at], [0.0, 0.75, np.inf])
    np.testing.assert_allclose(table.means()[:, at], [0.0, 0.75, 1.0])
    np.testing.assert_array_equal(table.ranks("regret@10"), [1, 2, 3])
    np.testing.assert_allclose(table.figures[:, 0, table.columns.index("feasible")], [1, 0.1, 0])
    assert "a: the surrogate failed 2 times." in studies_report.markdown([table])


def test_only_evaluations_with_all_data_count_under_successive_halving():
    evaluations = [(1, 0.04, 0.9), (27, 0.08, 0.6), (1, 0.15, 0.9), (27, 0.5, 0.7)]
    reference = {"median": 0.5, "best": 0.7}
    record = a_record("asha", "a", values=[1, 1], evaluations=evaluations, reference=reference)
    (table,) = studies_report.collect([record])
    figures = dict(zip(table.columns, table.means()[0], strict=True))
    regrets = [figures[f"regret@{share}"] for share in ("5%", "10%", "20%", "50%", "100%")]
    np.testing.assert_allclose(regrets, [1.0, 0.5, 0.5, 0.0, 0.0])
    assert figures["full"] == 2


def test_crashes_are_counted_after_the_start():
    values = [None] * 30 + [0.6] * 7 + [None] * 3
    record = a_record("crash", "a", values=values, reference={"median": 0.5, "best": 0.7})
    (table,) = studies_report.collect([record])
    figures = dict(zip(table.columns, table.means()[0], strict=True))
    assert figures["crashed >30"] == pytest.approx(0.3)
    assert figures["regret@25"] == 1.0


def test_asynchrony_is_measured_on_one_scale():
    def record(problem, values):
        return a_record(
            problem,
            "a",
            values=values,
            finished=[0.1 * n for n in range(1, 11)],
            reference={"median": 0.5, "best": 0.7},
        )

    tables = studies_report.collect([record("async-8", [0.6] * 10), record("async-1", [0.9] * 10)])
    report = studies_report.markdown(tables)
    # The best value of either is the best of both: 0.9.
    assert "| a | +0.750 |" in report


def test_report_prints_what_was_paired(tmp_path, capsys):
    path = tmp_path / "studies.jsonl"
    records = [
        a_record("pareto-memory", sampler, seed, values=[0] * 10, hypervolume=[volume] * 10)
        for sampler, volume in (("dre", 0.9), ("tpe", 0.6))
        for seed in range(3)
    ]
    records[-1] = {**records[-1], "error": "crash"}
    path.write_text("\n".join(json.dumps(record) for record in records))
    studies_report.main([str(path)])
    printed = capsys.readouterr().out
    assert "### pareto-memory: 1 tasks, 2 runs a sampler" in printed
    assert "| dre | 0.900 | 1.00 | 0.1 |" in printed
    assert "| tpe | 0.600 | 2.00 | 0.1 |" in printed
    assert "Left out: 1 failed runs, 1 runs without their pair." in printed
