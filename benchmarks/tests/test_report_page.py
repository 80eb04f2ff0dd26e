"""The report as a page and as figures."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from dre_bench.reports.summary import Analysis, Part, Table, in_words

from dre_bench.reports.results import best_known, collect

pytest.importorskip("matplotlib")
pytest.importorskip("scikit_posthocs")

from dre_bench.reports import figures, page

EVIL = "<script>alert('$x_1$ & \"co\"')</script>"
VOID = {"meta", "link", "img", "br", "input", "wbr"}


LONG = (
    "random",
    "dre:prior=shipped",
    "ablation:no-meta-features",
    "ablation:weights-position-attention",
    "deep-ensemble:n_members=10",
    "optuna.samplers.CmaEsSampler",
)


def record(sampler, task, values, *, seed=0, scenario="a"):
    return {
        "sampler": sampler,
        "scenario": scenario,
        "task": task,
        "seed": seed,
        "trials": len(values),
        "values": list(values),
        "ask_seconds": [0.25] * len(values),
        "reference": {"median": 0.5, "best": 1.0},
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
        )
        for i, name in enumerate(samplers)
        for task in range(n_tasks)
        for seed in range(2)
    ]


def results_of(lines):
    return collect(lines, best_known(lines))


def analyse(lines, checkpoints=(10, 20, 30), against=None):
    results = results_of(lines)
    return Analysis(results, against or results.samplers[0], checkpoints)


def rendered(*analyses, others=()):
    parts = [Part(f"problem {i}", "", {}, one) for i, one in enumerate(analyses)]
    drawn = {part.name: figures.draw_all(part.curves) for part in parts}
    versions = {"a&b": "1<2"}
    return page.render([*parts, *others], drawn, command="dre <runs>", versions=versions)


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
    return rendered(analyse(records(), against="dre"))


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
    parts = re.split(r'<section id="(\w+)">', html)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    for name in ("regret", "rank", "significance", "time", "scenarios", "tasks"):
        assert "<table>" in sections[name], name
    assert sections["regret"].count("<tr>") == 1 + 3 + 1 + 30  # checkpoints, and every trial
    assert "0.250 s" in sections["overview"]


def test_names_are_escaped():
    lines = records(("random", EVIL, "dre"), n_tasks=3, scenarios=("a",))
    html = rendered(analyse(lines, against=EVIL, checkpoints=(30,)))
    found = parsed(html)
    assert "script" not in found.tags
    assert sum(EVIL in text for text in found.text) > 5
    assert "dre &lt;runs&gt;" in html and "a&amp;b" in html and "1&lt;2" in html


def test_page_is_the_same_each_time():
    lines = records(("random", "dre"), n_tasks=2, scenarios=("a",))
    assert rendered(analyse(lines)) == rendered(analyse(lines))


def test_two_samplers_and_one_task_are_enough():
    html = rendered(analyse(records(("random", "dre"), n_tasks=1, scenarios=("a",))))
    parsed(html)
    assert "Critical differences need at least 3 samplers and 2 tasks." in html
    assert "the smallest possible p is 1." in html


def test_one_sampler_alone():
    html = rendered(analyse(records(("dre",), n_tasks=2, scenarios=("a",))))
    assert "nothing to compare" in html
    parsed(html)


def test_equals_without_regret_are_drawn():
    flat = [record(name, task, [1.0] * 5) for name in ("x", "y", "z") for task in (1, 2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = rendered(analyse(flat, checkpoints=(5,)))
    assert "x, y and z share the lowest mean regret after 5 trials: 0.000." in html


def test_many_samplers_are_told_apart():
    """More than there are colours: dashes, no bands, and labels that do not overlap."""
    names = tuple(f"{'very-' * 8}long-{i}" for i in range(16))
    results = results_of(records(names, n_tasks=2))
    (_, log) = figures.regret_curves(results).axes
    assert not log.collections
    heights = sorted(label.get_position()[1] for label in log.texts)
    assert len(heights) == 16 and min(np.diff(heights)) > 0.05
    assert len({str(figures.style_of(i)) for i in range(16)}) == 16
    short = figures.short_names(names)
    assert len(set(short)) == 16 and max(map(len, short)) <= figures.MAX_NAME + 5


def test_names_of_our_samplers_are_written_out():
    results = results_of(records(LONG, n_tasks=3))
    assert figures.short_names(results.samplers) == [*LONG]
    figure = figures.scenario_curves(results)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*LONG]
    figure.draw_without_rendering()
    width = figure.get_figwidth() * figure.dpi
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= 0 and legend.get_window_extent().x1 <= width
    curves = figures.regret_curves(results)
    curves.draw_without_rendering()
    linear, log = (panel.get_window_extent().width for panel in curves.axes)
    assert linear == pytest.approx(log) and linear > 0.25 * curves.get_figwidth() * curves.dpi


def test_a_figure_grows_with_the_names_beside_its_curves():
    few, many = (results_of(records([f"n{i}" for i in range(n)], n_tasks=2)) for n in (3, 28))
    low, high = (figures.regret_curves(one) for one in (few, many))
    assert high.get_figheight() > low.get_figheight()
    heights = [label.get_position()[1] for label in high.axes[1].texts]
    assert 0 <= min(heights) and max(heights) <= 1
    assert len({str(figures.style_of(i)) for i in range(28)}) == 28


def test_several_problems_are_sections_of_one_page():
    first = analyse(records(n_tasks=2, scenarios=("a",)), checkpoints=(30,))
    second = analyse(records(("gp", "dre"), n_tasks=2, scenarios=("a",)), checkpoints=(30,))
    table = Table(["sampler", "full"], [["dre", "7"]])
    real = Part("crash", "", {"crash: 2 tasks": table})
    html = rendered(first, second, others=[real])
    found = parsed(html)
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert {"problem-0-regret", "problem-1-regret", "crash-part"} <= set(found.ids)
    assert html.index("problem 0</h2>") < html.index("problem 1</h2>") < html.index("crash</h2>")
    assert "Regret (problem 0, problem 1)" in html and "Regret (real studies)" in html


def test_a_page_of_real_studies_explains_nothing_else():
    table = Table(["sampler", "full"], [["dre", "7"]], frozenset({(0, 1)}))
    html = rendered(others=[Part("asha", "", {"asha: 2 tasks": table})])
    parsed(html)
    assert '<td class="best">7</td>' in html and "asha: 2 tasks</h3>" in html
    assert "Hypervolume" in html and "Critical difference" not in html


def test_long_names_of_columns_may_break():
    html = rendered(analyse(records(LONG[:3], n_tasks=1, scenarios=("a",))))
    assert "ablation:<wbr>no-meta-features</th>" in html


def test_spread_by_hand():
    np.testing.assert_allclose(figures.spread([0.9, 0.1], 0.2), [0.9, 0.1])
    # Three at one place are centred on it; at an edge they are moved inside.
    np.testing.assert_allclose(figures.spread([0.5, 0.5, 0.5], 0.1), [0.4, 0.5, 0.6])
    np.testing.assert_allclose(figures.spread([0.0, 0.0, 0.9], 0.1), [0.0, 0.1, 0.9])


def test_figures_are_saved_without_warnings(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = records((EVIL, "tpe", "dre"), scenarios=("a",))
        drawn = figures.draw_all(analyse(lines, checkpoints=(30,)))
        files = figures.save(drawn, tmp_path / "new")
    names = {"regret", "rank", "time", "critical-difference-30"}
    assert {file.name for file in files} == {f"{n}.{end}" for n in names for end in ("png", "svg")}
    assert all(file.stat().st_size > 2000 for file in files)
    assert "&lt;script&gt;" in (tmp_path / "new" / "regret.svg").read_text()


def test_scenario_names_make_no_folders():
    assert figures.scenario_file("../a b") == "regret-.._a_b"


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
