"""Published curves of HPO-B beside our own runs of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dre_plugins.benchmarks import published, report


def curves(values, *, seeds=("test0", "test1"), datasets=("7", "9")):
    return {"4796": {dataset: dict.fromkeys(seeds, values) for dataset in datasets}}


def own(method, regret, *, dataset="7", start="test0", steps=2, training_steps=500):
    return {
        "space": "4796",
        "dataset": dataset,
        "start": start,
        "method": method,
        "steps": steps,
        "training_steps": training_steps,
        "regret": regret,
    }


def write(path, content):
    path.write_text(json.dumps(content))
    return path


def test_a_file_is_one_method(tmp_path):
    file = write(tmp_path / "GP.json", curves([0.5, 0.75, 1.0], seeds=("test0", "test3")))
    loaded = published.load_published(file)
    assert list(loaded) == ["GP"]
    assert sorted(loaded["GP"]) == [
        ("4796", "7", 0),
        ("4796", "7", 3),
        ("4796", "9", 0),
        ("4796", "9", 3),
    ]
    np.testing.assert_array_equal(loaded["GP"]["4796", "9", 3], [0.5, 0.25, 0.0])


def test_a_folder_holds_one_file_for_each_method(tmp_path):
    write(tmp_path / "RGPE.json", curves([0.5, 0.5]))
    write(tmp_path / "GP.json", curves([0.5, 0.5]))
    (tmp_path / "README.md").write_text("not a method")
    assert list(published.load_published(tmp_path)) == ["GP", "RGPE"]


def test_beside_our_own_runs(tmp_path):
    """A run that ended because its table was exhausted stays at what it had found."""
    file = write(tmp_path / "GP.json", curves([0.5, 0.6, 0.9]))
    runs = [
        own("prior", [0.3, 0.0]),
        own("prior", [0.3, 0.2, 0.2], start="test1"),
        own("none", [0.4, 0.4, 0.1]),
        own("none", [0.4, 0.4, 0.1], start="test1"),
    ]
    results = published.combined(published.own_curves(runs), published.load_published(file))
    assert results.samplers == ("dre:prior", "dre:none", "GP")
    assert results.keys == (("4796", "7", 0), ("4796", "7", 1))  # nobody else has data set 9
    np.testing.assert_allclose(
        results.regret[:, 0], [[0.3, 0, 0], [0.4, 0.4, 0.1], [0.5, 0.4, 0.1]]
    )
    np.testing.assert_allclose(results.ranks()[:, 0, 2], [1, 2.5, 2.5])
    # Index 0 is what the initial configurations reached: no step is done yet.
    assert results.index_of([0, 2]) == [0, 2]
    assert results.steps.tolist() == [0, 1, 2]
    assert np.isnan(results.seconds_per_ask()).all()


def test_lengths_of_meta_training_are_told_apart():
    runs = [own("prior", [0.1], training_steps=n) for n in (500, 3000)] + [own("none", [0.1])]
    assert list(published.own_curves(runs)) == ["dre:prior:500", "dre:prior:3000", "dre:none"]


def test_two_methods_of_one_name():
    one = {"GP": {("4796", "7", 0): np.zeros(2)}}
    with pytest.raises(ValueError, match="two methods are named 'GP'"):
        published.combined(one, one)


def test_nothing_in_common():
    with pytest.raises(ValueError, match="finished by every sampler"):
        published.combined(
            {"A": {("1", "7", 0): np.zeros(2)}}, {"B": {("2", "7", 0): np.zeros(2)}}
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], r"the file is \[1, 2\]; expected \{space"),
        ({}, "the file is {}"),
        ({"4796": [0.1]}, r"space 4796 is \[0.1\]"),
        ({"4796": {"7": [0.1, 0.2]}}, r"data set 4796/7 is \[0.1, 0.2\]"),
        ({"4796": {"7": {"seed0": [0.1]}}}, "4796/7/seed0: the seed is named 'seed0'"),
        ({"4796": {"7": {"test0": {"0": 0.1}}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": []}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": 0.5}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": [[0.1], [0.2]]}}}, "expected a list of incumbents"),
        ({"4796": {"7": {"test0": ["a"]}}}, "expected a list of incumbents"),
        (curves([71.0, 80.5]), r"from 71 to 80.5; expected them scaled to \[0, 1\]"),
        (curves([0.5, None]), r"scaled to \[0, 1\]"),
        (curves([0.5, 0.4]), "falls at step 1; expected the best value so far"),
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


def test_report_from_the_command_line(tmp_path, capsys):
    folder = tmp_path / "published"
    folder.mkdir()
    write(folder / "GP.json", curves([0.5] * 5 + [0.9]))
    runs = tmp_path / "hpob.jsonl"
    lines = [
        own("prior", [0.4] * 5 + [0.05], dataset=dataset, start=start, steps=5)
        for dataset in ("7", "9")
        for start in ("test0", "test1")
    ]
    runs.write_text("\n".join(map(json.dumps, lines)))
    report.main([str(runs), "--published", str(folder)])
    printed = capsys.readouterr().out
    assert "### All scenarios: 2 tasks, 4 runs a sampler" in printed
    # 5 steps after the initial configurations are the sixth number.
    assert "| dre:prior | 0.0500 | 1.00 |" in printed
    assert "| GP | 0.1000 | 2.00 |" in printed

    report.main(["--published", str(folder / "GP.json"), "--checkpoints", "0,5"])
    assert "| GP | 0.5000 | 0.1000 |" in capsys.readouterr().out


def test_protocols_are_not_mixed(tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    study = {"sampler": "tpe", "scenario": "a", "task": 1, "seed": 0, "trials": 1}
    runs.write_text("\n".join(map(json.dumps, [own("prior", [0.1]), study])))
    with pytest.raises(SystemExit):
        report.main([str(runs)])
    assert "different protocols (hpob, studies)" in capsys.readouterr().err
