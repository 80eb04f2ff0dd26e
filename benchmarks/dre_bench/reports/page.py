"""The report as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from dre_bench.reports import statistics
from dre_bench.reports.figures import MAX_BANDS, data_uri, scenario_file
from dre_bench.reports.part import Part, prefixes
from dre_bench.reports.real_studies import DEFINITIONS
from dre_bench.reports.results import (
    STAGNATION_REGRET,
    STAGNATION_TRIALS,
    Analysis,
    by_sampler,
    by_task,
    ranks,
)
from dre_bench.reports.tables import (
    Table,
    count,
    duration,
    formatted,
    overview,
    paired_tests,
    texts,
)
from dre_bench.reports.words import in_words

MAX_COLUMNS = 4
"""Checkpoints that fit into the main table; the others are in the tables of the figures."""
TESTED = (
    f"Tasks won/tied/lost; p ≤ {statistics.ALPHA:g} in bold. Wilcoxon signed-rank tests over "
    "tasks, adjusted by Holm for the samplers."
)
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
    "Stagnating": f"Share of runs that end above a regret of {STAGNATION_REGRET:g} and did not "
    f"improve in their last {STAGNATION_TRIALS} trials.",
}


@dataclass(frozen=True)
class Block:
    """A piece of the page: what is set is shown, in this order.

    Attributes:
        folded: All of it is hidden under this line until a reader opens it.
        figure: Source of an image.
        caption: Stands under the image, and is read out for it.
        words: Terms and sentences.
        code: A command.
        title: Stands above the table.
        table: A table.
        note: A remark in small print.
    """

    folded: str = ""
    figure: str = ""
    caption: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    title: str = ""
    table: Table | None = None
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A heading that the page can be entered at, and what is under it."""

    name: str
    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = ()


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
    sections = [_part(part, figures.get(part.name, {}), prefix[part.name]) for part in parts]
    origin = Table.of({"version": [*versions.values()]}, [*versions], "package")
    sections += [
        Section("definitions", "Definitions", [Block(words=_definitions(parts))]),
        Section("origin", "How it was made", [Block(code=command, table=origin)]),
    ]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dre_bench.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("page.html").render(sections=sections, left_out=left_out)


def _breakable(name: str) -> Markup:
    """Let the long name of a column fill several lines."""
    return Markup(re.sub(r"([:.,=@])", r"\1<wbr>", str(escape(name))))


def _part(part: Part, figures: Mapping[str, Figure], prefix: str) -> Section:
    if part.curves is None:
        blocks = [Block(title=title, table=table) for title, table in part.tables.items()]
        note = Block(note=f"The best in bold. {TESTED}")
        return Section(f"{prefix}part", part.heading, [*blocks, note])

    def draw(name: str) -> str:
        return data_uri(figures[name])

    analysis = part.curves
    sections = {
        "In words": [Block(words=in_words(analysis))],
        "All samplers": [
            Block(
                table=overview(analysis.results, None, _few(analysis.checkpoints)),
                note="Lowest in bold. Area: mean regret over the whole curve. Stagnating: share "
                "of runs that are stuck at their end. Ask: median time of a suggestion.",
            )
        ],
        "Regret": _regret(analysis, draw),
        "Average rank": _ranks(analysis, draw),
        "Significance": _significance(analysis, draw),
        "Time per suggestion": _time(analysis, draw),
        "By scenario": _scenarios(analysis, draw),
        "By task": _tasks(analysis),
    }
    inside = [
        Section(prefix + title.lower().replace(" ", "-"), title, blocks)
        for title, blocks in sections.items()
        if blocks
    ]
    return Section(f"{prefix}part", part.heading, sections=inside)


Draw = Callable[[str], str]


def _few(checkpoints: Sequence[int]) -> list[int]:
    """Return at most `MAX_COLUMNS` of the checkpoints, with the first and the last."""
    n = len(checkpoints)
    at = np.linspace(0, n - 1, min(n, MAX_COLUMNS)).round().astype(int)
    return [checkpoints[i] for i in at]


def _regret(analysis: Analysis, draw: Draw) -> list[Block]:
    results = analysis.results
    mean, error = by_sampler(results.regret), results.standard_error()
    caption = (
        "Mean regret of the best value so far, over all runs. What is below the lower edge of the "
        "logarithmic panel is drawn on it."
    )
    if len(mean) <= MAX_BANDS:
        caption += " Bands: one standard error over tasks."
    table = formatted(
        mean[[*analysis.checkpoints]],
        lambda name, n: f"{mean.loc[name, n]:.4f} ± {error.loc[name, n]:.4f}",
    )
    return [
        Block(figure=draw("regret"), caption=caption),
        Block(table=table, note="Mean ± standard error over tasks."),
        _by_step("Mean regret", mean, results.protocol.step, "{:.4f}"),
    ]


