"""Evaluations of real learners: their spaces, the plan, resuming, and the exported file."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the evaluations need scikit-learn")
pytest.importorskip("fcntl", reason="the evaluations need file locks of Unix")
pytest.importorskip(
    "dre_bench.learner_evaluations", reason="the folder benchmarks/ is not installed"
)

from sklearn.metrics import log_loss as sklearn_log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from dre_bench.learner_evaluations import datasets, environment, parameters, plan, records
from dre_bench.learner_evaluations.evaluation import evaluate, evaluate_folds, mean_metric
from dre_bench.learner_evaluations.export import export
from dre_bench.learner_evaluations.learners import LEARNERS
from dre_bench.learner_evaluations.metrics import auc, log_loss, metrics_of
from dre_bench.learner_evaluations.preprocessing import COMPLETE, splits as prepare_splits
from dre_bench.learner_evaluations.restore import restore
from dre_bench.learner_evaluations.run import evaluate_until
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, REGRESSION, SPACES, space_of
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_evaluations.worker import Worker

TASKS = (CLASSIFICATION, REGRESSION)
PAIRS = [(learner, task) for learner in SPACES for task in TASKS]
NAME = "classification/small"
N_TREES = 27  # or epochs: enough for each rung, and a fraction of a second
LIBRARIES = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small data sets with numbers, categories and missing values."""
    path = tmp_path_factory.mktemp("data") / "datasets.npz"
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(160, 4)).astype(np.float32)
    inputs[:, 3] = rng.integers(0, 3, size=160)
    signal = inputs[:, 0] + 0.5 * inputs[:, 1] * (inputs[:, 3] == 1)
    noisy = signal + 0.3 * rng.normal(size=160)
    inputs[rng.random((160, 4)) < 0.05] = np.nan
    parts = {"X": inputs, "is_category": np.array([False, False, False, True])}
    targets = {
        NAME: np.digitize(noisy, [-0.4, 0.4]).astype(np.int16),
        "regression/small": noisy.astype(np.float32),
    }
    arrays = {f"{name}/{key}": parts[key] for name in targets for key in parts}
    np.savez(path, **arrays, **{f"{name}/y": target for name, target in targets.items()})
    return path


def counting(calls: list[Any]) -> Any:
    """A worker in this process that counts what it evaluates."""

    class Here:
        def run(self, arguments: tuple[Any, ...], limit: float) -> dict[str, Any]:
            calls.append(arguments[-1])
            return {"status": "ok", **evaluate(*arguments)}

    return Here()


@pytest.mark.parametrize(("learner", "task"), PAIRS)
def test_a_space_samples_and_round_trips(learner: str, task: str) -> None:
    space = space_of(learner, task)
    assert parameters.from_json(json.loads(json.dumps(parameters.to_json(space)))) == space
    for unit in np.random.default_rng(0).random((50, len(space))):
        configuration = parameters.decode(space, unit)
        for parameter in space:
            assert (parameter.name in configuration) == parameter.is_active(configuration)
            if parameter.kind != "category" and parameter.name in configuration:
                assert parameter.low <= configuration[parameter.name] <= parameter.high
        row = parameters.to_row(space, configuration)
        assert parameters.from_row(space, row.tolist()) == configuration
        again = parameters.decode(space, np.nan_to_num(parameters.encode(space, configuration)))
        assert parameters.to_row(space, again) == pytest.approx(row, rel=1e-9, nan_ok=True)


def test_each_integer_of_a_range_is_drawn() -> None:
    parameter = parameters.integer("depth", 1, 4, None, log=False)
    drawn = [parameter.from_unit(unit) for unit in np.linspace(0, 1, 4000, endpoint=False)]
    assert np.bincount(drawn).tolist()[1:] == pytest.approx([1000] * 4, abs=2)


