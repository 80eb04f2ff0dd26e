"""The report as one HTML page that needs nothing else: no network, no script, no other file.

What stands on it is in `templates/page.html`, which escapes every name; here are its tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup, escape
from matplotlib.figure import Figure

import dre_plugins
from dre_bench.reports import results, statistics, tables
from dre_bench.reports.figures import data_uri, scenario_file
from dre_bench.reports.part import Part
from dre_bench.reports.real_studies import DEFINITIONS
from dre_bench.reports.results import Analysis, by_sampler, by_task, ranks
from dre_bench.reports.tables import Table, texts
from dre_bench.reports.words import in_words

if TYPE_CHECKING:
    from dre_bench.reports.report import Report

MAX_COLUMNS = 4
"""The last checkpoints, as many as fit into the main table."""


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
        parts=[_part(part, figures, part.prefix(report.parts)) for part in report.parts],
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


@dataclass(frozen=True)
class _Part:
    """A part with what the template asks for; figures by name, as sources of images."""

    part: Part
    prefix: str
    figures: Mapping[str, str]

    @property
    def analysis(self) -> Analysis:
        assert self.part.curves is not None
        return self.part.curves

    @property
    def words(self) -> dict[str, str]:
        return in_words(self.analysis)

    @property
    def overview(self) -> Table:
        checkpoints = self.analysis.checkpoints[-MAX_COLUMNS:]
        return tables.overview(self.analysis.results, None, checkpoints)

    @property
    def regret(self) -> Table:
        mean = by_sampler(self.analysis.results.regret)
        error = self.analysis.results.standard_error()
        return tables.by_checkpoint(
            mean[[*self.analysis.checkpoints]],
            lambda name, n: f"{mean.loc[name, n]:.4f} ± {error.loc[name, n]:.4f}",
        )

    @property
    def ranks(self) -> Table:
        mean, bands = by_sampler(ranks(self.analysis.results.regret)), self.analysis.rank_bands

        def text(name: str, n: int) -> str:
            low, high = (band.loc[name, n] for band in bands)
            return f"{mean.loc[name, n]:.2f} [{low:.2f}, {high:.2f}]"

        return tables.by_checkpoint(mean[[*self.analysis.checkpoints]], text)

    def all_pairs(self, checkpoint: int) -> Table:
        """Ranks, and the p-values of Nemenyi's test."""
        found = self.analysis.differences[checkpoint]
        columns = {name: texts(found.p[name], "{:.2g}") for name in found.p}
        return Table.of({"rank": texts(found.ranks, "{:.2f}"), **columns}, [*found.p.index])

    @property
    def tests(self) -> Table:
        regret, against = self.analysis.results.regret, self.analysis.against
        tests = {
            f"after {n}": statistics.compare_all(by_task(regret[n]), against)
            for n in self.analysis.checkpoints
        }
        return tables.paired_tests(tests, against)

    @property
    def time(self) -> Table:
        seconds = self.analysis.results.seconds_per_ask()
        heads = {0.05: "5 %", 0.5: "median", 0.95: "95 %"}
        columns = {head: [*map(tables.duration, seconds[q])] for q, head in heads.items()}
        return Table.of(columns, [*seconds.index])

    @property
    def scenarios(self) -> list[tuple[str, str, str, Table]]:
        """Name, size, figure and table of each, where there are several."""
        found = []
        names = self.analysis.results.scenarios
        for name in names if len(names) > 1 else ():
            part = self.analysis.results.of_scenario(name)
            table = tables.overview(part, None, self.analysis.checkpoints[-MAX_COLUMNS:])
            figure = self.figures[scenario_file(name)]
            found.append((name, tables.size(part.keys), figure, table))
        return found

    @property
    def tasks(self) -> Table:
        regret = by_task(self.analysis.results.regret[self.analysis.checkpoints[-1]])
        names = [f"{scenario} / {task}" for scenario, task in self.analysis.results.tasks]
        columns = {name: texts(row, "{:.4f}") for name, row in regret.iterrows()}
        return Table.of(columns, names, "task")


def _part(part: Part, figures: Mapping[str, Figure], prefix: str) -> _Part:
    mine = {name.removeprefix(prefix): f for name, f in figures.items() if name.startswith(prefix)}
    return _Part(part, prefix, {name: data_uri(figure) for name, figure in mine.items()})
