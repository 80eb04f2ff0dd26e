"""What a run is, how runs are performed, recorded and resumed, and samplers by name."""

from __future__ import annotations

import hill
import pytest

from dre_bench import runs
from dre_bench.problems import catalogue, foreign
from dre_bench.problems.catalogue import PROBLEMS
from dre_bench.runs import Run, Sources
from dre_bench.samplers import make_sampler, parse_arguments, split_specifications, with_settings
from dre_plugins.recommend.settings import Settings

RUN = Run("random", hill.NAME, 3, 0, 6)
HERE = Sources()


def perform(run: Run) -> runs.Record:
    return runs.perform(catalogue.study, HERE, run)


def test_parse_arguments():
    assert parse_arguments("") == {}
    assert parse_arguments("acquisition=ei,n=3,flag=True,t=(1, 2.5)") == {
        "acquisition": "ei",
        "n": 3,
        "flag": True,
        "t": (1, 2.5),
    }
    with pytest.raises(ValueError, match="key=value"):
        parse_arguments("3")


def test_split_specifications():
    assert split_specifications("random,tpe:multivariate=True,group=True,gp,dre:a=b") == [
        "random",
        "tpe:multivariate=True,group=True",
        "gp",
        "dre:a=b",
    ]
    assert split_specifications("x.Y:a=(1,2),b={'c':[3,d]},no.Such") == [
        "x.Y:a=(1,2),b={'c':[3,d]}",
        "no.Such",
    ]
    assert split_specifications("dre:a='x,y',tpe, gp") == ["dre:a='x,y'", "tpe", "gp"]


def test_sampler_seed_is_shared_by_samplers_and_not_by_tasks():
    seeds = {Run(s, "rbv2_rpart", 3, 0, 50).sampler_seed for s in ("random", "tpe", "gp")}
    assert len(seeds) == 1
    assert Run("random", "rbv2_rpart", 11, 0, 50).sampler_seed not in seeds


def test_a_record_has_every_trial():
    record = perform(RUN)
    assert runs.run_of(record) == RUN
    assert record["problem"] == "maximise" and record["seconds"] >= 0.0
    lengths = {len(record[name]) for name in ("configurations", "values", "ask_seconds")}
    assert lengths == {RUN.trials}
    assert record["reference"]["median"] < record["reference"]["best"] <= 1.0
    assert record["warnings"] == [] and "optuna" in record["versions"]
    assert perform(RUN)["values"] == record["values"]
    assert runs.describe(record) == (
        f"random {hill.NAME} task 3 seed 0: best {max(record['values']):.4f}"
    )


def test_a_record_of_an_older_file_is_a_plain_study():
    record = {name: value for name, value in vars(RUN).items() if name != "problem"}
    assert runs.run_of(record) == RUN


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (Run("random:nonsense=1", hill.NAME, 3, 0, 6), "nonsense"),
        (Run("unheard", hill.NAME, 3, 0, 6), "unknown sampler"),
        (Run("dre:prior=shipped", hill.NAME, 3, 0, 6), "prior=shipped needs one of the scenarios"),
        (Run("smac:n=1", hill.NAME, 3, 0, 6), "smac takes no arguments"),
        (Run("random", hill.NAME, 3, 0, 6, "crash"), "crash regions are known for"),
        (Run("random", hill.NAME, 3, 0, 6, "pareto-memory"), "needs the outputs"),
        (Run("random", hill.NAME, 3, 0, 6, "unheard"), "unknown problem 'unheard'; known: max"),
    ],
)
def test_what_a_run_raises_is_recorded(run, message):
    record = perform(run)
    assert message in record["error"]
    assert "values" not in record
    _, problem = runs.describe(record).split(": FAILED, ", 1)
    assert message in problem and "\n" not in problem


