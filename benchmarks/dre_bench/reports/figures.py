"""Figures of benchmark runs; every function returns a Matplotlib figure.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart, with grey in place
of yellow; with more samplers than colours the dashes differ. A sampler has the same colour in all
figures of a report. Samplers of this project have thicker curves.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from dre_bench.reports.results import Results, by_sampler, ranks, standard_error

COLOURS = (
    *("#999999", "#0072B2", "#D55E00", "#009E73"),
    *("#CC79A7", "#E69F00", "#56B4E9", "#000000"),
)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))
WIDTH = 11.0
MAX_BANDS = 8
"""With more samplers than this the bands would hide the curves."""
MAX_NAME = 36
LEAST_REGRET = 1e-4

STYLE: Any = {
    "axes.prop_cycle": cycler(linestyle=DASHES) * cycler(color=COLOURS),
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    # Names of samplers may hold dollars.
    "text.parse_math": False,
    # Ids are the same in every run.
    "svg.hashsalt": "dre-bench",
}


def draw_all(results: Results) -> dict[str, Figure]:
    """Draw every figure of a report, by the name of its file."""
    return {"regret": regret_curves(results), "rank": rank_curves(results)}


@matplotlib.rc_context(STYLE)
def regret_curves(results: Results) -> Figure:
    """Draw mean regret over runs, logarithmic; bands are standard errors over tasks."""
    mean, error = by_sampler(results.regret), standard_error(results.regret)
    positive = mean.to_numpy()[mean.to_numpy() > LEAST_REGRET]
    floor = max(LEAST_REGRET, float(positive.min()) / 1.6) if positive.size else LEAST_REGRET
    # Curves that reach 0 are drawn on the lower edge.
    curves = mean.clip(lower=floor), (mean - error).clip(lower=floor), mean + error
    figure, panel = _drawn(results, "mean regret", *curves)
    panel.set(yscale="log", ylim=(floor, 1.3 * max(float(mean.max(axis=None)), 2 * floor)))
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
    return figure


@matplotlib.rc_context(STYLE)
def rank_curves(results: Results) -> Figure:
    """Draw average ranks over runs; bands are standard errors over tasks."""
    places = ranks(results.regret)
    mean, error = by_sampler(places), standard_error(places)
    return _drawn(results, "average rank", mean, mean - error, mean + error)[0]


def save(figures: Mapping[str, Figure], folder: Path) -> None:
    """Save figures as PNG and SVG, by the names of their files, in a folder that may be new."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=150)
        (folder / f"{name}.svg").write_bytes(_svg(figure))


def data_uri(figure: Figure) -> str:
    """Return a figure as the source of an image: the page needs no other file."""
    return f"data:image/svg+xml;base64,{base64.b64encode(_svg(figure)).decode()}"


@matplotlib.rc_context(STYLE)
def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def short_names(samplers: Sequence[str]) -> list[str]:
    """Shorten names for figures, in their middle; two that become the same are numbered."""
    half = MAX_NAME // 2
    short = [n if len(n) <= MAX_NAME else f"{n[: half - 1]}…{n[-half:]}" for n in samplers]
    return [f"{n} ({i + 1})" if short.count(n) > 1 else n for i, n in enumerate(short)]


def _drawn(
    results: Results, what: str, mean: pd.DataFrame, low: pd.DataFrame, high: pd.DataFrame
) -> tuple[Figure, Any]:
    """Return a figure and its panel: a curve for each row, with a band where there are few."""
    height = max(4.2, 1.2 + 0.2 * len(results.samplers))
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    panel, steps = figure.subplots(), mean.columns.to_numpy()
    lines = panel.plot(steps, mean.T, lw=1.6)
    for line, sampler in zip(lines, results.samplers, strict=True):
        if "dre" in sampler:
            line.set(linewidth=3.0, zorder=3.0)
    for i, line in enumerate(lines if len(mean) <= MAX_BANDS else ()):
        ends, colour = (low.iloc[i], high.iloc[i]), line.get_color()
        panel.fill_between(steps, *ends, alpha=0.13, lw=0, color=colour)
    panel.set(xlabel=results.protocol.step, ylabel=f"{what} (lower is better)")
    panel.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
    panel.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    names = short_names(results.samplers)
    figure.legend(lines, names, loc="outside right center", frameon=False)
    return figure, panel