def _ranks(analysis: Analysis, draw: Draw) -> list[Block]:
    mean, (low, high) = by_sampler(ranks(analysis.results.regret)), analysis.rank_bands
    caption = "Average rank over all runs; 1 is the best, ties share their mean place."
    if len(mean) <= MAX_BANDS:
        caption += " Bands: 95 % confidence, by bootstrap over tasks."
    table = formatted(
        mean[[*analysis.checkpoints]],
        lambda name, n: (
            f"{mean.loc[name, n]:.2f} [{low.loc[name, n]:.2f}, {high.loc[name, n]:.2f}]"
        ),
    )
    return [
        Block(figure=draw("rank"), caption=caption),
        Block(table=table, note="Average rank [95 % confidence band]."),
        _by_step("Average rank", mean, analysis.results.protocol.step, "{:.2f}"),
    ]


def _by_step(title: str, means: pd.DataFrame, step: str, form: str) -> Block:
    columns = {name: texts(row, form) for name, row in means.iterrows()}
    table = Table.of(columns, [*map(str, means.columns)], step)
    return Block(folded=f"{title} after each of the {step}", table=table)


def _significance(analysis: Analysis, draw: Draw) -> list[Block]:
    results, last = analysis.results, analysis.checkpoints[-1]
    blocks = []
    for n, found in analysis.differences.items():
        caption = (
            f"After {n} {results.protocol.step}: average rank over {found.n_tasks} tasks. A bar "
            f"joins samplers whose ranks do not differ significantly (critical difference "
            f"{found.difference:.2f}, α = {statistics.ALPHA:g}). Friedman's test: "
            f"p = {found.friedman_p:.2g}."
        )
        blocks.append(Block(figure=draw(f"critical-difference-{n}"), caption=caption))
        table = _square(found.p, {"rank": texts(found.ranks, "{:.2f}")})
        title = f"Ranks and Nemenyi's p-values of all pairs after {n}"
        blocks.append(Block(folded=title, table=table))
    if not blocks:
        note = "Critical differences need at least 3 samplers and 2 tasks."
        blocks.append(Block(note=note))
    means = {n: by_task(results.regret[n]) for n in analysis.checkpoints}
    if len(results.samplers) > 1:
        tests = {
            f"after {n}": statistics.compare_all(mean, analysis.against)
            for n, mean in means.items()
        }
        title = f"Paired tests against {analysis.against}"
        blocks.append(Block(title=title, table=paired_tests(tests, analysis.against), note=TESTED))
    title = f"Wilcoxon p-values of all pairs after {last}, adjusted by Holm for all pairs"
    return [*blocks, Block(folded=title, table=_square(statistics.pairwise_p(means[last])))]


def _square(p: pd.DataFrame, first: Mapping[str, Sequence[str]] | None = None) -> Table:
    columns = {name: texts(p[name], "{:.2g}") for name in p}
    return Table.of({**(first or {}), **columns}, [*p.index])


def _time(analysis: Analysis, draw: Draw) -> list[Block]:
    seconds = analysis.results.seconds_per_ask()
    if seconds.isna().all(axis=None):
        return [Block(note="Not recorded in these runs.")]
    protocol = analysis.results.protocol
    caption = (
        "Median (dot) and the range of 90 % of the suggestions (line). Without the first "
        f"{protocol.n_startup} {protocol.step}."
    )
    columns = {
        head: [*map(duration, seconds[q])]
        for head, q in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95))
    }
    table = Table.of(columns, [*seconds.index])
    return [Block(figure=draw("time"), caption=caption, table=table)]


def _scenarios(analysis: Analysis, draw: Draw) -> list[Block]:
    names = analysis.results.scenarios
    blocks = []
    for name in names if len(names) > 1 else ():
        part = analysis.results.of_scenario(name)
        title = f"{name}: {count(len(part.tasks), 'task')}, {len(part.keys)} runs a sampler"
        table = overview(part, None, _few(analysis.checkpoints))
        figure = draw(scenario_file(name))
        blocks.append(Block(title, figure, f"Mean regret on {name}.", table=table))
    return blocks


def _tasks(analysis: Analysis) -> list[Block]:
    results, last = analysis.results, analysis.checkpoints[-1]
    regret = by_task(results.regret[last])
    tasks = [f"{scenario} / {task}" for scenario, task in results.tasks]
    columns = {name: texts(row, "{:.4f}") for name, row in regret.iterrows()}
    title = f"Regret of every task after {last} {results.protocol.step}, mean over its seeds"
    return [Block(folded=title, table=Table.of(columns, tasks, "task"))]


def _definitions(parts: Sequence[Part]) -> dict[str, str]:
    """Return terms that are used on the page; what regret is depends on the problem."""
    regrets: dict[str, list[str]] = {}
    for part in parts:
        if part.curves:
            regrets.setdefault(part.curves.results.protocol.regret, []).append(part.name)
    terms = {f"Regret ({', '.join(names)})": regret for regret, names in regrets.items()}
    if regrets:
        terms |= TERMS_OF_CURVES
    if any(part.curves is None for part in parts):
        terms |= {f"{name} (real studies)": meaning for name, meaning in DEFINITIONS.items()}
    return terms | TERMS