def test_the_sobol_points_are_the_same_on_all_data_sets() -> None:
    history = [{"status": "failed", "configuration": {}}]
    here, there = (
        plan.configuration_at("svm", f"classification/{name}", history) for name in "ab"
    )
    assert here == there == plan.sobol_configurations("svm", CLASSIFICATION)[0]
    kinds = [kind for kind, _ in plan.POSITIONS]
    assert [kinds.count(kind) for kind in ("default", "sobol", "search")] == [1, 75, 75]


def history_of(count: int) -> list[dict[str, Any]]:
    """Records whose loss is least near C = 1."""
    history: list[dict[str, Any]] = []
    while len(history) < count:
        found = plan.configuration_at("svm", "regression/made", history) or {
            "C": 1.0, "gamma": 0.1, "epsilon": 0.1,
        }  # fmt: skip
        loss = abs(math.log10(found["C"]) - 2) + abs(math.log10(found["gamma"]) + 3)
        history.append(
            {"status": "ok", "configuration": found, "metrics": {"rmse": [[None, loss]]}}
        )
    return history


def test_a_plan_is_a_function_of_the_history_and_its_search_finds_better() -> None:
    first, second = history_of(49), history_of(49)
    assert first == second
    losses = np.array([record["metrics"]["rmse"][0][1] for record in first])
    assert losses[17:33].min() < losses[:17].min()
    assert np.median(losses[17:33]) < np.median(losses[1:17])


@pytest.mark.parametrize("learner", SPACES)
@pytest.mark.parametrize("name", [NAME, "regression/small"])
def test_each_learner_evaluates_its_default_and_a_configuration(
    archive: Path, learner: str, name: str
) -> None:
    if learner in LIBRARIES:
        pytest.importorskip(LIBRARIES[learner], reason="the learner's library is not installed")
    task = name.split("/")[0]
    space = space_of(learner, task)
    middle = parameters.decode(space, np.full(len(space), 0.45))
    if (budget := LEARNERS[learner].rungs) is not None:
        middle[budget] = N_TREES
    for configuration in (None, middle):
        found = evaluate(archive, name, learner, configuration)
        score = mean_metric(found["metrics"], "accuracy" if task == CLASSIFICATION else "r2")[-1]
        assert np.isfinite(score) and score > (0.3 if task == CLASSIFICATION else -0.5)
        expected = {p.name for p in space if p.is_active(found["configuration"])}
        if configuration is not None or learner != "xgboost":
            assert set(found["configuration"]) == expected
    if budget is not None:
        assert np.isfinite(mean_metric(found["metrics"], next(iter(found["metrics"])))).all()


def test_accuracy_is_what_scikit_learn_says() -> None:
    rng = np.random.default_rng(3)
    inputs, target = rng.normal(size=(120, 3)).astype(np.float32), rng.integers(0, 3, size=120)
    target[:90] = np.digitize(inputs[:90, 0], [-0.4, 0.4])
    data = datasets.prepare(NAME, inputs, np.zeros(3, dtype=bool), target)
    splits = [(np.flatnonzero(data.fold != k), np.flatnonzero(data.fold == k)) for k in range(3)]
    expected = cross_val_score(
        DecisionTreeClassifier(max_depth=3, random_state=0), inputs, target, cv=splits
    )
    found = evaluate_folds(
        CLASSIFICATION, prepare_splits(data, COMPLETE), "decision_tree", {"max_depth": 3}
    )
    accuracies = [fold[-1] for fold in found["metrics"]["accuracy"]]
    assert accuracies == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
def test_metrics_are_what_scikit_learn_says(classes: int) -> None:
    rng = np.random.default_rng(0)
    target = rng.permutation(np.arange(60) % classes)
    probabilities = rng.dirichlet(np.ones(classes), size=60).round(2) + 0.01
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    scores = probabilities[:, 1] if classes == 2 else probabilities
    assert auc(target, probabilities) == pytest.approx(
        roc_auc_score(target, scores, multi_class="ovr"), abs=1e-12
    )
    assert log_loss(target, probabilities) == pytest.approx(
        sklearn_log_loss(target, probabilities), abs=1e-9
    )
    with pytest.raises(ValueError, match="not finite"):
        metrics_of(CLASSIFICATION, target, np.full((60, classes), np.nan))


