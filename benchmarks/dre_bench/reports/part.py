"""A part of a report: runs of one problem that can be compared."""

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


def prefixes(parts: Sequence[Part]) -> dict[str, str]:
    """Return what names of files and of elements of the page begin with, by the part's name."""
    if len(parts) == 1:
        return {parts[0].name: ""}
    names = {part.name: re.sub(r"[^A-Za-z0-9._]+", "-", part.name) for part in parts}
    return {name: f"{plain.strip('-')}-" for name, plain in names.items()}
