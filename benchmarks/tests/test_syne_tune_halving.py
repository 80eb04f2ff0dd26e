"""Successive halving by Syne Tune's schedulers: costs and rungs against hand arithmetic."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from marks import LONG

from dre_bench import runs
from dre_bench.problems import catalogue
from dre_bench.problems.catalogue import PROBLEMS
from dre_bench.problems.real_studies import RUNGS
from dre_bench.reports import real_studies
from dre_bench.runs import Run, Sources
from dre_bench.tasks import Parameter

PROBLEM = "asha-syne-tune"


class Scenario:
    """Deeper trees are better, by the more the more data there are; a rung costs its number."""

    name = "rbv2_rpart"
    metric = "acc"
    n_reference = 2000
    parameters = (
        Parameter("maxdepth", "int", 1, 30),
        Parameter("pruned", "categorical", choices=("no", "yes")),
        Parameter("cp", "float", 1e-4, 1.0, True, (), "pruned", ("yes",)),
    )

    def evaluate(self, task, configuration, *, trainsize=1.0):
        assert ("cp" in configuration) == (configuration["pruned"] == "yes")
        depth = configuration["maxdepth"] / 30
        return {"acc": 0.5 + 0.4 * depth * trainsize, "timetrain": 27 * trainsize}

    def evaluate_many(self, task, configurations):
        rows = [self.evaluate(task, configuration) for configuration in configurations]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def random_configurations(self, n, rng):
        return [{"maxdepth": int(rng.integers(1, 31)), "pruned": "no"} for _ in range(n)]


@pytest.fixture
def scenario(monkeypatch):
    scenario = Scenario()
    path = "dre_bench.problems.syne_tune_halving.scenario_of"
    monkeypatch.setattr(path, lambda sources, name: scenario)
    return scenario


@pytest.fixture
def syne_tune_halving():
    """The module, where it can run a tuner."""
    pytest.importorskip("huggingface_hub")
    return pytest.importorskip("dre_bench.problems.syne_tune_halving")


def a_run(sampler="asha", trials=500):
    return Run(sampler, "rbv2_rpart", 3, 0, trials, PROBLEM)


def perform(run):
    return runs.perform(catalogue.study, Sources(), run)


def asha_of(*depths):
    """The name of ASHA that begins with these depths."""
    points = [{"maxdepth": depth, "pruned": "no", "cp": 0.1} for depth in depths]
    return f"asha:points_to_evaluate={points}"


def accuracy(depth, rung):
    return 0.5 + 0.4 * depth / 30 * rung / 27


@pytest.mark.syne_tune
def test_a_rung_costs_its_whole_training():
    module = pytest.importorskip("dre_bench.problems.syne_tune_halving")
    curve = module.curve_of(Scenario(), 3)({"maxdepth": 15, "pruned": "no", "cp": 0.1})
    np.testing.assert_allclose(curve[:, 0], [accuracy(15, rung) for rung in RUNGS])
    np.testing.assert_allclose(curve[:, 1], [1, 3, 9, 27])
    np.testing.assert_allclose(curve[:, 2], [1, 4, 13, 40])


@pytest.mark.syne_tune
def test_costs_add_up_over_trials():
    module = pytest.importorskip("dre_bench.problems.syne_tune_halving")
    results = [
        {"rung": np.int64(rung), "timetrain": cost, "value": 0.5, "trial_id": trial_id}
        for trial_id, rung, cost in [(0, 1, 2.0), (0, 3, 5.0), (1, 1, 3.0)]
    ]
    evaluations = module.evaluations_of(results, budget=8.0)
    assert evaluations == [(1, 0.25, 0.5), (3, 0.875, 0.5), (1, 1.25, 0.5)]
    assert json.loads(json.dumps(evaluations))[-1] == [1, 1.25, 0.5]
    assert module.evaluations_of([], budget=8.0) == []


@pytest.mark.syne_tune
@pytest.mark.filterwarnings("ignore")
# One look for all reports of a trial: what comes after a stop must not count.
@pytest.mark.parametrize("n_polls", [2000, 1])
def test_trials_stop_at_rungs(scenario, syne_tune_halving, monkeypatch, n_polls):
    monkeypatch.setattr(syne_tune_halving, "N_POLLS", n_polls)
    record = perform(a_run(asha_of(15, 10, 30, 12, 20), trials=5))
    assert "error" not in record, record["error"]
    # Whoever has at most a third of a rung, itself included, in front of it goes on.
    ran = [(15, RUNGS), (10, (1,)), (30, RUNGS), (12, (1,)), (20, RUNGS)]
    expected = [(rung, accuracy(depth, rung)) for depth, rungs in ran for rung in rungs]
    assert [rung for rung, _, _ in record["evaluations"]] == [rung for rung, _ in expected]
    paid = np.cumsum([rung for rung, _ in expected])
    np.testing.assert_allclose(
        [[share, acc] for _, share, acc in record["evaluations"]],
        [[cost / (50 * 27), acc] for cost, (_, acc) in zip(paid, expected, strict=True)],
    )
    last = [accuracy(depth, rungs[-1]) for depth, rungs in ran]
    np.testing.assert_allclose(record["values"], last)


@pytest.mark.syne_tune
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_polls", [2000, 1])
def test_what_ends_after_the_budget_does_not_count(
    scenario, syne_tune_halving, monkeypatch, n_polls
):
    monkeypatch.setattr(syne_tune_halving, "N_POLLS", n_polls)
    monkeypatch.setattr(syne_tune_halving, "halving_budget", lambda scenario, task: 50.0)
    record = perform(a_run(asha_of(15, 30)))
    # All rungs of the first trial, 40 s, and 13 s of the second one.
    rungs = [1, 3, 9, 27, 1, 3, 9, 27][: 7 if n_polls == 2000 else 8]
    assert [rung for rung, _, _ in record["evaluations"]] == rungs
    shares = [share for _, share, _ in record["evaluations"]]
    np.testing.assert_allclose(shares, np.cumsum(rungs) / 50.0)
    assert len(record["values"]) == 2

    (table,) = real_studies.collect([record])
    figures = table.figures.iloc[0]
    assert figures["trials"] == 2 and figures["full"] == 1
    scale = record["reference"]["best"] - record["reference"]["median"]
    regret = (record["reference"]["best"] - accuracy(15, 27)) / scale
    assert figures["regret@50%"] == np.inf
    assert figures["regret@100%"] == pytest.approx(regret)


@pytest.mark.syne_tune
@pytest.mark.filterwarnings("ignore")
def test_a_study_ends_with_its_budget(scenario, syne_tune_halving):
    record = json.loads(json.dumps(perform(a_run())))
    assert runs.run_of(record) == a_run()
    assert {"dre_plugins", "syne-tune"} <= {*record["versions"]}
    assert record["stats"] == {} and record["seconds"] > 0.0
    rungs = [rung for rung, _, _ in record["evaluations"]]
    counts = Counter(rungs)
    assert len(record["values"]) == counts[1]
    assert counts[1] > counts[3] > counts[9] > counts[27] > 0
    shares = [share for _, share, _ in record["evaluations"]]
    assert shares[-1] >= 1.0 > shares[-2]
    assert shares[-1] == pytest.approx(sum(rungs) / (50 * 27))


@pytest.mark.syne_tune
@pytest.mark.filterwarnings("ignore")
def test_an_unknown_method_is_recorded(scenario):
    pytest.importorskip("dre_bench.problems.syne_tune_halving")
    record = perform(a_run("tpe"))
    assert "unknown sampler 'tpe'; known: asha, ashabore" in record["error"]


@pytest.mark.syne_tune
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "method",
    [
        method if method in ("asha", "ashadre") else pytest.param(method, marks=LONG)
        for method in PROBLEMS[PROBLEM].samplers
    ],
)
def test_every_method_reports_at_the_rungs(scenario, syne_tune_halving, method):
    run = a_run(method, trials=14)
    record = perform(run)
    assert "error" not in record, record["error"]
    rungs = [rung for rung, _, _ in record["evaluations"]]
    starts = [i for i, rung in enumerate(rungs) if rung == 1]
    assert len(record["values"]) == len(starts) == 14
    for begin, end in zip(starts, [*starts[1:], len(rungs)], strict=True):
        assert tuple(rungs[begin:end]) == RUNGS[: end - begin]
    if "dre" in method:
        assert record["stats"]["universal-prior"] > 0 and "fallbacks" not in record["stats"]
        assert ("prior" in record["stats"]) == ("prior" in method)
        assert perform(run)["evaluations"] == record["evaluations"]


def test_both_problems_are_measured_on_one_scale():
    def record(problem, value):
        run = Run("a", "rbv2_rpart", 3, 0, 10, problem)
        evaluations = [(1, 0.01, 0.1), (27, 0.9, value), (27, 1.1, 0.8)]
        reference = {"median": 0.5, "best": 0.7}
        results = {"values": [value], "evaluations": evaluations, "reference": reference}
        return {**vars(run), "seconds": 1.0, "stats": {}, **results}

    tables = real_studies.collect([record("asha", 0.6), record(PROBLEM, 0.9)])
    assert [table.problem for table in tables] == ["asha", PROBLEM]
    regrets = [table.figures["regret@100%"].iloc[0] for table in tables]
    np.testing.assert_allclose(regrets, [0.75, 0.0])
    assert [table.figures["full"].iloc[0] for table in tables] == [1, 1]
