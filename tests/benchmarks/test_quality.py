"""The benchmark driver and its report, on a scenario whose network is a formula."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dre_plugins.benchmarks import quality, report
from dre_plugins.benchmarks.quality import Run

RUN = Run("random", "rbv2_rpart", 3, 0, 6)


class Scenario:
    """One parameter; the best value is at 0.7."""

    name = "rbv2_rpart"
    metric = "acc"

    def value(self, task, configuration):
        return self.evaluate(task, configuration)["acc"]

    def suggest(self, trial):
        return {"x": trial.suggest_float("x", 0.0, 1.0)}

    def evaluate(self, task, configuration):
        return {"acc": 1.0 - (configuration["x"] - 0.7) ** 2}

    def evaluate_many(self, task, configurations):
        return {"acc": np.array([self.evaluate(task, c)["acc"] for c in configurations])}

    def random_configurations(self, n, rng):
        return [{"x": rng.uniform()} for _ in range(n)]


@pytest.fixture
def scenario(monkeypatch):
    monkeypatch.setattr(quality, "scenario_of", lambda data, name: Scenario())


def test_parse_arguments():
    assert quality.parse_arguments("") == {}
    assert quality.parse_arguments("acquisition=lcb,n=3,flag=True,t=(1, 2.5)") == {
        "acquisition": "lcb",
        "n": 3,
        "flag": True,
        "t": (1, 2.5),
    }
    with pytest.raises(ValueError, match="key=value"):
        quality.parse_arguments("3")


def test_split_specifications():
    assert quality.split_specifications("random,tpe:multivariate=True,group=True,gp,dre:a=b") == [
        "random",
        "tpe:multivariate=True,group=True",
        "gp",
        "dre:a=b",
    ]


def test_sampler_seed_is_shared_by_samplers_and_not_by_tasks():
    seeds = {Run(s, "rbv2_rpart", 3, 0, 50).sampler_seed for s in ("random", "tpe", "gp")}
    assert len(seeds) == 1
    assert Run("random", "rbv2_rpart", 11, 0, 50).sampler_seed not in seeds


@pytest.mark.usefixtures("scenario")
def test_perform_records_every_trial(tmp_path):
    record = quality.perform(tmp_path, RUN)
    assert quality.run_of(record) == RUN
    assert len(record["values"]) == len(record["ask_seconds"]) == RUN.trials
    assert record["reference"]["median"] < record["reference"]["best"] <= 1.0
    assert record["warnings"] == []
    assert quality.perform(tmp_path, RUN)["values"] == record["values"]


@pytest.mark.usefixtures("scenario")
def test_perform_records_what_a_sampler_raises(tmp_path):
    record = quality.perform(tmp_path, Run("random:nonsense=1", "rbv2_rpart", 3, 0, 6))
    assert "nonsense" in record["error"]
    assert "values" not in record


@pytest.mark.slow
def test_execute_survives_failures_and_resumes(tmp_path):
    """Worker processes are real; the data folder is missing, so that every run fails."""
    out = tmp_path / "runs.jsonl"
    runs = [RUN, Run("tpe", "rbv2_rpart", 3, 0, 6)]
    assert quality.execute(tmp_path, runs, out=out, jobs=2) == 2
    out.write_text(out.read_text() + '{"cut": off')
    assert quality.execute(tmp_path, runs[:1], out=out, jobs=1) == 1
    with pytest.warns(UserWarning, match="damaged line"):
        records = quality.read_records(out)
    assert len(records) == 3
    assert all("needs the data of YAHPO Gym" in record["error"] for record in records)


def test_a_dead_worker_fails_its_run_only(tmp_path, monkeypatch):
    class Pool:
        def __init__(self, *args, **kwargs):
            pass

        def submit(self, function, data, run):
            if run.sampler == "tpe":
                raise quality.BrokenProcessPool
            return self

        def result(self):
            return {"fine": True}

    monkeypatch.setattr(quality, "ProcessPoolExecutor", Pool)
    workers = quality._Workers(tmp_path)
    assert workers.perform(Run("tpe", "rbv2_rpart", 3, 0, 6))["error"] == "the worker process died"
    assert workers.perform(RUN) == {"fine": True}


def record(sampler, task, seed, values, scenario="a"):
    return {
        "sampler": sampler,
        "scenario": scenario,
        "task": task,
        "seed": seed,
        "trials": len(values),
        "values": values,
        "ask_seconds": [0.5] * len(values),
        "reference": {"median": 0.5, "best": 0.9},
    }


def test_regret_by_hand():
    # The best known value is 1.0, which a run found, not the sample's 0.9; the scale is 1.0 - 0.5.
    results = report.collect(
        [record("x", 1, 0, [0.4, 0.75, 0.6]), record("y", 1, 0, [0.5, 0.5, 1.0])]
    )
    np.testing.assert_allclose(results.regret[0, 0], [1.2, 0.5, 0.5])
    np.testing.assert_allclose(results.regret[1, 0], [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(results.ranks()[:, 0, 2], [2, 1])


def test_only_pairs_are_compared_and_the_later_run_counts():
    records = [
        record("x", 1, 0, [0.6]),
        record("x", 1, 0, [0.7]),
        record("y", 1, 0, [0.9]),
        record("x", 2, 0, [0.6]),
        {**record("y", 2, 0, [0.6]), "error": "crash"},
    ]
    results = report.collect(records)
    assert results.keys == (("a", 1, 0),)
    np.testing.assert_allclose(results.regret[0, 0], [0.5])


def test_stagnating():
    flat, rising = [0.6] * 40, [0.6] * 39 + [0.65]
    found = [0.9] * 40
    results = report.collect(
        [record(name, 1, 0, v) for name, v in zip("xyz", (flat, rising, found), strict=True)]
    )
    np.testing.assert_array_equal(results.stagnating(), [1, 0, 0])


def test_report_prints_tables_and_draws(tmp_path, capsys):
    rng = np.random.default_rng(0)
    path = tmp_path / "runs.jsonl"
    lines = [
        json.dumps(record(name, task, seed, list(rng.uniform(0.3, high, 50)), scenario))
        for name, high in (("random", 0.8), ("dre", 0.95))
        for scenario in ("a", "b")
        for task in range(6)
        for seed in range(2)
    ]
    path.write_text("\n".join([*lines, json.dumps({**record("dre", 9, 0, [0.1]), "error": "x"})]))
    report.main([str(path), "--against", "random", "--plot", str(tmp_path / "curves.png")])
    printed = capsys.readouterr().out
    assert "### All scenarios: 12 tasks, 24 runs a sampler" in printed
    assert "### b: 6 tasks, 12 runs a sampler" in printed
    assert "12/0/0 p=0.00049" in printed
    assert "Left out: 1 failed runs, 0 runs without their pair." in printed
    assert (tmp_path / "curves.png").stat().st_size > 10_000
