"""Figures that pages quote are those of docs/benchmarks.md, by way of docs/figures.json.

Each entry names figures, the text of the benchmarks that they are from, and the pages that quote
them. Whoever measures anew changes the benchmarks, then the entries and pages that this names.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pages import ROOT

FIGURES: list[dict[str, Any]] = json.loads((ROOT / "docs/figures.json").read_text("utf-8"))
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text("utf-8")
# Pages on which every figure must have an entry.
COMPLETE = ["README.md", "docs/guide/faq.md", "docs/tutorials/ray.md"]
# Regret, p-values and seconds have no leading zero, or at least three digits: no version has.
FIGURE = re.compile(r"(?<![\w.])(?:\d?\.\d{3,4}|\.\d{2})(?![\d.]*\d)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.S | re.M)


def figures_on(page: str) -> set[str]:
    return set(FIGURE.findall(CODE.sub("", (ROOT / page).read_text("utf-8"))))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure["what"])
def test_figures_are_those_of_the_benchmarks(figure: dict[str, Any]) -> None:
    assert figure["source"] in BENCHMARKS, "measured anew: change the entry and its pages"
    in_source = re.findall(r"\d?\.\d+", figure["source"])
    assert set(figure["values"]) <= set(in_source)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure["what"])
def test_pages_quote_them(figure: dict[str, Any]) -> None:
    for page in figure["pages"]:
        text = (ROOT / page).read_text("utf-8")
        missing = [value for value in figure["values"] if value not in text]
        assert not missing, f"{page} lacks {missing} of: {figure['what']}"


@pytest.mark.parametrize("page", COMPLETE)
def test_nothing_else_is_quoted(page: str) -> None:
    known = {v for figure in FIGURES if page in figure["pages"] for v in figure["values"]}
    assert figures_on(page) - known == set()


def test_a_stale_figure_would_be_seen() -> None:
    assert FIGURE.findall("ends at .083, p = .0003, 1.142; torch 2.13.0, Ray 2.40, .1 s") == [
        ".083",
        ".0003",
        "1.142",
    ]
