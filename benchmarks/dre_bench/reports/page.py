"""The report as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TypeAlias

import numpy as np
from matplotlib.figure import Figure

from dre_bench.reports import statistics
from dre_bench.reports.figures import MAX_BANDS, inline_svg, scenario_file
from dre_bench.reports.real_studies import DEFINITIONS
from dre_bench.reports.statistics import Floats
from dre_bench.reports.summary import (
    Analysis,
    Part,
    Table,
    best_cells,
    comparisons,
    duration,
    in_words,
    overview,
    paired_tests,
    prefixes,
)

Section: TypeAlias = tuple[str, str, str]
"""Name, title and content."""
Drawing: TypeAlias = Callable[[str, str], str]
"""An element of the page, from the name of a figure and a caption."""

TITLE = "Benchmark report"
OVERVIEW_NOTE = (
    "Lowest in bold. Area: mean regret over the whole curve. Stagnating: share of runs that are "
    "stuck at their end. Ask: median time of a suggestion."
)
PAIRED_NOTE = "Wilcoxon signed-rank tests over tasks, adjusted by Holm for the samplers."
STUDIES_NOTE = f"The best in bold. Tests: p ≤ {statistics.ALPHA:g} in bold. {PAIRED_NOTE}"
MAX_COLUMNS = 4
"""Checkpoints that fit into the main table; the others are in the tables of the figures."""
MANY_SCENARIOS = 4
"""More of them are folded."""
MANY_ROWS = 20
"""A longer table scrolls by itself."""

TERMS = {
    "Rank": "Place among the samplers of the same scenario, task and seed; 1 is the best, ties "
    "share their mean place.",
    "Won/tied/lost": "Tasks, by the mean over their seeds. Differences up to 1e-9 are ties.",
    "Wilcoxon, Holm": "Two-sided signed-rank test over tasks, ties by Pratt's method. Adjusted "
    "for the number of samplers compared with the one named (for all pairs where it says so). A "
    "leader was picked by the same data: its tests are a little optimistic.",
}
TERMS_OF_CURVES = {
    "Mean regret": "Over all runs: seeds and tasks alike.",
    "Area": "Mean regret over the whole curve.",
    "Critical difference": "Friedman's test and Nemenyi's (Demšar 2006), on ranks by the mean "
    "regret of each task; they may differ from the average rank over runs.",
    "Confidence band": "95 % of the means of 2000 samples of tasks, drawn with replacement.",
    "Stagnating": f"Share of runs that end above a regret of {statistics.STAGNATION_REGRET:g} and "
    f"did not improve in their last {statistics.STAGNATION_TRIALS} trials.",
}
_BEST = ' class="best"'

CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  color: #222; background: #fff; margin: 0 auto; padding: 24px 32px 64px; max-width: 1140px; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; padding-top: .6rem; border-top: 1px solid #ddd; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p, dl, ul { max-width: 78ch; }
nav { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin: .4rem 0; }
nav a { color: #0b5394; }
.words { display: grid; grid-template-columns: 9.5rem 1fr; gap: .5rem 1rem; max-width: none; }
.words dt, dl.plain dt { font-weight: 600; }
.words dd { margin: 0; max-width: 82ch; overflow-wrap: anywhere; }
figure { margin: .8rem 0; }
figcaption, .note { color: #555; font-size: .875rem; max-width: 100ch; margin: .3rem 0; }
svg { width: 100%; height: auto; display: block; }
svg text { font-family: inherit !important; }
.wide { overflow-x: auto; margin: .6rem 0; }
.long { max-height: 70vh; overflow-y: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .65rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #e6e6e6; }
th:first-child, td:first-child { text-align: left; }
thead th { position: sticky; top: 0; background: #f3f5f7; border-bottom: 2px solid #c9ced3;
  white-space: normal; vertical-align: bottom; }
thead th:first-child { left: 0; z-index: 1; }
tbody th { font-weight: 500; position: sticky; left: 0; background: #fff; }
td.best { font-weight: 700; background: #e8f1fa; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: #0b5394; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .85rem; }
pre { background: #f3f5f7; padding: .7rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 700px) { .words { grid-template-columns: 1fr; gap: 0 0; }
  .words dd { margin-bottom: .6rem; } body { padding: 16px; } }
"""


