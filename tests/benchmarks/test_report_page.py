"""The report as a page and as figures."""

from __future__ import annotations

import json
import re
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

from dre_plugins.benchmarks import report
from dre_plugins.benchmarks.results import collect
from dre_plugins.benchmarks.summary import Analysis, in_words

pytest.importorskip("matplotlib")
pytest.importorskip("scikit_posthocs")

from dre_plugins.benchmarks import figures, page

EVIL = "<script>alert('$x_1$ & \"co\"')</script>"
VOID = {"meta", "link", "img", "br", "input"}


def record(sampler, task, values, *, seed=0, scenario="a", **more):
    return {
        "sampler": sampler,
        "scenario": scenario,
        "task": task,
        "seed": seed,
        "trials": len(values),
        "values": list(values),
        "ask_seconds": [0.25] * len(values),
        "reference": {"median": 0.5, "best": 1.0},
        **more,
    }


def records(samplers=("random", "tpe", "dre"), *, n_tasks=8, n_trials=30, scenarios=("a", "b")):
    """Later samplers are better: on every task after the first trials."""
    rng = np.random.default_rng(0)
    steps = np.arange(n_trials)
    return [
        record(
            name,
            task,
            0.5 + 0.45 * (1 - np.exp(-steps * (i + 1) / 30)) + rng.uniform(0, 0.001, n_trials),
            seed=seed,
            scenario=scenarios[task % len(scenarios)],
            versions={"optuna": "5.0.0"},
        )
        for i, name in enumerate(samplers)
        for task in range(n_tasks)
        for seed in range(2)
    ]


def analyse(lines, checkpoints=(10, 20, 30), against=None):
    results = collect(lines)
    generator = np.random.default_rng(0)
    return Analysis.of(results, against or results.samplers[0], checkpoints, generator)


def rendered(lines, **more):
    analysis = analyse(lines, **more)
    return page.render(
        analysis, figures.draw_all(analysis), command="python -m x <runs>", versions={"a&b": "1<2"}
    )


