"""Figures of benchmark runs; every function returns a Matplotlib figure.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; with more samplers
than colours the dashes differ. A sampler has the same colour in all figures of a report. Names
stand beside their curves.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from dre_bench.reports import statistics
from dre_bench.reports.results import Results
from dre_bench.reports.statistics import CriticalDifference, Floats
from dre_bench.reports.summary import Analysis, duration
from dre_plugins.plots.style import COLOURS

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))
TEXT = "#222222"
"""Also of names beside curves: the lighter colours are hard to read as text."""
WIDTH = 11.0
FONT_SIZE = 10.0
LETTER = 0.08
LINE = FONT_SIZE * 1.25 / 72
"""About the width of a letter and the height of a line, in inches."""
MAX_BANDS = 8
"""With more samplers than this the bands would hide the curves."""
MAX_NAME = 36
BAR_HEIGHT = 2.0
"""Of the bar of the critical difference, above the numbers of the axis."""
LEAST_REGRET = 1e-4
LEAST_SECONDS = 1e-4

STYLE: Any = {
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    # Text stays text: it can be searched and read out, and the file stays small.
    "svg.fonttype": "none",
    # Names of samplers may hold dollars.
    "text.parse_math": False,
}


def draw_all(analysis: Analysis) -> dict[str, Figure]:
    """Draw every figure of a report, by the name of its file."""
    results = analysis.results
    drawn = {"regret": regret_curves(results), "rank": rank_curves(analysis)}
    for n, found in analysis.differences.items():
        title = f"after {n} {results.protocol.step}"
        drawn[f"critical-difference-{n}"] = critical_difference(results.samplers, found, title)
    if not np.isnan(results.seconds_per_ask()).all():
        drawn["time"] = time_per_suggestion(results)
    if len(results.scenarios) > 1:
        for name in results.scenarios:
            drawn[scenario_file(name)] = regret_curves(results.of_scenario(name))
    return drawn


def scenario_file(scenario: str) -> str:
    """Return the name of the figure of a scenario."""
    return f"regret-{re.sub(r'[^A-Za-z0-9._-]', '_', scenario)}"


def regret_curves(results: Results) -> Figure:
    """Draw mean regret over runs, linear and logarithmic; bands are standard errors over tasks."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, _height(results)), layout="constrained")
        linear, log = figure.subplots(1, 2)
        _draw_regret(linear, results, is_log=False)
        _draw_regret(log, results, is_log=True)
        linear.set(title="linear", ylabel="mean regret (lower is better)")
        log.set(title="logarithmic")
        # The order of the curves is the same in both, and twice the names leave no room for them.
        _label_curves(log, results)
        return figure


def scenario_curves(results: Results) -> Figure:
    """Draw mean regret on a logarithmic scale, one panel for each scenario."""
    scenarios, names = results.scenarios, short_names(results.samplers)
    n_columns = min(3, len(scenarios))
    n_rows = -(-len(scenarios) // n_columns)
    width = max(5.5 * n_columns, 6.5)
    names_in_row = max(1, int(width / (0.6 + LETTER * max(map(len, names)))))
    legend = 0.3 + LINE * -(-len(names) // names_in_row)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, 3.6 * n_rows + legend), layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False)
        for panel, name, title in zip(
            panels.flat, scenarios, short_names(scenarios), strict=False
        ):
            _draw_regret(panel, results.of_scenario(name), is_log=True)
            panel.set(title=title, xlabel=results.protocol.step)
        for panel in panels.flat[len(scenarios) :]:
            panel.set_axis_off()
        panels[0, 0].set_ylabel("mean regret")
        handles = panels[0, 0].get_lines()
        columns = min(names_in_row, len(names))
        figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False)
        return figure


def rank_curves(analysis: Analysis) -> Figure:
    """Draw average ranks over runs with bootstrap confidence bands over tasks."""
    results = analysis.results
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, _height(results)), layout="constrained")
        panel = figure.subplots()
        ranks = results.ranks().mean(1)
        bands = analysis.rank_bands
        for i, rank in enumerate(ranks):
            if len(ranks) <= MAX_BANDS:
                panel.fill_between(
                    results.steps, bands[0][i], bands[1][i], alpha=0.13, lw=0, **_colour(i)
                )
            panel.plot(results.steps, rank, **style_of(i))
        panel.set(ylabel="average rank (lower is better)")
        panel.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        _set_steps(panel, results)
        _label_curves(panel, results)
        return figure


