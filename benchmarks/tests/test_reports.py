"""What `dre-bench report` reads, compares and writes."""

from __future__ import annotations

import numpy as np
import pytest
from run_records import crash, record
from typer.testing import CliRunner

from dre_bench.cli import app
from dre_bench.reports import report
from dre_bench.reports.results import (
    STUDIES,
    TABLES,
    best_known,
    collect,
    collect_tables,
    comparable,
    finished,
    ranks,
)

pytestmark = pytest.mark.slow

NAN = float("nan")


def on_table(sampler, task, values, *, seed=0, trials=None, scenario="a", n_initial=2):
    """A run on a table whose values are from 0 to 1."""
    return record(
        sampler,
        task,
        seed,
        values,
        scenario,
        problem="table",
        trials=trials or len(values),
        n_initial=n_initial,
        reference={"best": 1.0, "worst": 0.0},
    )


def studies(samplers=("random", "tpe", "dre"), *, n_tasks=6, n_trials=30, scenario="a", **more):
    """Each sampler is better than the one before it, on every task."""
    rng = np.random.default_rng(0)
    return [
        record(name, task, 0, rng.uniform(0.4, 0.41, n_trials) + 0.1 * i, scenario, **more)
        for i, name in enumerate(samplers)
        for task in range(n_tasks)
    ]


def collected(records):
    records = finished(records)
    return collect(records, best_known(records))


def test_regret_by_hand():
    # The best known value is 1.0, which a run found, not the sample's 0.9; the scale is 1.0 - 0.5.
    results = collected([record("x", 1, 0, [0.4, 0.75, 0.6]), record("y", 1, 0, [0.5, 0.5, 1.0])])
    np.testing.assert_allclose(results.regret.loc["x"], [[1.2, 0.5, 0.5]])
    np.testing.assert_allclose(results.regret.loc["y"], [[1.0, 1.0, 0.0]])
    assert ranks(results.regret)[3].tolist() == [2, 1]
    assert results.protocol is STUDIES


def test_only_pairs_are_compared_and_the_later_run_counts():
    results = collected(
        [
            record("x", 1, 0, [0.6]),
            record("x", 1, 0, [0.7]),
            record("y", 1, 0, [0.9]),
            record("x", 2, 0, [0.6]),
            {**record("y", 2, 0, [0.6]), "error": "crash"},
        ]
    )
    assert results.keys == [("a", 1, 0)]
    np.testing.assert_allclose(results.regret.loc["x"], [[0.5]])


def test_a_trial_without_a_value_gains_nothing():
    lines = [record("x", 1, 0, [NAN, 0.6, NAN, 0.9]), record("y", 1, 0, [0.7, NAN, NAN, NAN])]
    results = collect(lines, best_known(lines))
    # The best known value is 0.9, and 0.5 is what counts where nothing has a value yet.
    np.testing.assert_allclose(results.regret, [[1, 0.75, 0.75, 0], [0.5] * 4])
    assert best_known(lines[1:])["a", 1] == 0.9  # that of the random sample


def test_who_is_reported_does_not_change_the_scale(written):
    low, high = record("x", 1, 0, [0.7]), record("z", 1, 0, [1.5])
    crashes = [crash(name, 1, [value]) for name, value in (("x", 0.7), ("z", 1.5))]
    path = written([low, high, *crashes])
    for problem in ("maximise", "crash"):
        (every,) = report.load([path], problem=problem).parts
        (chosen,) = report.load([path], problem=problem, samplers=["x"]).parts
        cells = [next(iter(part.tables.values())).cells.iloc[0, 0] for part in (every, chosen)]
        assert cells[0] == cells[1]


def test_stagnating():
    flat, rising = [0.6] * 40, [0.6] * 39 + [0.65]
    found = [0.9] * 40
    results = collected(
        [record(name, 1, 0, v) for name, v in zip("xyz", (flat, rising, found), strict=True)]
    )
    assert results.stagnating().tolist() == [1, 0, 0]


def test_regret_of_tables_by_hand():
    """What has no value improves nothing, and an exhausted table leaves a run where it is."""
    wide = {"best": 3.0, "worst": 1.0}
    results = collect_tables(
        [
            {**on_table("x", 1, [NAN, 2.0, NAN, 1.5, 3.0]), "reference": wide},
            {**on_table("y", 1, [1.0, 2.5], trials=5), "reference": wide},
        ]
    )
    np.testing.assert_allclose(results.regret, [[1, 0.5, 0.5, 0.5, 0], [1] + [0.25] * 4])
    assert results.protocol is TABLES and TABLES.checkpoints == (10, 20, 35, 50, 100)
    assert results.seconds.loc["y"].isna().to_numpy().tolist() == [[False] * 2 + [True] * 3]


