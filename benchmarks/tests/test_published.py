"""Published curves of HPO-B beside our own runs of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dre_bench.reports import published, report
from dre_bench.reports.results import ranks


def curves(values, *, seeds=("test0", "test1"), datasets=("7", "9")):
    return {"4796": {dataset: dict.fromkeys(seeds, values) for dataset in datasets}}


def our_run(sampler, values, *, task="7", seed=0, steps=2, space="4796"):
    """A run on a table from 0 to 1, with two initial rows; the first one has no value."""
    return {
        "sampler": sampler,
        "scenario": f"hpob:{space}",
        "task": task,
        "seed": seed,
        "trials": 2 + steps,
        "problem": "table",
        "n_initial": 2,
        "values": [float("nan"), *values],
        "ask_seconds": [0.0, *[0.1] * len(values)],
        "reference": {"best": 1.0, "worst": 0.0},
    }


def write(path, content):
    path.write_text(json.dumps(content))
    return path


def test_a_file_is_one_method(tmp_path):
    file = write(tmp_path / "GP.json", curves([0.5, 0.75, 1.0], seeds=("test0", "test3")))
    loaded = {(r["scenario"], r["task"], r["seed"]): r for r in published.load_published(file)}
    assert [*loaded] == [("hpob:4796", d, seed) for d in ("7", "9") for seed in (0, 3)]
    assert {record["sampler"] for record in loaded.values()} == {"GP"}
    assert loaded["hpob:4796", "9", 3]["values"].tolist() == [0.5, 0.75, 1.0]


def test_a_folder_holds_one_file_for_each_method(tmp_path):
    write(tmp_path / "RGPE.json", curves([0.5, 0.5]))
    write(tmp_path / "GP.json", curves([0.5, 0.5]))
    (tmp_path / "README.md").write_text("not a method")
    assert {r["sampler"] for r in published.load_published(tmp_path)} == {"GP", "RGPE"}


def test_beside_our_own_runs(tmp_path):
    """A run that ended because its table was exhausted stays at what it had found."""
    file = write(tmp_path / "GP.json", curves([0.5, 0.6, 0.9]))
    runs = [
        our_run("dre:prior=trained", [0.7, 1.0]),
        our_run("dre:prior=trained", [0.7, 0.8, 0.1], seed=1),
        our_run("dre", [0.6, float("nan"), 0.9]),
        our_run("dre", [0.6, 0.2, 0.9], seed=1),
    ]
    results = published.combined(runs, published.load_published(file))
    assert results.samplers == ["dre:prior=trained", "dre", "GP"]
    assert results.keys == [("4796", "7", 0), ("4796", "7", 1)]  # nobody else has data set 9
    first = results.regret.xs(0, level="seed")
    np.testing.assert_allclose(first, [[0.3, 0, 0], [0.4, 0.4, 0.1], [0.5, 0.4, 0.1]])
    assert ranks(first.assign(seed=0).set_index("seed", append=True))[2].tolist() == [1, 2.5, 2.5]
    # Step 0 is what the initial configurations reached: no step is done yet.
    assert [*results.regret.columns] == [0, 1, 2]
    assert results.seconds_per_ask().isna().all()


def test_own_regrets_are_rounded_like_published_ones():
    results = published.combined([our_run("dre", [1 / 3, 0.5, 1.0])], [])
    assert results.regret.to_numpy().tolist() == [[0.666667, 0.5, 0.0]]


def test_two_methods_of_one_name():
    with pytest.raises(ValueError, match="two methods are named 'GP'"):
        published.combined([our_run("GP", [0.5])], [{**our_run("GP", [0.5]), "n_initial": 1}])


def test_nothing_in_common():
    with pytest.raises(ValueError, match="finished by every sampler"):
        published.combined([our_run("A", [0.5], task="7"), our_run("B", [0.5], task="9")], [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], r"json is \[1, 2\]; expected \{space"),
        ({}, "json is {}"),
        ({"4796": [0.1]}, r"4796 is \[0.1\]"),
        ({"4796": {"7": [0.1, 0.2]}}, r"4796/7 is \[0.1, 0.2\]"),
        ({"4796": {"7": {"seed0": [0.1]}}}, "4796/7/seed0: expected test0, test1"),
        ({"4796": {"7": {"test0": {"0": 0.1}}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": []}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": 0.5}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": [[0.1], [0.2]]}}}, r"scaled to \[0, 1\]"),
        ({"4796": {"7": {"test0": ["a"]}}}, r"scaled to \[0, 1\]"),
        (curves([71.0, 80.5]), r"expected incumbents scaled to \[0, 1\].*got \[71.0, 80.5"),
        (curves([0.5, None]), r"scaled to \[0, 1\]"),
        (curves([0.5, 0.4]), "test0 falls; expected the best value so far"),
        ({"4796": {"7": {"test0": [0.1], "test1": [0.1, 0.2]}}}, r"different lengths, \[1, 2\]"),
    ],
)
def test_other_shapes_are_named(tmp_path, content, message):
    file = write(tmp_path / "GP.json", content)
    with pytest.raises(ValueError, match=message) as caught:
        published.load_published(file)
    assert str(file) in str(caught.value)


def test_no_json(tmp_path):
    (tmp_path / "GP.json").write_text("{oops")
    with pytest.raises(ValueError, match=r"GP\.json: no JSON"):
        published.load_published(tmp_path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(ValueError, match="no JSON files"):
        published.load_published(tmp_path)


def test_a_report_counts_steps_after_the_initial_rows(tmp_path):
    folder = tmp_path / "published"
    folder.mkdir()
    write(folder / "GP.json", curves([0.5] * 5 + [0.9]))
    runs = tmp_path / "hpob.jsonl"
    lines = [
        our_run("dre", [0.6] * 5 + [0.95], task=task, seed=seed, steps=5)
        for task in ("7", "9")
        for seed in range(2)
    ]
    # Tables of other benchmarks are reported apart, in evaluations.
    lines.append({**our_run("dre", [0.6] * 9, steps=8), "scenario": "rbv2_rpart", "task": 3})
    runs.write_text("\n".join(map(json.dumps, lines)))
    text = report.text(report.load([runs], [folder], against="GP"))
    assert "## table (1): 4796, 5 steps" in text
    assert "## table (2): rbv2_rpart, 10 evaluations" in text
    assert "### All scenarios: 2 tasks, 4 runs a sampler" in text
    # 5 steps after the initial configurations are the sixth number.
    assert "| dre | 0.0500 | 1.00 | 2/0/0 p=0.5 |" in text
    assert "| GP | 0.1000 | 2.00 | — |" in text
    assert "Left out" not in text

    contents = report.load([], [folder / "GP.json"], checkpoints=(0, 5))
    assert "| GP | 0.5000 | 0.1000 |" in report.text(contents)
    chosen = report.load([runs], [folder], scenario="hpob:4796", samplers=["GP", "dre"])
    assert len(chosen.parts) == 1 and "| GP |" in report.text(chosen)
    with pytest.raises(ValueError, match="'hpob:5971', only of hpob:4796"):
        report.load([], [folder], scenario="hpob:5971")


def test_without_published_curves_tables_of_hpob_are_tables(tmp_path):
    runs = tmp_path / "hpob.jsonl"
    lines = [our_run(name, [0.6] * 9, steps=8) for name in ("dre", "random")]
    runs.write_text("\n".join(map(json.dumps, lines)))
    assert "| dre | 0.4000 | 1.50 |" in report.text(report.load([runs]))
