"""The page of learners lists the priors that `prior="auto"` takes, with their figures."""

import re

from pages import ROOT

from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import names
from dre_plugins.transfer.spaces.aliases import ROLES

PAGE = ROOT / "docs" / "guide" / "learners.md"
COLUMNS = (
    "regret of the first trial",
    "regret of the library's default",
    "regret of the portfolio",
    "regret of default and random trials",
    "regret after 5 trials",
    "regret after 5 trials without",
)


def rows() -> list[str]:
    found = []
    for key, learner in LEARNERS.items():
        name = learner.prior or key
        if name in names():
            figures = Prior.load(name).card.validation
            texts = [
                f"{figures[title]:.2f}".removeprefix("0") if title in figures else "–"
                for title in COLUMNS
            ]
            title = learner.title.removeprefix("a ").removeprefix("an ")
            found.append(f"| {title} | `{name}` | {' | '.join(texts)} |")
    return found


def tables() -> list[list[str]]:
    parts = PAGE.read_text(encoding="utf-8").split("\n\n")
    return [part.strip().splitlines()[2:] for part in parts if part.strip().startswith("|")]


def test_the_page_has_a_row_for_each_learner() -> None:
    assert tables()[0] == rows()


def test_names_of_a_row_play_one_role() -> None:
    for row in tables()[1]:
        names = {*re.findall("`([^`]+)`", row)}
        assert len(names) >= 2
        assert any(names <= role.names | role.words for role in ROLES.values()), row