def render(
    parts: Sequence[Part],
    figures: Mapping[str, Mapping[str, Figure]],
    *,
    command: str,
    versions: Mapping[str, str],
    left_out: Sequence[str] = (),
) -> str:
    """Return the page.

    Args:
        parts: What it reports.
        figures: Those of `figures.draw_all`, by the name of the part.
        command: What made it, to be repeated.
        versions: Of the packages, by name.
        left_out: Which runs were not compared.
    """
    prefix = prefixes(parts)
    body = "".join(_part(one, figures.get(one.name, {}), prefix[one.name]) for one in parts)
    ends = [
        ("definitions", "Definitions", _definitions(parts)),
        ("origin", "How it was made", _origin(command, versions)),
    ]
    links = [(f"{prefix[one.name]}part", one.heading) for one in parts]
    links += [(name, title) for name, title, _ in ends]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{TITLE}</title><style>{CSS}</style></head>"
        f"<body><h1>{TITLE}</h1>{_links(links)}{''.join(map(_note, left_out))}"
        f"<main>{body}{''.join(_section(*one, level=2) for one in ends)}</main></body></html>\n"
    )


def _part(part: Part, figures: Mapping[str, Figure], prefix: str) -> str:
    def draw(name: str, caption: str) -> str:
        return _figure(figures[name], prefix + name, caption)

    if part.curves:
        sections = [
            (prefix + name, title, content) for name, title, content in _curves(part.curves, draw)
        ]
        content = _links([(name, title) for name, title, _ in sections])
        content += "".join(_section(*one, level=3) for one in sections)
    else:
        content = "".join(
            f"<h3>{escape(title)}</h3>{_table(table)}" for title, table in part.tables.items()
        )
        content += _note(STUDIES_NOTE)
    return _section(f"{prefix}part", part.heading, content, level=2)


def _curves(analysis: Analysis, draw: Drawing) -> list[Section]:
    results = analysis.results
    words = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in in_words(analysis))
    main = overview(results, None, _few(analysis.checkpoints))
    sections = [
        ("summary", "In words", f'<dl class="words">{words}</dl>'),
        ("overview", "All samplers", _table(main) + _note(OVERVIEW_NOTE)),
        ("regret", "Regret", _regret(analysis, draw)),
        ("rank", "Average rank", _ranks(analysis, draw)),
        ("significance", "Significance", _significance(analysis, draw)),
        ("time", "Time per suggestion", _time(analysis, draw)),
    ]
    if len(results.scenarios) > 1:
        sections.append(("scenarios", "By scenario", _scenarios(analysis, draw)))
    return [*sections, ("tasks", "By task", _tasks(analysis))]


def _few(checkpoints: Sequence[int]) -> list[int]:
    """At most `MAX_COLUMNS` of the checkpoints, with the first and the last."""
    n = len(checkpoints)
    at = np.linspace(0, n - 1, min(n, MAX_COLUMNS)).round().astype(int)
    return [checkpoints[i] for i in at]


def _regret(analysis: Analysis, draw: Drawing) -> str:
    results = analysis.results
    at = results.index_of(analysis.checkpoints)
    mean = results.regret.mean(1)
    error = statistics.standard_error(results.regret, results.task_of_run)

    def cell(i: int, j: int) -> str:
        return f"{mean[i, at[j]]:.4f} ± {error[i, at[j]]:.4f}"

    caption = (
        "Mean regret of the best value so far, over all runs. What is below the lower edge of the "
        "logarithmic panel is drawn on it."
    )
    if len(mean) <= MAX_BANDS:
        caption += " Bands: one standard error over tasks."
    short = _by_checkpoint(analysis, mean[:, at], cell)
    whole = _by_step(analysis, mean, ".4f")
    return (
        draw("regret", caption)
        + _table(short)
        + _note("Mean ± standard error over tasks.")
        + _details(f"Mean regret after each of the {results.protocol.step}", whole)
    )