def critical_difference(
    samplers: Sequence[str], found: CriticalDifference, title: str = ""
) -> Figure:
    """Draw a critical-difference diagram: a bar joins samplers that do not differ significantly.

    Args:
        samplers: Names, in the order of the analysis.
        found: What to draw.
        title: Stands above it.

    Raises:
        ModuleNotFoundError: If scikit-posthocs is not installed.
    """
    import pandas  # type: ignore[import-untyped]
    from scikit_posthocs import critical_difference_diagram  # type: ignore[import-untyped]

    names = short_names(samplers)
    lines = -(-len(names) // 2)
    with matplotlib.rc_context(STYLE | {"axes.grid": False, "axes.spines.top": True}):
        figure = Figure(figsize=(WIDTH, 1.9 + 0.3 * lines), layout="constrained")
        panel = figure.subplots()
        drawn = critical_difference_diagram(
            dict(zip(names, found.ranks.tolist(), strict=True)),
            pandas.DataFrame(found.p, index=names, columns=names),
            alpha=statistics.ALPHA,
            ax=panel,
            # Spaces that do not break: others are dropped at the ends of a text.
            label_fmt_left="{label}  {rank:.2f}\u00a0",
            label_fmt_right="\u00a0{rank:.2f}  {label}",
            text_h_margin=0.02 * len(names),
            color_palette={name: _colour(i)["color"] for i, name in enumerate(names)},
            crossbar_props={"color": "#444444", "linewidth": 4, "solid_capstyle": "butt"},
            marker_props={"s": 36},
        )
        for label in drawn["labels"]:
            label.set_color(TEXT)
        start = float(found.ranks.min())
        panel.plot([start, start + found.difference], [BAR_HEIGHT] * 2, "|-", color=TEXT, lw=1.5)
        panel.annotate(
            f"critical difference {found.difference:.2f}",
            (start + found.difference, BAR_HEIGHT),
            (8, 0),
            textcoords="offset points",
            va="center",
        )
        panel.set_title(title)
        return figure


def time_per_suggestion(results: Results) -> Figure:
    """Draw the median seconds of a suggestion and, as a line, what 90 % of them take."""
    seconds = results.seconds_per_ask()
    known = [i for i in range(len(seconds)) if not np.isnan(seconds[i]).any()]
    names = short_names(results.samplers)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 0.9 + 0.32 * len(known)), layout="constrained")
        panel = figure.subplots()
        for row, i in enumerate(known):
            low, median, high = np.maximum(seconds[i], LEAST_SECONDS)
            panel.plot([low, high], [row, row], lw=3, alpha=0.35, **_colour(i))
            panel.plot(median, row, "o", ms=8, **_colour(i))
            panel.annotate(
                duration(seconds[i, 1]),
                (high, row),
                (8, 0),
                textcoords="offset points",
                va="center",
            )
        panel.set(xscale="log", xlabel="seconds of a suggestion (logarithmic)")
        panel.set_yticks(range(len(known)), [names[i] for i in known])
        panel.set_ylim(len(known) - 0.5, -0.5)
        panel.set_xlim(LEAST_SECONDS / 1.5, max(1.0, 4 * float(np.nanmax(seconds))))
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
        _plain_log(panel.xaxis, subs=(1.0,))
        return figure


