"""A report of benchmark runs as tables of the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dre_plugins.cli.console import printable

if TYPE_CHECKING:
    from dre_bench.reports.report import Report
    from dre_bench.reports.summary import Table as Cells


def report_tables(report: Report) -> Iterator[Table | str]:
    """Yield what `report.text` says, part by part; the best of each column in bold."""
    for part in report.parts:
        if len(report.parts) > 1:
            yield part.title
        for title, cells in part.tables.items():
            yield _table(title, cells)
    yield from report.left_out


def _table(title: str, cells: Cells) -> Table:
    table = Table(title=title, title_justify="left")
    for place, name in enumerate(cells.head):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    for row, texts in enumerate(cells.rows):
        table.add_row(
            *(
                Text(printable(text), style="bold" if (row, column) in cells.best else "")
                for column, text in enumerate(texts)
            )
        )
    return table
