"""The report as a page, in words and as figures."""

from __future__ import annotations

import json
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from dre_bench.reports import figures, page, report
from dre_bench.reports.words import in_words

EVIL = "<script>alert('$x_1$ & \"co\"')</script>"
VOID = {"meta", "link", "img", "br", "input", "wbr"}


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


def records(samplers=("random", "tpe", "dre"), *, n_tasks=8, scenarios=("a", "b"), **more):
    """Later samplers are better: on every task after the first trials."""
    rng = np.random.default_rng(0)
    steps = np.arange(30)
    return [
        record(
            name,
            task,
            0.5 + 0.45 * (1 - np.exp(-steps * (i + 1) / 30)) + rng.uniform(0, 0.001, 30),
            seed=seed,
            scenario=scenarios[task % len(scenarios)],
            **more,
        )
        for i, name in enumerate(samplers)
        for task in range(n_tasks)
        for seed in range(2)
    ]


@pytest.fixture
def loaded(tmp_path):
    """Return the report of a list of records."""

    def load(lines, **options):
        path = tmp_path / "runs.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        return report.load([path], **({"checkpoints": (10, 20, 30)} | options))

    return load


def analysed(made):
    return made.parts[0].curves


def rendered(made, *, is_drawn=False):
    """Return the page; drawing takes most of its time, so figures are empty unless asked for."""
    drawn = {
        part.prefix(made.parts) + name: figure if is_drawn else Figure((1, 1))
        for part in made.parts
        if part.curves
        for name, figure in figures.draw_all(part.curves).items()
    }
    return page.render(made, drawn, "dre-bench <runs>")


