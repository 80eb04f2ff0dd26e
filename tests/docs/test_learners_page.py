"""The page of learners lists the priors that `prior="auto"` takes, with their figures."""

from __future__ import annotations

from pages import ROOT

from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import names

PAGE = ROOT / "docs" / "guide" / "learners.md"


def rows() -> list[str]:
    found = []
    for key, learner in LEARNERS.items():
        name = learner.prior or key
        if name in names():
            figures = Prior.load(name).card.validation
            texts = [
                f"{figures[title]:.2f}" if title in figures else "–"
                for title in ("regret of the first trial", "regret of the library's default")
            ]
            title = learner.title.removeprefix("a ").removeprefix("an ")
            found.append(f"| {title} | `{name}` | {' | '.join(texts)} |")
    return found


def test_the_page_has_a_row_for_each_learner() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert table == rows()