class Page(HTMLParser):
    """Check that elements are closed in order, and collect what is referred to."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        named = dict(attributes)
        if "id" in named:
            self.ids.append(named["id"])
        self.links += [v for k, v in attributes if k in ("href", "src", "xlink:href", "action")]
        self.links += [
            f"#{m}" for _, v in attributes for m in re.findall(r"url\(#(.*?)\)", v or "")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html):
    parser = Page()
    parser.feed(html)
    parser.close()
    assert not parser.open
    return parser


@pytest.fixture(scope="module")
def html():
    return rendered(records(), against="dre")


def test_page_parses_and_refers_to_nothing_outside(html):
    found = parsed(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert not re.search(r"https?:|src=|@import|<link|xmlns", html)
    assert found.links and all(link.startswith("#") for link in found.links)


def test_ids_are_unique_and_links_arrive(html):
    found = parsed(html)
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)


def test_every_figure_has_a_label_and_its_numbers(html):
    found = parsed(html)
    # Regret, rank, three critical differences, time, two scenarios.
    assert found.tags.count("svg") == found.tags.count("figure") == html.count('role="img"') == 8
    sections = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', html, re.DOTALL))
    for name in ("regret", "rank", "significance", "time", "scenarios", "tasks"):
        assert "<table>" in sections[name], name
    assert sections["regret"].count("<tr>") == 1 + 3 + 1 + 30  # checkpoints, and every trial
    assert "0.250 s" in sections["overview"]


def test_names_are_escaped():
    lines = records(("random", EVIL, "dre"), n_tasks=3, scenarios=("a",))
    html = rendered(lines, against=EVIL, checkpoints=(30,))
    found = parsed(html)
    assert "script" not in found.tags
    assert sum(EVIL in text for text in found.text) > 5
    assert "python -m x &lt;runs&gt;" in html and "a&amp;b" in html and "1&lt;2" in html


def test_page_is_the_same_each_time():
    lines = records(("random", "dre"), n_tasks=2, scenarios=("a",))
    assert rendered(lines) == rendered(lines)


def test_two_samplers_and_one_task_are_enough():
    html = rendered(records(("random", "dre"), n_tasks=1, scenarios=("a",)))
    parsed(html)
    assert "Critical differences need at least 3 samplers and 2 tasks." in html
    assert "the smallest possible p is 1." in html


def test_one_sampler_alone():
    html = rendered(records(("dre",), n_tasks=2, scenarios=("a",)))
    assert "nothing to compare" in html
    parsed(html)


def test_equals_without_regret_are_drawn():
    flat = [record(name, task, [1.0] * 5) for name in ("x", "y", "z") for task in (1, 2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = rendered(flat, checkpoints=(5,))
    assert "x, y and z share the lowest mean regret after 5 trials: 0.000." in html


def test_many_samplers_are_told_apart():
    """More than there are colours: dashes, no bands, and labels that do not overlap."""
    names = tuple(f"{'very-' * 8}long-{i}" for i in range(16))
    results = collect(records(names, n_tasks=2))
    (_, log) = figures.regret_curves(results).axes
    assert not log.collections
    heights = sorted(label.get_position()[1] for label in log.texts)
    assert len(heights) == 16 and min(np.diff(heights)) > 0.05
    assert len({str(figures.style_of(i)) for i in range(16)}) == 16
    short = figures.short_names(names)
    assert len(set(short)) == 16 and max(map(len, short)) <= figures.MAX_NAME + 5


def test_spread_by_hand():
    np.testing.assert_allclose(figures.spread([0.9, 0.1], 0.2), [0.9, 0.1])
    # Three at one place are centred on it; at an edge they are moved inside.
    np.testing.assert_allclose(figures.spread([0.5, 0.5, 0.5], 0.1), [0.4, 0.5, 0.6])
    np.testing.assert_allclose(figures.spread([0.0, 0.0, 0.9], 0.1), [0.0, 0.1, 0.9])


def test_figures_are_saved_without_warnings(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analysis = analyse(records((EVIL, "tpe", "dre")), checkpoints=(30,))
        files = figures.save(figures.draw_all(analysis), tmp_path / "new")
    names = {"regret", "rank", "time", "regret-a", "regret-b"}
    names.add("critical-difference-30")
    assert {file.name for file in files} == {f"{n}.{end}" for n in names for end in ("png", "svg")}
    assert all(file.stat().st_size > 2000 for file in files)
    assert "&lt;script&gt;" in (tmp_path / "new" / "regret.svg").read_text()


def test_scenario_names_make_no_folders():
    assert figures.scenario_file("../a b") == "regret-.._a_b"


def test_critical_difference_diagram_names_the_missing_extra(monkeypatch):
    (found,) = analyse(records(), checkpoints=(30,)).differences.values()
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    with pytest.raises(ModuleNotFoundError, match=r"dre-plugins\[bench\]"):
        figures.critical_difference(("random", "tpe", "dre"), found)


def test_words_say_who_leads_and_what_is_significant():
    words = dict(in_words(analyse(records())))
    assert words["Compared"].startswith("3 samplers on 8 tasks of 2 scenarios: 16 runs of 30")
    assert words["Regret"].startswith("dre has the lowest mean regret after 10, 20 and 30 trials:")
    assert "next: tpe with" in words["Regret"]
    # 8 tasks, all won: 2 / 2^8, twice by Holm.
    assert (
        "dre in regret is significant over random and tpe (p = 0.016 each)"
        in (words["Is it chance?"])
    )
    assert words["By scenario"] == "Lowest mean regret after 30 trials on a: dre; b: dre."
    assert "random 0.25 s, tpe 0.25 s and dre 0.25 s" in words["Time"]


def test_words_say_when_nothing_can_be_significant():
    words = dict(in_words(analyse(records(n_tasks=5))))
    # 2 / 2^5 for two rivals.
    assert "the smallest possible p is 0.12." in words["Is it chance?"]


def test_words_say_when_leaders_change():
    lines = [
        record(name, task, [early] * 5 + [late] * 5)
        for name, early, late in (("x", 0.9, 0.91), ("y", 0.6, 0.99))
        for task in range(3)
    ]
    regret = dict(in_words(analyse(lines, checkpoints=(5, 10))))["Regret"]
    assert regret == (
        "x has the lowest mean regret after 5 trials: 0.200 (next: y with 0.800). "
        "y has the lowest mean regret after 10 trials: 0.020 (next: x with 0.180)."
    )


def test_a_lead_by_one_task_is_no_lead():
    """x is better on 11 of 12 tasks by little, y on one by much: y leads in the mean only."""
    lines = [
        record(name, task, [0.5 if name == "x" and task == 0 else 0.95 if name == "x" else 0.94])
        for name in ("x", "y")
        for task in range(12)
    ]
    chance = dict(in_words(analyse(lines, checkpoints=(1,))))["Is it chance?"]
    assert "the lead of y in regret is that of a few tasks: over most it is" in chance


def test_report_writes_page_and_figures(tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    failed = {**record("tpe", 99, [0.1]), "error": "crash"}
    runs.write_text("\n".join(map(json.dumps, [*records(scenarios=("a",)), failed])))
    target = tmp_path / "new" / "report.html"
    arguments = [str(runs), "--html", str(target), "--figures", str(tmp_path / "figures")]
    report.main([*arguments, "--against", "tpe", "--checkpoints", "30,99"])
    printed = capsys.readouterr().out
    assert "regret@30" in printed and "@99" not in printed
    html = target.read_text()
    assert "Paired tests against tpe" in html
    assert "python -m dre_plugins.benchmarks.report" in html and str(runs) in html
    assert "Left out: 1 failed runs" in html
    assert "optuna (runs)" in html and "5.0.0" in html
    assert (tmp_path / "figures" / "critical-difference-30.svg").exists()


def test_report_on_tables(tmp_path, capsys):
    runs = tmp_path / "table.jsonl"
    lines = [
        {
            "method": m,
            "scenario": "a",
            "task": t,
            "seed": 0,
            "steps": 7,
            "regret": [0.9] * 2 + [r] * 10,
        }
        | {"seconds": 0.5}
        for m, r in (("random", 0.3), ("dre", 0.1))
        for t in (1, 2)
    ]
    runs.write_text("\n".join(map(json.dumps, lines)))
    report.main([str(runs)])
    assert (
        "| dre | 0.1000 | 1.00 | 2/0/0 p=0.5 | 0.2333 | 0% | 0.500 s |" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give runs files"),
        (["missing.jsonl"], "missing.jsonl does not exist"),
        (["{runs}", "--checkpoints", "0,5"], "checkpoints must be from 1 to 30"),
        (["{runs}", "--checkpoints", "many"], "must be numbers"),
        (["{runs}", "--checkpoints", "31"], "the runs end after 30 trials"),
        (["{runs}", "--against", "nobody"], "--against nobody: the runs are of random, tpe, dre"),
        (["{runs}", "--samplers", "nobody"], "finished by every sampler"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, capsys, arguments, message):
    runs = tmp_path / "runs.jsonl"
    runs.write_text("\n".join(map(json.dumps, records())))
    with pytest.raises(SystemExit):
        report.main([argument.format(runs=runs) for argument in arguments])
    assert message in capsys.readouterr().err


def test_a_missing_extra_is_said_before_anything_is_read(monkeypatch, capsys):
    monkeypatch.setattr(report, "find_spec", lambda name: None if "posthocs" in name else name)
    with pytest.raises(SystemExit):
        report.main(["missing.jsonl", "--html", "report.html"])
    assert "figures need scikit-posthocs: pip install 'dre-plugins[bench]'" in (
        capsys.readouterr().err
    )


def test_records_of_studies_are_sent_elsewhere(tmp_path, capsys):
    runs = tmp_path / "studies.jsonl"
    runs.write_text(json.dumps(record("tpe", 1, [0.5], problem="crash")))
    with pytest.raises(SystemExit):
        report.main([str(runs)])
    assert "benchmarks.studies_report" in capsys.readouterr().err
