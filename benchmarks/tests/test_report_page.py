"""The report as a page and as figures."""

from __future__ import annotations

import json
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from run_records import crash, record

from dre_bench.reports import figures, page, report

pytestmark = pytest.mark.slow

EVIL = "<script>alert('$x_1$ & \"co\"')</script>"
VOID = {"meta", "link", "img", "br", "input", "wbr"}
CHECKPOINTS = (10, 20, 30)


def records(samplers=("random", "tpe", "dre"), *, n_tasks=8, scenarios=("a",), **more):
    """Later samplers are better: on every task after the first trials."""
    rng = np.random.default_rng(0)
    steps = np.arange(30)
    return [
        record(
            name,
            task,
            seed,
            0.5 + 0.45 * (1 - np.exp(-steps * (i + 1) / 30)) + rng.uniform(0, 0.001, 30),
            scenarios[task % len(scenarios)],
            **more,
        )
        for i, name in enumerate(samplers)
        for task in range(n_tasks)
        for seed in range(2)
    ]


@pytest.fixture
def loaded(written):
    """Return the report of a list of records."""

    def load(lines, **options):
        return report.load([written(lines)], **({"checkpoints": CHECKPOINTS} | options))

    return load


def analysed(made):
    return made.parts[0].curves


def rendered(made, *, is_drawn=False):
    """Render a page, with empty figures unless they are drawn, which takes seconds."""
    drawn = {
        part.prefix(made.parts) + name: figure
        for part in made.parts
        if part.curves
        for name, figure in (
            figures.draw_all(part.curves.results)
            if is_drawn
            else {name: Figure((1, 1)) for name in ("regret", "rank")}
        ).items()
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


@pytest.fixture(scope="module")
def html_of_all(tmp_path_factory):
    """A page of three problems whose names are HTML."""
    lines = records((EVIL, "tpe", "dre"), n_tasks=4, scenarios=(EVIL, f"{EVIL}2"))
    lines += records(("gp", EVIL), n_tasks=2, problem="ray")
    study = {"stats": {"fallbacks": 1}, "versions": {EVIL: EVIL}}
    lines += [crash(name, EVIL, [0.6] * 10, EVIL, **study) for name in (EVIL, "dre")]
    lines += [{**record(EVIL, 9, 0, [0.6]), "error": EVIL}]
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return rendered(report.load([path], against=EVIL, checkpoints=CHECKPOINTS))


def test_page_needs_no_network_and_its_links_lead_somewhere(html_of_all):
    found = parsed(html_of_all)
    assert len(found.ids) == len(set(found.ids))
    inside = {link for link in found.links if link.startswith("#")}
    assert {link[1:] for link in inside} <= set(found.ids)
    assert all(link.startswith("data:image/svg") for link in set(found.links) - inside)
    assert not {"script", "link", "iframe"} & set(found.tags)
    assert found.tags.count("img") == 2 + 2  # regret and rank of both problems with curves


def test_every_name_on_a_page_is_escaped(html_of_all):
    assert "<script" not in html_of_all.lower()
    assert sum("<script>" in text for text in parsed(html_of_all).text) > 20
    assert "dre-bench &lt;runs&gt;" in html_of_all


def test_several_problems_are_sections_of_one_page(html_of_all):
    assert {"maximise-part", "crash-part", "ray-part"} <= set(parsed(html_of_all).ids)
    assert "Regret (maximise, ray)" in html_of_all and "Regret (real studies)" in html_of_all


def test_page_is_the_same_each_time(loaded):
    made = loaded(records(n_tasks=2), checkpoints=(30,))
    assert rendered(made, is_drawn=True) == rendered(made, is_drawn=True)


def test_little_is_enough(loaded):
    html = rendered(loaded(records(("random", "dre"), n_tasks=1)))
    parsed(html)
    assert "1/0/0 p=1" in html or "0/0/1 p=1" in html
    parsed(rendered(loaded(records(("dre",), n_tasks=2))))


def test_equals_without_regret_are_drawn(loaded):
    flat = [record(name, task, 0, [1.0] * 5) for name in ("x", "y", "z") for task in (1, 2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = rendered(loaded(flat, checkpoints=(5,)), is_drawn=True)
    assert html.count('<td class="best">0.0000</td>') >= 3


def test_many_samplers_are_told_apart(loaded):
    """More than there are colours: dashes, no bands, and names that are not the same."""
    names = tuple(f"{'very-' * 8}long-{i}" for i in range(16))
    results = analysed(loaded(records(names, n_tasks=2))).results
    curves = figures.regret_curves(results)
    assert not curves.axes[0].collections
    lines = [(line.get_color(), line.get_linestyle()) for line in curves.axes[0].get_lines()]
    assert len(set(lines)) == len(lines) == 16
    assert len({str(style) for style in figures.STYLE["axes.prop_cycle"]}) == 32
    short = [text.get_text() for text in curves.legends[0].get_texts()]
    assert len(set(short)) == 16 and max(map(len, short)) <= figures.MAX_NAME + 5
    curves.draw_without_rendering()
    legend = curves.legends[0].get_window_extent()
    assert legend.y0 >= 0 and legend.x1 <= curves.get_figwidth() * curves.dpi
    assert all(panel.get_window_extent().x1 <= legend.x0 for panel in curves.axes)


def test_a_page_of_real_studies_explains_nothing_else(loaded):
    html = rendered(loaded([crash(n, 1, [v] * 10) for n, v in (("a", 0.6), ("b", 0.7))]))
    parsed(html)
    assert '<td class="best">' in html and "crash: 1 task, 1 run a sampler</h3>" in html
    assert "Hypervolume" in html and "Area" not in html


def test_long_names_of_columns_may_break(loaded):
    html = rendered(loaded(records(("ablation:no-meta-features", "x", "y"), n_tasks=2)))
    assert "ablation:<wbr>no-meta-features</th>" in html


def test_figures_are_saved_without_warnings(loaded, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = records((EVIL, "tpe", "dre"), scenarios=("../a b", "c"), n_tasks=2)
        drawn = figures.draw_all(analysed(loaded(lines, checkpoints=(30,))).results)
        figures.save(drawn, tmp_path / "new")
    files = [*(tmp_path / "new").iterdir()]
    names = {"regret", "rank"}
    assert {file.name for file in files} == {f"{n}.{end}" for n in names for end in ("png", "svg")}
    assert all(file.stat().st_size > 2000 for file in files)
