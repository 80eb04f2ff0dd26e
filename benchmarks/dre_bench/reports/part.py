"""A report and its parts, each of runs of one problem that can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dre_bench.reports.results import Analysis
from dre_bench.reports.tables import Table


@dataclass(frozen=True)
class Part:
    """What is reported of runs of one problem that can be compared.

    Attributes:
        name: Name of the problem, numbered where it has several parts.
        about: Which runs these are, where it has several.
        tables: What the text says, by title.
        curves: What figures are drawn of; None for real studies.
        purpose: What the problem is about, in a sentence.
    """

    name: str
    about: str
    tables: Mapping[str, Table]
    curves: Analysis | None = None
    purpose: str = ""

    @property
    def title(self) -> str:
        """Its heading."""
        return f"{self.name}: {self.about}" if self.about else self.name

    @property
    def heading(self) -> str:
        """Its heading for those who do not know the names of problems."""
        purpose = self.purpose.rstrip(".")
        return f"{purpose} ({self.title})" if purpose else self.title

    def prefix(self, parts: Sequence[Part]) -> str:
        """Return what its files and elements of the page begin with, if it is one of several."""
        plain = re.sub(r"[^A-Za-z0-9._]+", "-", self.name).strip("-")
        return f"{plain}-" if len(parts) > 1 else ""


@dataclass(frozen=True)
class Report:
    """What a page or a text tells of some files.

    Attributes:
        parts: In the order of the problems.
        left_out: Which runs were not compared, a sentence for each problem.
        versions: Of packages in the runs, by name.
    """

    parts: tuple[Part, ...]
    left_out: tuple[str, ...]
    versions: Mapping[str, str]
