"""Figures of real studies, on records that are computed by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dre_bench.reports import real_studies, report

REFERENCE = {"median": 0.5, "best": 0.7}


def record(problem, sampler, seed=0, task=3, trials=10, **results):
    return {
        "sampler": sampler,
        "scenario": "rbv2_rpart",
        "task": task,
        "seed": seed,
        "trials": trials,
        "problem": problem,
        "seconds": 1.0,
        "stats": {},
        **results,
    }


def constrained(sampler, values, violations, **more):
    pairs = [[violation, -1.0] for violation in violations]
    return record(
        "constrained-50", sampler, values=values, violations=pairs, reference=REFERENCE, **more
    )


def pareto(sampler, volume, **more):
    return record("pareto-memory", sampler, values=[0] * 10, hypervolume=[volume] * 10, **more)


def workers(problem, values, **more):
    finished = [0.1 * n for n in range(1, len(values) + 1)]
    return record(problem, "a", values=values, finished=finished, reference=REFERENCE, **more)


def test_regret_counts_feasible_trials_only():
    (found,) = real_studies.collect(
        [
            # 0.9 is feasible and the best that is known: the scale is 0.9 - 0.5.
            constrained("a", [0.7] * 9 + [0.9], [0.0] * 9 + [-1.0], stats={"fallbacks": 2}),
            constrained("b", [1.0, 0.6] + [0.4] * 8, [0.1, 0.0] + [1.0] * 8),
            constrained("c", [1.0] * 10, [0.1] * 10),
        ]
    )
    np.testing.assert_allclose(found.figures["regret@10"], [0.0, 0.75, np.inf])
    np.testing.assert_allclose(found.means()["regret@10"], [0.0, 0.75, 1.0])
    np.testing.assert_array_equal(found.ranks("regret@10"), [1, 2, 3])
    np.testing.assert_allclose(found.figures["feasible"], [1, 0.1, 0])
    overview, tests = real_studies.tables(found, "b").values()
    assert overview.head[-1] == "fallbacks"
    assert overview.cells["fallbacks"].tolist() == ["2", "0", "0"]
    assert (
        overview.best.loc["a", ["regret@10", "rank@10"]].all() and overview.best.sum().sum() == 2
    )
    assert tests.cells["regret@10"].to_dict() == {"a": "1/0/0 p=1", "c": "0/0/1 p=1"}


def test_only_evaluations_with_all_data_count_under_successive_halving():
    evaluations = [(1, 0.04, 0.9), (27, 0.08, 0.6), (1, 0.15, 0.9), (27, 0.5, 0.7)]
    asha = record("asha", "a", values=[1, 1], evaluations=evaluations, reference=REFERENCE)
    (found,) = real_studies.collect([asha])
    figures = found.means().iloc[0]
    regrets = [figures[f"regret@{share}"] for share in ("5%", "10%", "20%", "50%", "100%")]
    np.testing.assert_allclose(regrets, [1.0, 0.5, 0.5, 0.0, 0.0])
    assert figures["full"] == 2
    assert len(real_studies.tables(found, "a")) == 1  # one sampler is compared with nothing


def test_both_problems_of_halving_are_measured_on_one_scale():
    lines = [
        record(problem, "a", values=[1], evaluations=[(27, 0.5, value)], reference=REFERENCE)
        for problem, value in (("asha", 0.6), ("asha-syne-tune", 0.9))
    ]
    asha, syne_tune = real_studies.collect(lines)
    regrets = [table.means()["regret@100%"].item() for table in (asha, syne_tune)]
    np.testing.assert_allclose(regrets, [0.75, 0.0])


def test_crashes_are_counted_after_the_start():
    values = [None] * 30 + [0.6] * 7 + [None] * 3
    crash = record("crash", "a", values=values, reference=REFERENCE)
    (found,) = real_studies.collect([crash])
    figures = found.means().iloc[0]
    assert figures["crashed >30"] == pytest.approx(0.3)
    assert figures["regret@25"] == 1.0
    (found,) = real_studies.collect([crash], checkpoints=(35, 99))
    assert found.ranked == ["regret@35"]


def test_larger_hypervolumes_are_better():
    lines = [
        pareto(sampler, volume + 0.01 * task, task=task)
        for sampler, volume in (("tpe", 0.6), ("dre", 0.9), ("nsga2", 0.3))
        for task in range(6)
    ]
    (found,) = real_studies.collect(lines)
    np.testing.assert_array_equal(found.ranks("hypervolume@10"), [2, 1, 3])
    overview, tests = real_studies.tables(found, "tpe").values()
    assert overview.best.loc["dre"].tolist() == [True, True, False]
    # All of 6 tasks, by Holm for two rivals: 2 * 2 / 2^6.
    assert tests.cells.iloc[:, 0].to_dict() == {"dre": "6/0/0 p=0.062", "nsga2": "0/0/6 p=0.062"}
    assert not tests.best.any(axis=None)


def test_tests_count_each_task_once():
    """Seeds of one task are no independent evidence; regrets above 1 count as 1."""
    lines = [
        constrained(name, [value] * 10, [violation] * 10, task=task, seed=seed)
        for name, value, violation in (("a", 0.6, 0.0), ("b", 0.1, 0.0), ("c", 0.6, 1.0))
        for task in range(3)
        for seed in range(4)
    ]
    (found,) = real_studies.collect(lines)
    tests = found.comparisons("b", "regret@10")
    assert tests.loc["a", ["wins", "ties", "losses"]].tolist() == [3, 0, 0]
    assert tests.loc[["b", "c"], "ties"].tolist() == [3, 3]


def test_both_numbers_of_workers_are_measured_on_one_scale():
    lines = [workers("async-8", [0.6] * 10), workers("async-1", [0.9] * 10)]
    eight, single = real_studies.collect(lines)
    regrets = [table.means()["regret@10"].item() for table in (eight, single)]
    np.testing.assert_allclose(regrets, [0.75, 0.0])


def test_report_says_what_was_paired(tmp_path):
    path = tmp_path / "studies.jsonl"
    lines = [
        pareto(sampler, volume, seed=seed)
        for sampler, volume in (("dre", 0.9), ("tpe", 0.6))
        for seed in range(3)
    ]
    lines[-1] = {**lines[-1], "error": "crash"}
    path.write_text("\n".join(map(json.dumps, lines)))
    text = report.text(report.load([path]))
    assert "### pareto-memory: 1 task, 2 runs a sampler" in text
    assert "| dre | 0.900 | 1.00 | 0.1 |" in text
    assert "| tpe | 0.600 | 2.00 | 0.1 |" in text
    assert "### pareto-memory: tasks won/tied/lost against dre" in text
    assert "| tpe | 0/0/1 p=1 |" in text
    left_out = "Left out of pareto-memory: 1 failed runs, 1 runs without their pair."
    assert left_out in text
