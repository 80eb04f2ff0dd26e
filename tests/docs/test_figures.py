"""Figures that pages quote are those of the notebook in lab/, by way of docs/figures.json.

Each entry names figures, the text of the notebook that they are from, and the pages that quote
them. Whoever measures anew writes a page of the notebook, then changes the entries and pages that
this names. Tables of the benchmarks and figures of decisions are compared with the notebook.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pages import LAB, RECORDS, ROOT, name_of

FIGURES: list[dict[str, Any]] = json.loads((ROOT / "docs/figures.json").read_text("utf-8"))
NOTEBOOK = "\n".join(page.read_text("utf-8") for page in LAB)
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text("utf-8")
# Pages on which every figure must have an entry.
COMPLETE = [
    "README.md",
    "docs/guide/arguments.md",
    "docs/guide/faq.md",
    "docs/tutorials/constraints.md",
    "docs/tutorials/ray.md",
]
# Regret, p-values and seconds have no leading zero, or at least three digits: no version has.
FIGURE = re.compile(r"(?<![\w.])(?:\d?\.\d{3,4}|\.\d{2})(?![\d.]*\d)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.S | re.M)


def figures_on(page: str) -> set[str]:
    return set(FIGURE.findall(CODE.sub("", (ROOT / page).read_text("utf-8"))))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure["what"])
def test_figures_are_those_of_the_notebook(figure: dict[str, Any]) -> None:
    assert figure["source"] in NOTEBOOK, "measured anew: change the entry and its pages"
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
    committed = {v for figure in FIGURES if page in figure["pages"] for v in figure["values"]}
    assert figures_on(page) - committed == set()


ROWS = [row for row in BENCHMARKS.splitlines() if row.startswith("|") and FIGURE.search(row)]


def test_the_benchmarks_have_five_tables_of_figures() -> None:
    headers = re.findall(r"^## (.+)$", BENCHMARKS, re.M)
    assert len(headers) == 5
    assert len(ROWS) > 15


@pytest.mark.parametrize("row", ROWS)
def test_rows_of_the_benchmarks_are_in_the_notebook(row: str) -> None:
    assert f"\n{row}\n" in NOTEBOOK


def test_other_figures_of_the_benchmarks_are_in_the_notebook() -> None:
    assert sorted(figures_on("docs/benchmarks.md") - set(FIGURE.findall(NOTEBOOK))) == []


def test_there_are_few_decisions() -> None:
    assert 20 < len(RECORDS) <= 40


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_a_decision_is_short_and_its_figures_are_in_the_notebook(record: Path) -> None:
    text = record.read_text("utf-8")
    assert len(text.splitlines()) <= 12
    lines = [line.partition(":")[0] for line in text.splitlines() if line.startswith("- ")]
    assert lines == ["- Context", "- Choice", "- Figure", "- Lab"]
    link = re.search(r"\]\((\S+?)#(\S+)\)$", text.rstrip())
    assert link, "the last line names a section of the notebook"
    page = (record.parent / link[1]).read_text("utf-8")
    sections = {anchor(title) for title in re.findall(r"^#+ (.+)$", page, re.M)}
    assert link[2] in sections
    assert set(FIGURE.findall(text)) <= set(FIGURE.findall(page))


def anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_a_stale_figure_would_be_seen() -> None:
    assert FIGURE.findall("ends at .083, p = .0003, 1.142; torch 2.13.0, Ray 2.40, .1 s") == [
        ".083",
        ".0003",
        "1.142",
    ]