def test_times_of_tables_leave_out_initial_rows_and_what_was_exhausted():
    long = on_table("x", 1, [0.5] * 8, n_initial=5) | {"ask_seconds": [0.0] * 5 + [1.0, 2.0, 3.0]}
    short = on_table("y", 1, [0.5] * 6, trials=8, n_initial=5)
    short["ask_seconds"] = [0.0] * 5 + [4.0]
    results = collect_tables([long, short])
    assert results.seconds_per_ask().to_dict() == {"x": 2.0, "y": 4.0}


def test_scenarios_of_other_samplers_and_lengths_are_compared_apart():
    both = [record(name, 1, 0, [0.6] * 4) for name in ("x", "y")]
    more = [record(name, 1, 0, [0.6] * 4, "b") for name in ("y", "x")]
    longer = [record(name, 1, 0, [0.6] * 9) for name in ("x", "y")]
    three = [record(name, 1, 0, [0.6] * 4, "c") for name in ("x", "y", "z")]
    lonely = [record("x", 1, 0, [0.6] * 4, "d"), record("w", 2, 0, [0.6] * 4, "d")]
    groups = comparable([*both, *more, *longer, *three, *lonely])
    assert groups == [both + more, longer, three]


def test_text_has_p_values_and_says_what_was_left_out(written):
    rng = np.random.default_rng(0)
    lines = [
        record(name, task, seed, rng.uniform(0.3, high, 50), scenario)
        for name, high in (("random", 0.8), ("dre", 0.95))
        for scenario in ("a", "b")
        for task in range(6)
        for seed in range(2)
    ]
    lines += [record("dre", 9, 0, [0.1] * 50), {**record("dre", 9, 1, [0.1]), "error": "x"}]
    made = report.load([written(lines)], against="random")
    text = report.text(made)
    assert text.startswith("### All scenarios: 12 tasks, 24 runs a sampler")
    assert "### b: 6 tasks, 12 runs a sampler" in text
    assert "12/0/0 p=0.00049" in text
    assert text.endswith("Left out of maximise: 1 failed runs, 1 runs without their pair.")


def test_tables_are_tested_like_studies(written):
    """Holm doubles 2 / 2^6 for two rivals."""
    lines = [
        on_table(name, task, [0.1, 0.1 * level] * 10)
        for name, level in (("random", 2), ("dre", 9), ("gp", 5))
        for task in range(6)
    ]
    text = report.text(report.load([written(lines)], against="dre"))
    assert "| vs dre@10 | vs dre@20 | area |" in text
    assert "| gp | 0.5000 | 0.5000 | 2.00 | 2.00 | 0/0/6 p=0.062 | 0/0/6 p=0.062 |" in text
    assert "| dre | 0.1000 | 0.1000 | 1.00 | 1.00 | — | — |" in text


def test_problems_are_parts_in_their_order(written):
    lines = [
        *(on_table(name, 1, [0.2] * 20) for name in ("random", "dre")),
        *(crash(name, 1, [0.6] * 10) for name in ("random", "dre")),
        *studies(("random", "dre"), problem="ray"),
        *studies(("random", "dre"), scenario="b"),
        *studies(("random", "dre"), n_trials=10),
    ]
    made = report.load([written(lines[:30], "1.jsonl"), written(lines[30:], "2.jsonl")])
    titles = ["maximise (1): b, 30 trials", "maximise (2): a, 10 trials", "crash", "table", "ray"]
    assert [part.title for part in made.parts] == titles
    assert [line for line in report.text(made).splitlines() if line.startswith("## ")] == [
        f"## {title}" for title in titles
    ]
    assert not made.left_out


def test_frameworks_share_the_best_value_that_is_known(written):
    """What a study by Ray found is the best of a task by Optuna, too."""
    lines = [
        *(record(name, 1, 0, [0.7] * 20) for name in ("random", "dre")),
        *(record(name, 1, 0, [1.0] * 20, problem="ray") for name in ("random", "dre")),
    ]
    first, second = report.load([written(lines)]).parts
    assert first.curves.results.regret.to_numpy().ravel().tolist() == pytest.approx([0.6] * 40)
    assert second.curves.results.regret.max(axis=None) == 0.0


def test_one_problem_scenario_or_sampler(written):
    path = written(
        [
            *studies(),
            *studies(scenario="b"),
            *(crash(name, 1, [0.6] * 10) for name in ("tpe", "dre")),
        ]
    )
    (part,) = report.load([path], problem="crash").parts
    assert part.name == "crash" and part.curves is None
    (part,) = report.load([path], problem="maximise", scenario="b").parts
    assert part.curves.results.scenarios == ["b"]
    chosen = report.load([path], samplers=["tpe", "dre"]).parts
    assert chosen[0].curves.results.samplers == ["tpe", "dre"] and len(chosen) == 2