def _ranks(analysis: Analysis, draw: Drawing) -> str:
    results = analysis.results
    at = results.index_of(analysis.checkpoints)
    ranks, (low, high) = results.ranks().mean(1), analysis.rank_bands
    caption = "Average rank over all runs; 1 is the best, ties share their mean place."
    if len(ranks) <= MAX_BANDS:
        caption += " Bands: 95 % confidence, by bootstrap over tasks."

    def cell(i: int, j: int) -> str:
        n = at[j]
        return f"{ranks[i, n]:.2f} [{low[i, n]:.2f}, {high[i, n]:.2f}]"

    return (
        draw("rank", caption)
        + _table(_by_checkpoint(analysis, ranks[:, at], cell))
        + _note("Average rank [95 % confidence band].")
        + _details(
            f"Average rank after each of the {results.protocol.step}",
            _by_step(analysis, ranks, ".2f"),
        )
    )


def _significance(analysis: Analysis, draw: Drawing) -> str:
    results = analysis.results
    parts = []
    for n, found in analysis.differences.items():
        name = f"critical-difference-{n}"
        caption = (
            f"After {n} {results.protocol.step}: average rank over {found.n_tasks} tasks. A bar "
            f"joins samplers whose ranks do not differ significantly (critical difference "
            f"{found.difference:.2f}, α = {statistics.ALPHA:g}). Friedman's test: "
            f"p = {found.friedman_p:.2g}."
        )
        parts.append(draw(name, caption))
        rows = [
            [name, f"{rank:.2f}", *(f"{p:.2g}" for p in row)]
            for name, rank, row in zip(results.samplers, found.ranks, found.p, strict=True)
        ]
        title = f"Ranks and Nemenyi's p-values of all pairs after {n}"
        parts.append(_details(title, Table(["sampler", "rank", *results.samplers], rows)))
    if not parts:
        parts.append(_note("Critical differences need at least 3 samplers and 2 tasks."))
    parts += [f"<h4>Paired tests against {escape(analysis.against)}</h4>"]
    parts.append(_table(_paired(analysis)))
    parts.append(_note(f"Tasks won/tied/lost; p ≤ {statistics.ALPHA:g} in bold. {PAIRED_NOTE}"))
    last = analysis.checkpoints[-1]
    (index,) = results.index_of([last])
    p = statistics.pairwise_p(results.by_task()[:, :, index])
    pairs = [[n, *(f"{v:.2g}" for v in row)] for n, row in zip(results.samplers, p, strict=True)]
    title = f"Wilcoxon p-values of all pairs after {last}, adjusted by Holm for all pairs"
    parts.append(_details(title, Table(["sampler", *results.samplers], pairs)))
    return "".join(parts)


def _paired(analysis: Analysis) -> Table:
    results, against, checkpoints = analysis.results, analysis.against, analysis.checkpoints
    tests = [comparisons(results, against, n) for n in checkpoints]
    return paired_tests(results.samplers, against, [f"after {n}" for n in checkpoints], tests)


def _time(analysis: Analysis, draw: Drawing) -> str:
    results = analysis.results
    if np.isnan(results.seconds_per_ask()).all():
        return _note("Not recorded in these runs.")
    rows = [
        [name, *map(duration, seconds)]
        for name, seconds in zip(results.samplers, results.seconds_per_ask(), strict=True)
    ]
    caption = "Median (dot) and the range of 90 % of the suggestions (line)."
    if results.protocol.n_startup:
        caption += f" Without the first {results.protocol.n_startup} {results.protocol.step}."
    table = Table(["sampler", "5 %", "median", "95 %"], rows)
    return draw("time", caption) + _table(table)