def test_a_killed_run_resumes_and_repeats_nothing(archive: Path, tmp_path: Path) -> None:
    calls: list[Any] = []
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert evaluate_until(counting(calls), archive, whole, "decision_tree", NAME, 20) == 20
    assert evaluate_until(counting(calls), archive, whole, "decision_tree", NAME, 20) == 0
    assert len(calls) == 20 and calls[0] is None
    evaluate_until(counting([]), archive, cut, "decision_tree", NAME, 12)
    path = records.path_of(cut, "decision_tree", NAME)
    path.write_bytes(path.read_bytes()[:-7])  # killed while it wrote the last line
    assert evaluate_until(counting([]), archive, cut, "decision_tree", NAME, 20) == 9
    same = [
        [(r["kind"], r["configuration"], r["metrics"]) for r in records.read(file)]
        for file in (path, records.path_of(whole, "decision_tree", NAME))
    ]
    assert same[0] == same[1]


def test_a_pair_that_another_process_holds_is_left_to_it(archive: Path, tmp_path: Path) -> None:
    calls: list[Any] = []
    with records.claimed(records.path_of(tmp_path, "svm", NAME)) as free:
        assert free
        assert evaluate_until(counting(calls), archive, tmp_path, "svm", NAME, 3) == 0
    assert not calls


def _spin(seconds: float) -> dict[str, Any]:
    if seconds < 0:
        os._exit(3)  # as a crash in compiled code ends it, without a report
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))
    return {"spun": seconds}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_worker_survives_long_and_crashing_evaluations() -> None:
    worker = Worker(_spin)
    try:
        statuses = [worker.run((s,), 0.2)["status"] for s in (0.01, 30, 0.01, -1, 0.01)]
    finally:
        worker.close()
    assert statuses == ["ok", "timed out", "ok", "crashed", "ok"]


def test_an_export_reads_back_and_restores(archive: Path, tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out" / "evaluations.npz"
    for name in (NAME, "regression/small"):
        evaluate_until(counting([]), archive, raw, "k_nearest_neighbours", name, 19)
    path = records.path_of(raw, "k_nearest_neighbours", NAME)
    records.append(path, {"kind": "search", "number": 2, "configuration": {}, "status": "failed"})
    for _ in range(2):
        environment.note(raw)
    counts = export(archive, raw, out)
    assert counts["k_nearest_neighbours"] == 39 and sum(counts.values()) == 39
    names, tables = read_tables(out)
    table = tables["k_nearest_neighbours", CLASSIFICATION]
    assert names == [NAME, "regression/small"] and table.metrics["auc"].shape == (20, 4)
    records_read = records.read(path)
    for row in range(19):
        record = records_read[row]
        again = parameters.from_row(table.space, table.configurations[row].tolist())
        assert again == record["configuration"]
        assert table.metrics["accuracy"][row] == pytest.approx(
            mean_metric(record["metrics"], "accuracy"), nan_ok=True, rel=1e-6
        )
    assert table.status.tolist() == [0] * 19 + [1] and np.isnan(table.metrics["auc"][19]).all()
    with np.load(out) as data:
        provenance = json.loads(str(data["provenance"]))
        assert provenance["folds"] == 3 and provenance["environments"] == [environment.versions()]
        assert data[f"folds/{NAME}"].tolist() == datasets.load(archive, NAME).fold.tolist()
    again_raw = tmp_path / "again"
    assert restore(out, again_raw) == 39 and restore(out, again_raw) == 0
    calls: list[Any] = []
    done = evaluate_until(counting(calls), archive, again_raw, "k_nearest_neighbours", NAME, 22)
    assert done == 2 and all(calls)