@pytest.mark.slow
def test_execute_survives_failures_and_resumes(tmp_path):
    """Worker processes are real; the data folder is missing, so that every run fails."""
    out = tmp_path / "runs.jsonl"
    todo = [Run(sampler, "rbv2_rpart", 3, 0, 6) for sampler in ("random", "tpe")]
    sources = Sources(data=tmp_path)
    assert runs.execute(catalogue.study, sources, todo, out=out, jobs=2) == 2
    out.write_text(out.read_text() + '{"cut": off')
    assert runs.execute(catalogue.study, sources, todo[:1], out=out, jobs=1) == 1
    with pytest.warns(UserWarning, match="damaged line"):
        records = runs.read_records(out)
    assert len(records) == 3
    assert all("needs the data of YAHPO Gym" in record["error"] for record in records)
    with pytest.warns(UserWarning, match="damaged line"):
        assert runs.unfinished(todo, out) == todo


def test_a_dead_worker_fails_its_run_only(monkeypatch):
    class Pool:
        def __init__(self, *args, **kwargs):
            pass

        def submit(self, perform, study, sources, run):
            if run.sampler == "tpe":
                raise runs.BrokenProcessPool
            return self

        def result(self):
            return {"fine": True}

    monkeypatch.setattr(runs, "ProcessPoolExecutor", Pool)
    workers = runs._Workers(catalogue.study, HERE)
    assert workers.perform(Run("tpe", hill.NAME, 3, 0, 6))["error"] == "the worker process died"
    assert workers.perform(RUN) == {"fine": True}


def test_a_plan_holds_whole_pairs_as_far_as_it_got():
    planned = catalogue.plan(
        HERE,
        ["maximise", "table"],
        scenarios=[hill.NAME],
        split="test",
        tasks_per_scenario=1,
        seeds=2,
        samplers=["random", "dre"],
        trials=7,
    )
    assert planned == [
        Run(sampler, hill.NAME, 0, seed, 7, problem)
        for seed in range(2)
        for problem in ("maximise", "table")
        for sampler in ("random", "dre")
    ]
    (first, *_) = catalogue.plan(
        HERE, ["crash"], scenarios=[hill.NAME], split="test", tasks_per_scenario=9, seeds=1
    )
    assert (first.sampler, first.trials) == (PROBLEMS["crash"].samplers[0], 100)


def test_tasks_are_spread_over_the_split():
    planned = catalogue.plan(
        HERE, ["maximise"], scenarios=[hill.NAME], split="train", tasks_per_scenario=4, seeds=1
    )
    assert list(dict.fromkeys(run.task for run in planned)) == [1, 6, 11, 16]


def test_what_is_not_installed_is_left_out(monkeypatch):
    planned = [Run(name, hill.NAME, 0, 0, 5) for name in ("random", "smac")]
    planned.append(Run("rgpe:n_rows=10", hill.NAME, 0, 0, 5, "table"))
    planned.append(Run("bore", hill.NAME, 0, 0, 5, "syne-tune"))
    for module in (catalogue, foreign):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    missing = catalogue.missing_libraries(planned)
    assert missing == {
        ("maximise", "smac"): "smac",
        ("table", "rgpe:n_rows=10"): "botorch",
        ("syne-tune", "bore"): "syne-tune",
    }
    monkeypatch.setattr(catalogue, "find_spec", lambda name: name)
    assert catalogue.missing_libraries(planned) == {}


def test_an_interruption_while_a_record_is_written_ends_the_runs_at_once(monkeypatch, tmp_path):
    """Its traceback keeps everything alive, hence also what performs the runs."""
    closed = []

    def performed(*_):
        try:
            yield {}
        finally:
            closed.append(True)

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "_performed", performed)
    monkeypatch.setattr(runs, "describe", interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:
        runs.execute(catalogue.study, HERE, [RUN], out=tmp_path / "runs.jsonl", jobs=1)
    assert closed and kept.value is not None


def test_fields_of_settings_are_arguments_of_a_specification():
    pytest.importorskip("optuna")
    arguments = with_settings({"seed": 3, "acquisition": "ei", "max_history": 64})
    settings = Settings(acquisition="ei", max_history=64)
    assert arguments == {"seed": 3, "prior": "universal", "settings": settings}
    assert with_settings({"seed": 3}) == {"seed": 3, "prior": "universal"}
    make_sampler("dre:acquisition=ei,n_threads=2", 0, "")
    with pytest.raises(ValueError, match=r"acquisition.*'ucb'"):
        make_sampler("dre:acquisition=ucb", 0, "")
