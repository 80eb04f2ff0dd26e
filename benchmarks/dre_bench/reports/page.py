"""The report as one HTML page that needs nothing else: no network, no script, no other file.

What stands on it is in `templates/page.html`, which escapes every name; here are its tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jinja2
from markupsafe import Markup, escape
from matplotlib.figure import Figure

import dre_plugins
from dre_bench.reports import results, statistics
from dre_bench.reports.figures import data_uri
from dre_bench.reports.part import Part, Report
from dre_bench.reports.real_studies import DEFINITIONS
from dre_bench.reports.results import by_task
from dre_bench.reports.tables import Table, texts


def render(report: Report, figures: Mapping[str, Figure], command: str) -> str:
    """Return the page.

    Args:
        report: What it shows.
        figures: Those of `figures.draw_all`, their names after the prefix of the part.
        command: What made it, to be repeated.
    """
    regrets: dict[str, list[str]] = {}
    for part in report.parts:
        if part.curves:
            regrets.setdefault(part.curves.results.protocol.regret, []).append(part.name)
    versions = {**report.versions, "dre-plugins, of this report": dre_plugins.__version__}
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dre_bench.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("page.html").render(
        parts=[_part(part, part.prefix(report.parts), figures) for part in report.parts],
        left_out=report.left_out,
        command=command,
        versions=Table.of({"version": [*versions.values()]}, [*versions], "package in the runs"),
        regrets={", ".join(names): meaning for meaning, names in regrets.items()},
        terms=DEFINITIONS if any(part.curves is None for part in report.parts) else {},
        alpha=statistics.ALPHA,
        stagnation=(results.STAGNATION_REGRET, results.STAGNATION_TRIALS),
    )


def _breakable(name: str) -> Markup:
    """Let the long name of a column fill several lines."""
    return Markup(re.sub(r"([:.,=@])", r"\1<wbr>", str(escape(name))))


def _part(part: Part, prefix: str, figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Return what the template asks for; figures by name, as sources of images."""
    mine = {name.removeprefix(prefix): f for name, f in figures.items() if name.startswith(prefix)}
    shown = {"part": part, "prefix": prefix, "figures": {n: data_uri(f) for n, f in mine.items()}}
    if part.curves is None:
        return shown
    results, last = part.curves.results, part.curves.checkpoints[-1]
    overview, *rest = part.tables.items()
    tasks = by_task(results.regret[last])
    return shown | {
        "analysis": part.curves,
        "overview": overview,
        "scenarios": rest,
        "tasks": Table.of(
            {name: texts(row, "{:.4f}") for name, row in tasks.iterrows()},
            [f"{scenario} / {task}" for scenario, task in tasks],
            "task",
        ),
    }