def test_rivals_and_checkpoints_hold_where_a_part_has_them(written):
    lines = [*studies(), *studies(("x", "y"), n_trials=8, problem="syne-tune")]
    first, second = report.load([written(lines)], against="tpe", checkpoints=(25, 5, 10)).parts
    assert (first.curves.against, first.curves.checkpoints) == ("tpe", (5, 10, 25))
    assert (second.curves.against, second.curves.checkpoints) == ("x", (5,))
    assert report.load([written(lines)], checkpoints=(9,)).parts[1].curves.checkpoints == (8,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoints": (0, 5)}, "checkpoints must be from 1 to 30"),
        ({"against": "nobody"}, "against must be among random, tpe, dre, got 'nobody'"),
        ({"samplers": ["nobody"]}, "of the sampler 'nobody', only of dre, random, tpe"),
        ({"problem": "crash"}, "of the problem 'crash', only of maximise"),
        ({"scenario": "b"}, "of the scenario 'b', only of a"),
    ],
)
def test_what_is_wrong_is_said(written, options, message):
    path = written(studies())
    with pytest.raises(ValueError, match=message):
        report.load([path], **options)


def test_files_that_hold_nothing_to_compare(written, tmp_path):
    with pytest.raises(ValueError, match=r"missing\.jsonl does not exist"):
        report.load([tmp_path / "missing.jsonl"])
    unpaired = written([record("x", 1, 0, [0.5]), record("y", 2, 0, [0.5])])
    with pytest.raises(ValueError, match="finished by every sampler"):
        report.load([unpaired])
    earlier = {"method": "dre", "scenario": "a", "task": 1, "seed": 0, "steps": 7, "regret": [0]}
    with pytest.raises(ValueError, match="a record has no 'sampler'"):
        report.load([written([earlier])])
    with pytest.raises(ValueError, match="unknown problem 'chess'; known: maximise"):
        report.load([written([record("x", 1, 0, [0.5], problem="chess")])])


def test_page_and_figures_of_several_problems(written, tmp_path):
    lines = [
        *studies(("random", "dre"), n_tasks=2, versions={"optuna": "5.0.0"}),
        *(crash(name, 1, [0.6] * 10) for name in ("random", "dre")),
        record("dre", 9, 0, [0.1]) | {"error": "crash"},
    ]
    made = report.load([written(lines)], against="dre")
    page, folder = tmp_path / "new" / "page.html", tmp_path / "figures"
    report.write(made, command="dre-bench report x", html=page, figures=folder)
    html = page.read_text(encoding="utf-8")
    assert ">vs dre@<wbr>" in html and "dre-bench report x" in html
    assert "Left out of maximise: 1 failed runs" in html
    assert ">optuna</th><td>5.0.0</td>" in html
    names = {"maximise-regret", "maximise-rank"}
    assert {file.stem for file in folder.iterdir()} == names


def test_real_studies_have_no_figures(written, tmp_path):
    made = report.load([written([crash(name, 1, [0.6] * 10) for name in ("random", "dre")])])
    with pytest.raises(ValueError, match="tables only: see --html"):
        report.write(made, command="", figures=tmp_path / "figures")


def test_a_terminal_gets_tables_and_a_file_gets_markdown(written, monkeypatch):
    runner = CliRunner()
    path = written(studies(n_tasks=2))
    plain = runner.invoke(app, ["report", str(path)]).stdout
    assert "| sampler | regret@" in plain and "┃" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, this is a terminal
    monkeypatch.setenv("COLUMNS", "300")
    drawn = runner.invoke(app, ["report", str(path)]).stdout
    assert "┃" in drawn and "\x1b[1m" in drawn and "| --- |" not in drawn
    for line in plain.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and "---" not in cells:
            assert all(cell in drawn for cell in cells)


def test_the_command_line_says_what_was_asked_for(written, tmp_path):
    runner = CliRunner()
    path, page = written(studies(n_tasks=2)), tmp_path / "page.html"

    def run(*arguments):
        return runner.invoke(app, ["report", *map(str, arguments)])

    asked = ["--against", "tpe", "--samplers", "tpe,dre", "--problem", "maximise"]
    asked += ["--scenario", "a", "--checkpoints", "10,99"]
    result = run(path, "--html", page, *asked)
    assert result.exit_code == 0 and "regret@10" in result.stdout and "@99" not in result.stdout
    assert f"--html {page} --against tpe --samplers tpe,dre" in page.read_text()
    assert "--scenario a --checkpoints 10,99" in page.read_text()
    few = run(path, "--samplers", "tpe, dre").stdout
    assert few == run(path, "--samplers", "dre,tpe").stdout and "| dre" in few
    assert (
        "<h2>The best value over the whole, conditional space (maximise)</h2>" in page.read_text()
    )
    assert "Missing argument" in run("--against", "tpe").stderr
    assert "must be numbers separated by commas" in run(path, "--checkpoints", "many").stderr
