"""The table protocol; HPO-B's on files of its exact shape, made from the YAHPO extract."""

import json
import warnings
from dataclasses import replace

import hill
import numpy as np
import pytest
from hpob_json import write_hpob

from dre_bench import runs
from dre_bench.gate import EXTRACT
from dre_bench.hpob_files import load_hpob, load_hpob_initialisations
from dre_bench.hpob_method import DRETable
from dre_bench.problems import ablations, catalogue, tables as problem
from dre_bench.problems.tables import method_chooser, visit
from dre_bench.rivals.deep_ensemble import DeepEnsemble
from dre_bench.rivals.random_search import Random
from dre_bench.runs import Run, Sources
from dre_bench.suites import SUITES
from dre_bench.tables import tables_of
from dre_bench.tasks import load_extract
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

SPLITS = {"train": slice(0, 5), "validation": slice(5, 6), "test": slice(6, 8)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the four files of the benchmark: one search space, 8 data sets."""
    folder = tmp_path_factory.mktemp("hpob")
    samples = [s for s in load_extract(EXTRACT) if s.scenario == "rbv2_rpart"]
    tasks = []
    for sample in samples:
        columns = [i for i, name in enumerate(sample.parameters) if name not in sample.choices]
        raw = np.log1p(sample.values[:60, columns].astype(np.float64))
        units = (raw - raw.min(0)) / (raw.max(0) - raw.min(0))
        space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(len(columns))})
        values = sample.outputs["acc"][:60].astype(np.float64)
        tasks.append(Task(str(sample.task), space, units, values, np.zeros(60, dtype=bool)))
    for split, part in SPLITS.items():
        write_hpob({"4796": MetaDataset.of(tasks[part])}, folder / f"meta-{split}-dataset.json")
    starts = {"test0": [0, 1, 2, 3, 4], "test1": [5, 6, 7, 8, 9]}
    starts = {"4796": {task.name: starts for task in tasks[SPLITS["test"]]}}
    (folder / "bo-initializations.json").write_text(json.dumps(starts))
    return folder


@pytest.fixture(scope="module")
def sources(folder):
    return Sources(hpob=folder, priors=folder / "priors")


@pytest.fixture
def short_training(monkeypatch):
    short = replace(ablations.VARIANTS["default"], training={"n_steps": 40})
    monkeypatch.setattr(ablations, "VARIANTS", {**ablations.VARIANTS, "default": short})


def perform(sources, run):
    record = runs.perform(catalogue.study, sources, run)
    assert "error" not in record, record["error"]
    return record


def test_all_search_spaces_of_hpob_are_a_suite(sources, short_training):
    suite = SUITES["hpob"]
    planned = catalogue.plan(
        sources,
        suite.problems,
        scenarios=suite.scenarios,
        split=suite.split,
        tasks_per_scenario=suite.tasks_per_scenario,
        seeds=2,
        samplers=suite.samplers,
        trials=9,
    )
    assert len(planned) == 2 * 2 * 3  # data sets, seeds, methods
    records = [perform(sources, run) for run in planned]
    starts = load_hpob_initialisations(sources.hpob)["4796"]
    for run, record in zip(planned, records, strict=True):
        assert run.scenario == "hpob:4796"
        assert record["rows"][:5] == starts[run.task][f"test{run.seed}"]
        assert len({*record["rows"]}) == len(record["values"]) == 9
        assert record["n_initial"] == 5
    with_prior = [record for record in records if record["sampler"] == "dre:prior=trained"]
    without = [record for record in records if record["sampler"] == "dre"]
    assert [r["rows"] for r in with_prior] != [r["rows"] for r in without]
    assert len([*sources.priors.glob("*.safetensors")]) == 1  # one prior for all runs


def published_incumbents(folder, method, start, n_trials):
    """What the benchmark's own handler reports, as its documentation and its code describe it.

    Values are scaled to [0, 1] by the whole table; the method is shown columns, values as a
    column, and the rows that are left, and answers with a position among these; what counts is
    the best value after each of its choices (the initial ones are not reported).
    """
    tables = json.loads((folder / "meta-test-dataset.json").read_text())["4796"]
    starts = json.loads((folder / "bo-initializations.json").read_text())["4796"]
    curves = {}
    for dataset, content in tables.items():
        X, y = np.array(content["X"]), np.array(content["y"])
        y = (y - y.min()) / (y.max() - y.min())
        assert y.shape == (len(X), 1)
        seen = starts[dataset][start][:5]
        left = [row for row in range(len(X)) if row not in seen]
        curves[dataset] = []
        for _ in range(n_trials):
            seen = [*seen, left.pop(method.observe_and_suggest(X[seen], y[seen], X[left]))]
            curves[dataset].append(float(y[seen].max()))
    return curves


def our_incumbents(sources, method, start, n_trials):
    curves, tables = {}, tables_of(sources, "hpob:4796")
    for task in tables.tasks("test"):
        table = tables.table(task, int(start[-1]))
        rows, _ = visit(method_chooser(method, table), table, 5 + n_trials)
        best = np.maximum.accumulate(table.values[rows])[5:]
        worst = table.values.min()
        curves[task] = (best - worst) / (table.values.max() - worst)
    return curves


@pytest.fixture(scope="module")
def prior(folder):
    metadata = load_hpob(folder, split="train")["4796"]
    return Prior.train(metadata, settings=MetaTrainingSettings(n_steps=40))


@pytest.mark.parametrize(
    ("name", "start"),
    [("random", "test0"), ("random", "test1"), ("none", "test1"), ("prior", "test0")],
)
def test_our_driver_agrees_with_the_published_loop(folder, sources, prior, name, start):
    seed = int(start[-1])

    def method():
        if name == "random":
            return Random(seed=seed)
        return DRETable(seed=seed, prior=prior if name == "prior" else None)

    published = published_incumbents(folder, method(), start, 4)
    ours = our_incumbents(sources, method(), start, 4)
    assert len(published) == 2
    for dataset, curve in published.items():
        assert len(curve) == 4
        np.testing.assert_allclose(ours[dataset], curve, rtol=0, atol=1e-9)
    if name == "none":  # so does our own recommender, which sees the search space
        # With a prior, contrasts are drawn by the order of the rows, which is another one there.
        dataset, curve = next(iter(published.items()))
        record = perform(sources, Run("dre:prior=None", "hpob:4796", dataset, seed, 9, "table"))
        best, worst = record["reference"]["best"], record["reference"]["worst"]
        ours = (np.maximum.accumulate(record["values"])[5:] - worst) / (best - worst)
        np.testing.assert_allclose(ours, curve, rtol=0, atol=1e-9)


def test_a_table_is_visited_to_its_last_row_and_no_further(sources):
    tables = tables_of(sources, "hpob:4796")
    table = tables.table(tables.tasks("test")[0], 0)
    rows, seconds = visit(method_chooser(Random(seed=0), table), table, 100)
    assert rows[:5] == table.start
    assert sorted(rows) == list(range(60)) and len(seconds) == 60
    assert visit(method_chooser(Random(seed=0), table), table, 9)[0] == rows[:9]


# ---- tables of scenarios


class LastRow:
    """A method of somebody else."""

    def __init__(self, seed, skip=0):
        self.skip = skip

    def observe_and_suggest(self, X_observed, y_observed, X_pending):
        assert y_observed.shape == (len(X_observed), 1)
        return len(X_pending) - 1 - self.skip


def a_run(sampler, seed=0, trials=9):
    return Run(sampler, hill.NAME, 0, seed, trials, "table")


def test_methods_of_others_are_run_by_import_path():
    record = perform(Sources(), a_run(f"{__name__}.LastRow:skip=3"))
    left = [row for row in range(1000) if row not in record["rows"][:5]]
    assert record["rows"][5:] == [left[-4], left[-5], left[-6], left[-7]]
    for name, message in [("gpp", "known: dre"), ("no.Such", "cannot be imported")]:
        failed = runs.perform(catalogue.study, Sources(), a_run(name))
        assert message in failed["error"]


def test_baselines_are_named_with_their_arguments():
    record = perform(Sources(), a_run("deep-ensemble:n_members=2,n_steps=5", seed=3, trials=6))
    table = tables_of(Sources(), hill.NAME).table(0, 3)
    pending = np.delete(np.arange(1000), table.start)
    direct = DeepEnsemble(n_members=2, n_steps=5, seed=3).observe_and_suggest(
        table.features[table.start], table.values[table.start], table.features[pending]
    )
    assert record["rows"] == [*table.start, pending[direct]]


@pytest.mark.slow
@pytest.mark.long
def test_what_learns_from_past_tasks_does_so_once():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.13 deprecates what linear_operator is made of
        pytest.importorskip("botorch")
    options = (("n_rows", 10),)
    learnt = problem._learnt("taf", options, Sources(), hill.NAME)
    assert learnt is problem._learnt("taf", options, Sources(), hill.NAME)
    first, second = learnt.with_seed(0), learnt.with_seed(1)
    assert (first.seed, second.seed) == (0, 1)
    assert vars(first)["_past"] is vars(second)["_past"]
    record = perform(Sources(), a_run("taf:n_rows=10", trials=8))
    assert max(record["values"]) > record["reference"]["best"] - 0.05


def test_all_methods_begin_alike_and_ours_learns():
    record = {name: perform(Sources(), a_run(name, trials=14)) for name in ("random", "dre")}
    assert record["random"]["rows"][:5] == record["dre"]["rows"][:5]
    assert record["dre"]["ask_seconds"][:5] == [0.0] * 5
    assert max(record["dre"]["values"]) > max(record["random"]["values"])


# ---- ablations


@pytest.mark.slow
@pytest.mark.long
def test_variants_change_what_they_say(tmp_path, monkeypatch):
    short = {
        name: variant
        if variant.training is None
        else replace(variant, training={**variant.training, "n_steps": 3})
        for name, variant in ablations.VARIANTS.items()
    }
    monkeypatch.setattr(ablations, "VARIANTS", short)
    sources = Sources(priors=tmp_path)

    def rows_of(name, trials):
        return tuple(perform(sources, a_run(f"ablation:{name}", trials=trials))["rows"])

    names = ("default", "no-meta-features", "no-fine-tuning", "loss-list", "members-1")
    names = (*names, "own-context", "no-meta-training")
    # From 11 observations on, what is in contexts of past tasks is fine-tuned.
    assert len({rows_of(name, 16) for name in names}) == 7
    # The variants of the search share a prior with the default.
    assert len([*tmp_path.glob("*.safetensors")]) == 4
    failed = runs.perform(catalogue.study, sources, a_run("ablation:unheard"))
    assert "unknown ablation 'unheard'; known: default" in failed["error"]
    failed = runs.perform(catalogue.study, Sources(), a_run("ablation:default"))
    assert "priors must be the folder" in failed["error"]


def test_every_variant_is_in_a_suite():
    shown = {
        name.removeprefix("ablation:")
        for suite in SUITES.values()
        for name in suite.samplers or ()
        if name.startswith("ablation:")
    }
    assert shown == {*ablations.VARIANTS}
