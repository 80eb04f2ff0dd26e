"""What a report says, as tables of text: Markdown, a terminal's or a page's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import rich.table
from rich.text import Text

from dre_bench.reports import statistics
from dre_bench.reports.results import Results, by_sampler, by_task, ranks
from dre_plugins.cli.console import printable

UNKNOWN = "–"
ALL_TIES = "—"
SAME = 1e-9
"""Means up to so far apart share the first place."""


@dataclass(frozen=True)
class Table:
    """Cells as text.

    Attributes:
        cells: The index has the names of the rows, its name is that of the first column.
        best: Of the same shape, which cells to point out.
    """

    cells: pd.DataFrame
    best: pd.DataFrame

    @classmethod
    def of(
        cls, columns: Mapping[str, Sequence[str]], rows: Sequence[str], name: str = "sampler"
    ) -> Table:
        """Make one in which nothing is pointed out."""
        cells = pd.DataFrame(dict(columns), pd.Index(rows, name=name), dtype=object)
        return cls(cells, cells == None)  # noqa: E711

    @property
    def head(self) -> list[str]:
        """Names of the columns."""
        return [str(self.cells.index.name), *self.cells.columns]

    @property
    def rows(self) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Name of each row, and its cells with whether they are pointed out."""
        texts, best = self.cells.to_numpy(), self.best.to_numpy()
        return [
            (str(name), [*zip(texts[i], best[i].tolist(), strict=True)])
            for i, name in enumerate(self.cells.index)
        ]


def pointed_out(table: Table, values: Mapping[str, pd.Series]) -> Table:
    """Point out the lowest of some columns, given as numbers."""
    best = table.best.copy()
    for column, numbers in values.items():
        best[column] = np.isclose(numbers, numbers.min(), rtol=0, atol=SAME)
    return Table(table.cells, best)


def overview(results: Results, against: str, checkpoints: Sequence[int]) -> Table:
    """Return the main table: one row for each sampler.

    Args:
        results: The paired runs.
        against: The sampler that all are compared with; what is significant is pointed out.
        checkpoints: Numbers of trials that are reported.
    """
    means = {"regret": by_sampler(results.regret), "rank": by_sampler(ranks(results.regret))}
    area, seconds = means["regret"].mean(axis=1), results.seconds_per_ask()
    low = {f"{name}@{n}": f[n] for name, f in means.items() for n in checkpoints}
    tests = {
        f"vs {against}@{n}": statistics.compare_all(by_task(results.regret[n]), against)
        for n in checkpoints
    }
    columns = {
        **{
            name: texts(column, "{:.4f}" if "regret" in name else "{:.2f}")
            for name, column in low.items()
        },
        **{name: compared(test) for name, test in tests.items()},
        "area": texts(area, "{:.4f}"),
        "stagnating": texts(results.stagnating(), "{:.0%}"),
        "ask": [UNKNOWN if np.isnan(value) else f"{value:.3f} s" for value in seconds],
    }
    table = pointed_out(Table.of(columns, results.samplers), low | {"area": area})
    return significant(table, tests)


def significant(table: Table, tests: Mapping[str, pd.DataFrame]) -> Table:
    """Point out the significant ones of some columns, given as tests."""
    best = table.best.assign(**{n: test["p"] <= statistics.ALPHA for n, test in tests.items()})
    return Table(table.cells, best)


def paired_tests(tests: Mapping[str, pd.DataFrame], against: str) -> Table:
    """Return a row for each sampler but one; what is significant is pointed out.

    Args:
        tests: From `statistics.compare_all`, by the name of a column.
        against: The one that others are compared with.
    """
    others = {name: test.drop(index=against) for name, test in tests.items()}
    samplers = [*next(iter(others.values())).index]
    table = Table.of({name: compared(test) for name, test in others.items()}, samplers)
    return significant(table, others)


def compared(tests: pd.DataFrame) -> list[str]:
    """Return wins, ties and losses over tasks, and the p-value of the paired test."""
    return [
        f"{row.wins}/{row.ties}/{row.losses} p={row.p:.2g}" if row.wins + row.losses else ALL_TIES
        for row in tests.itertuples()
    ]


def texts(column: pd.Series, form: str) -> list[str]:
    """Format every number of a column."""
    return [form.format(value) for value in column]


def count(n: int, name: str) -> str:
    """Return a number with its noun."""
    return f"{n} {name}{'' if n == 1 else 's'}"


def size(keys: Sequence[tuple[str, int | str, int]]) -> str:
    """Say how much each sampler is compared on."""
    tasks, runs = count(len({key[:2] for key in keys}), "task"), count(len(keys), "run")
    return f"{tasks}, {runs} a sampler"


def reached(checkpoints: Sequence[int], last: int) -> tuple[int, ...]:
    """Return the checkpoints that runs of this length reach; their end if it is none.

    Raises:
        ValueError: If one is below 1.
    """
    if min(checkpoints) < 1:
        raise ValueError(f"checkpoints must be from 1 to {last}, got {min(checkpoints)}.")
    return tuple(sorted({n for n in checkpoints if n <= last})) or (last,)


def markdown(title: str, table: Table) -> str:
    """Return a table as Markdown."""
    rows = [[name, *(text for text, _ in cells)] for name, cells in table.rows]
    lines = [table.head, ["---"] * len(table.head), *rows]
    return f"### {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def for_terminal(title: str, table: Table) -> rich.table.Table:
    """Return a table to print, the best of each column in bold."""
    drawn = rich.table.Table(title=title, title_justify="left")
    for place, name in enumerate(table.head):
        drawn.add_column(name, justify="right" if place else "left", overflow="fold")
    for name, cells in table.rows:
        styled = [Text(printable(text), style="bold" if best else "") for text, best in cells]
        drawn.add_row(Text(printable(name)), *styled)
    return drawn