def save(figures: Mapping[str, Figure], folder: Path, prefix: str = "") -> list[Path]:
    """Save figures as PNG and SVG.

    Args:
        figures: By the names of their files, without an ending.
        folder: Made where it is missing.
        prefix: Begins the names.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in figures.items():
        name = prefix + name
        with matplotlib.rc_context(STYLE):
            figure.savefig(folder / f"{name}.png", dpi=150)
        (folder / f"{name}.svg").write_text(_svg(figure, name), encoding="utf-8")
        files += [folder / f"{name}.png", folder / f"{name}.svg"]
    return files


def inline_svg(figure: Figure, name: str) -> str:
    """Return a figure as an element of an HTML page.

    Args:
        figure: The figure.
        name: Begins all its ids: they have to be unique on the page.
    """
    element = _svg(figure, name)
    element = element[element.index("<svg") :]
    # An HTML parser knows the namespaces, and the page is to hold no address.
    element = re.sub(r' xmlns(:xlink)?="[^"]*"', "", element)
    element = element.replace('xlink:href="#', f'href="#{name}-')
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = element.replace("url(#", f"url(#{name}-")
    # The page sets the width; the view box keeps the shape.
    return re.sub(r'^<svg[^>]*?(viewBox="[^"]*")[^>]*>', r"<svg \1>", element)


def style_of(index: int) -> dict[str, Any]:
    """Return the colour and the dashes of a sampler's curve, by its number."""
    return {**_colour(index), "linestyle": DASHES[index // len(COLOURS) % len(DASHES)]}


def short_names(samplers: Sequence[str]) -> list[str]:
    """Shorten names for figures, in their middle; two that become the same are numbered."""
    half = MAX_NAME // 2
    short = [n if len(n) <= MAX_NAME else f"{n[: half - 1]}…{n[-half:]}" for n in samplers]
    return [f"{n} ({i + 1})" if short.count(n) > 1 else n for i, n in enumerate(short)]


def spread(wanted: Sequence[float], gap: float) -> Floats:
    """Move positions as little as possible (least squares) so that none are too close.

    Args:
        wanted: Positions, in any order.
        gap: Least distance of two.

    Returns:
        Positions from 0 to 1, or beyond where there are too many.
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[tuple[float, int]] = []
    for i, index in enumerate(order):
        mean, count = float(wanted[index]) - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, count = (mean * count + other * n) / (count + n), count + n
        blocks.append((mean, count))
    placed = np.empty(len(order))
    means, counts = zip(*blocks, strict=True)
    room = max(0.0, 1.0 - gap * (len(order) - 1))
    placed[order] = np.clip(np.repeat(means, counts), 0.0, room) + gap * np.arange(len(order))
    return placed


def _svg(figure: Figure, name: str) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # The salt makes ids the same in every run.
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def _colour(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)]}


def _height(results: Results) -> float:
    """Of a figure with a name beside each curve, in inches."""
    return max(4.2, 1.2 + LINE * len(results.samplers))


def _draw_regret(panel: Any, results: Results, *, is_log: bool) -> None:
    mean = results.regret.mean(1)
    error = statistics.standard_error(results.regret, results.task_of_run)
    floor = _floor(mean) if is_log else 0.0
    for i in range(len(mean)):
        low, high = np.maximum(mean[i] - error[i], floor), mean[i] + error[i]
        if len(mean) <= MAX_BANDS:
            panel.fill_between(results.steps, low, high, alpha=0.13, lw=0, **_colour(i))
        panel.plot(results.steps, np.maximum(mean[i], floor), **style_of(i))
    if is_log:
        panel.set_yscale("log")
        panel.set_ylim(floor, 1.3 * max(float(mean.max()), 2 * floor))
        _plain_log(panel.yaxis, subs=(1.0, 2.0, 5.0))
    else:
        # The first, random trials can be so bad that nothing else would be seen.
        early = mean[:, mean.shape[1] // 20 :]
        panel.set_ylim(0, 1.05 * max(float(early.max()), LEAST_REGRET))
    _set_steps(panel, results)


def _floor(mean: Floats) -> float:
    """The lower end of a logarithmic axis, where curves that reach 0 are drawn."""
    positive = mean[mean > LEAST_REGRET]
    return max(LEAST_REGRET, float(positive.min()) / 1.6) if positive.size else LEAST_REGRET


def _set_steps(panel: Any, results: Results) -> None:
    panel.set_xlabel(results.protocol.step)
    first, last = int(results.steps[0]), int(results.steps[-1])
    panel.set_xlim(first, max(last, first + 1))
    panel.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _plain_log(axis: Any, *, subs: Sequence[float]) -> None:
    """Label multiples of powers of ten as plain numbers."""
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _label_curves(panel: Any, results: Results) -> None:
    """Write the samplers' names at the right ends of their curves, without overlaps."""
    lines = panel.get_lines()
    to_axes = panel.transScale + panel.transLimits
    ends = [float(to_axes.transform(line.get_xydata()[-1])[1]) for line in lines]
    height = panel.figure.get_figheight() - 1.0
    placed = spread(np.clip(ends, 0.0, 1.0).tolist(), LINE / height)
    for i, name in enumerate(short_names(results.samplers)):
        y = placed[i]
        joint = Line2D(
            [1.0, 1.04],
            [min(max(ends[i], 0.0), 1.0), y],
            transform=panel.transAxes,
            clip_on=False,
            lw=1.5,
            **style_of(i),
        )
        panel.add_artist(joint)
        panel.text(1.05, y, name, transform=panel.transAxes, va="center", color=TEXT)