class Page(HTMLParser):
    """Check that elements are closed in order, and collect what is referred to."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.links += [value for name, value in attributes if name in ("href", "src", "action")]
        assert not [name for name, _ in attributes if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html):
    found = Page()
    found.feed(html)
    assert not found.open
    return found


def test_page_needs_no_network_and_its_links_lead_somewhere(loaded):
    found = parsed(rendered(loaded(records())))
    assert len(found.ids) == len(set(found.ids))
    inside = {link for link in found.links if link.startswith("#")}
    assert {link[1:] for link in inside} <= set(found.ids)
    assert all(link.startswith("data:image/svg") for link in set(found.links) - inside)
    assert not {"script", "link", "iframe"} & set(found.tags)
    # Regret, rank, three checkpoints, two scenarios.
    assert found.tags.count("img") == 7


def test_every_name_on_a_page_is_escaped(loaded):
    lines = records((EVIL, "tpe", "dre"), n_tasks=4, scenarios=(EVIL, f"{EVIL}2"))
    crash = {
        "problem": "crash",
        "stats": {"fallbacks": 1},
        "seconds": 1.0,
        "versions": {EVIL: EVIL},
    }
    lines += [record(name, EVIL, [0.6] * 10, scenario=EVIL, **crash) for name in (EVIL, "dre")]
    lines += [{**record(EVIL, 9, [0.6]), "error": EVIL}]
    html = rendered(loaded(lines, against=EVIL))
    found = parsed(html)
    assert "script" not in found.tags and "<script" not in html.lower()
    assert sum("<script>" in text for text in found.text) > 20
    assert "dre-bench &lt;runs&gt;" in html


def test_page_is_the_same_each_time(loaded):
    made = loaded(records(n_tasks=2, scenarios=("a",)), checkpoints=(30,))
    assert rendered(made, is_drawn=True) == rendered(made, is_drawn=True)


@pytest.mark.parametrize(
    ("samplers", "n_tasks", "said"),
    [
        (("random", "dre"), 1, "Critical differences need at least 3 samplers and 2 tasks."),
        (("random", "dre"), 1, "the smallest possible p is 1."),
        (("dre",), 2, "with 2 tasks and 0 rivals"),
    ],
)
def test_little_is_enough(loaded, samplers, n_tasks, said):
    html = rendered(loaded(records(samplers, n_tasks=n_tasks, scenarios=("a",))))
    parsed(html)
    assert said in html


def test_equals_without_regret_are_drawn(loaded):
    flat = [record(name, task, [1.0] * 5) for name in ("x", "y", "z") for task in (1, 2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = rendered(loaded(flat, checkpoints=(5,)), is_drawn=True)
    assert "After 5 trials x, y and z share the lowest mean regret, 0.000." in html


def test_many_samplers_are_told_apart(loaded):
    """More than there are colours: dashes, no bands, and names that are not the same."""
    names = tuple(f"{'very-' * 8}long-{i}" for i in range(16))
    results = analysed(loaded(records(names, n_tasks=2))).results
    curves = figures.regret_curves(results)
    assert not curves.axes[1].collections
    assert len({str(figures.style_of(i)) for i in range(28)}) == 28
    short = [text.get_text() for text in curves.legends[0].get_texts()]
    assert len(set(short)) == 16 and max(map(len, short)) <= figures.MAX_NAME + 5
    curves.draw_without_rendering()
    legend = curves.legends[0].get_window_extent()
    assert legend.y0 >= 0 and legend.x1 <= curves.get_figwidth() * curves.dpi
    assert all(panel.get_window_extent().x1 <= legend.x0 for panel in curves.axes)


def test_several_problems_are_sections_of_one_page(loaded):
    crash = {"problem": "crash", "stats": {}, "seconds": 1.0}
    lines = records(n_tasks=2, scenarios=("a",)) + records(("gp", "dre"), n_tasks=2, problem="ray")
    lines += [record(name, 1, [0.6] * 10, **crash) for name in ("random", "dre")]
    html = rendered(loaded(lines))
    found = parsed(html)
    assert len(found.ids) == len(set(found.ids))
    assert {"maximise-part", "crash-part", "ray-part"} <= set(found.ids)
    assert "Regret (maximise, ray)" in html and "Regret (real studies)" in html


def test_a_page_of_real_studies_explains_nothing_else(loaded):
    crash = {"problem": "crash", "stats": {}, "seconds": 1.0}
    html = rendered(loaded([record(n, 1, [v] * 10, **crash) for n, v in (("a", 0.6), ("b", 0.7))]))
    parsed(html)
    assert '<td class="best">' in html and "crash: 1 task, 1 run a sampler</h3>" in html
    assert "Hypervolume" in html and "Critical difference" not in html


def test_long_names_of_columns_may_break(loaded):
    html = rendered(loaded(records(("ablation:no-meta-features", "x", "y"), n_tasks=2)))
    assert "ablation:<wbr>no-meta-features</th>" in html


def test_figures_are_saved_without_warnings(loaded, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = records((EVIL, "tpe", "dre"), scenarios=("../a b",))
        drawn = figures.draw_all(analysed(loaded(lines, checkpoints=(30,))))
        figures.save(drawn, tmp_path / "new")
    files = [*(tmp_path / "new").iterdir()]
    names = {"regret", "rank", "critical-difference-30"}
    assert {file.name for file in files} == {f"{n}.{end}" for n in names for end in ("png", "svg")}
    assert all(file.stat().st_size > 2000 for file in files)
    assert figures.scenario_file("../a b") == "regret-.._a_b"


def test_words_say_who_leads_and_what_is_significant(loaded):
    words = in_words(analysed(loaded(records())))
    assert words["Compared"].startswith("3 samplers on 8 tasks of 2 scenarios: 16 runs of 30")
    assert words["Regret"].startswith("After 30 trials dre has the lowest mean regret")
    assert "Next is tpe with" in words["Regret"]
    # 8 tasks, all won: 2 / 2^8, twice by Holm.
    both = "dre in regret is significant over random (p = 0.016) and tpe (p = 0.016)"
    assert both in words["Is it chance?"]


def test_words_say_when_nothing_can_be_significant(loaded):
    # 2 / 2^5 for two rivals.
    words = in_words(analysed(loaded(records(n_tasks=5))))
    assert "the smallest possible p is 0.12." in words["Is it chance?"]


def test_a_lead_by_one_task_is_no_lead(loaded):
    """x is better on 11 of 12 tasks by little, y on one by much: y leads in the mean only."""
    lines = [
        record(name, task, [0.5 if name == "x" and task == 0 else 0.95 if name == "x" else 0.94])
        for name in ("x", "y")
        for task in range(12)
    ]
    chance = in_words(analysed(loaded(lines, checkpoints=(1,))))["Is it chance?"]
    assert "the lead of y in regret is that of a few tasks: over most it is" in chance