def _scenarios(analysis: Analysis, draw: Drawing) -> str:
    parts = []
    state = " open" if len(analysis.results.scenarios) <= MANY_SCENARIOS else ""
    for scenario in analysis.results.scenarios:
        part = analysis.results.of_scenario(scenario)
        name = scenario_file(scenario)
        table = overview(part, None, _few(analysis.checkpoints))
        n_tasks, n_runs = len(part.tasks), len(part.keys)
        title = f"{scenario}: {n_tasks} tasks, {n_runs} runs a sampler"
        content = draw(name, f"Mean regret on {scenario}.") + _table(table)
        parts.append(f"<details{state}><summary>{escape(title)}</summary>{content}</details>")
    return "".join(parts)


def _tasks(analysis: Analysis) -> str:
    results, last = analysis.results, analysis.checkpoints[-1]
    (index,) = results.index_of([last])
    values = results.by_task()[:, :, index].T
    rows = [
        [f"{scenario} / {task}", *(f"{v:.4f}" for v in row)]
        for (scenario, task), row in zip(results.tasks, values, strict=True)
    ]
    best = frozenset((j, i + 1) for i, j in best_cells(values.T, range(len(values))))
    table = Table(["task", *results.samplers], rows, best)
    title = f"Regret of every task after {last} {results.protocol.step}, mean over its seeds"
    return _details(title, table)


def _definitions(parts: Sequence[Part]) -> str:
    """Terms that are used on the page; what regret is depends on the problem."""
    regrets: dict[str, list[str]] = {}
    for part in parts:
        if part.curves:
            regrets.setdefault(part.curves.results.protocol.regret, []).append(part.name)
    terms = {f"Regret ({', '.join(names)})": regret for regret, names in regrets.items()}
    if regrets:
        terms |= TERMS_OF_CURVES
    if any(part.curves is None for part in parts):
        terms |= {f"{name} (real studies)": meaning for name, meaning in DEFINITIONS.items()}
    listed = [f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in (terms | TERMS).items()]
    return f'<dl class="plain">{"".join(listed)}</dl>'


def _origin(command: str, versions: Mapping[str, str]) -> str:
    rows = [[name, version] for name, version in versions.items()]
    return f"<pre>{escape(command)}</pre>" + _table(Table(["package", "version"], rows))


def _by_checkpoint(analysis: Analysis, values: Floats, text: Callable[[int, int], str]) -> Table:
    """A row for each sampler, a column for each checkpoint; the lowest values are pointed out."""
    n = len(analysis.checkpoints)
    rows = [
        [name, *(text(i, j) for j in range(n))] for i, name in enumerate(analysis.results.samplers)
    ]
    head = ["sampler", *(f"after {step}" for step in analysis.checkpoints)]
    return Table(head, rows, best_cells(values, range(1, n + 1)))


def _by_step(analysis: Analysis, values: Floats, spec: str) -> Table:
    """A row for each number of trials, a column for each sampler."""
    results = analysis.results
    rows = [
        [str(step), *(format(value, spec) for value in column)]
        for step, column in zip(results.steps, values.T, strict=True)
    ]
    return Table([results.protocol.step, *results.samplers], rows)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_breakable(cell)}</th>' for cell in table.head)
    rows = []
    for i, (name, *cells) in enumerate(table.rows):
        row = "".join(
            f"<td{_BEST if (i, j) in table.best else ''}>{escape(cell)}</td>"
            for j, cell in enumerate(cells, 1)
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{row}</tr>')
    size = "wide long" if len(table.rows) > MANY_ROWS else "wide"
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="{size}"><table>{body}</table></div>'


def _breakable(name: str) -> str:
    """Let the long name of a column fill several lines."""
    return re.sub(r"([:.,=@])", r"\1<wbr>", escape(name))


def _details(title: str, table: Table) -> str:
    return f"<details><summary>{escape(title)}</summary>{_table(table)}</details>"


def _section(name: str, title: str, content: str, *, level: int) -> str:
    return f'<section id="{name}"><h{level}>{escape(title)}</h{level}>{content}</section>'


def _links(targets: Sequence[tuple[str, str]]) -> str:
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in targets)
    return f"<nav>{links}</nav>"


def _figure(figure: Figure, name: str, caption: str) -> str:
    label = f'<svg role="img" aria-label="{escape(caption)}"'
    drawn = inline_svg(figure, name).replace("<svg", label, 1)
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""
