"""The table "Who proposes trial N" of the documentation says what `recommend/schedule.py` does."""

import re
from pathlib import Path

import numpy as np
import pytest
from small_spaces import ProgressOf

from dre_plugins.recommend.explanation import SOURCES
from dre_plugins.recommend.schedule import TurnRules, is_contrast_due, proposer_for

PAGE = Path(__file__).parents[2] / "docs/guide/method.md"


def rows() -> list[tuple[str, str]]:
    """Return what the table says: when, and the source."""
    section = PAGE.read_text(encoding="utf-8").split("## Who proposes trial N")[1]
    table = section.split("\n\n", 3)[2].splitlines()[2:]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table]
    return [(when, source) for when, _, source in cells]


def holds(when: str, n: int, study: ProgressOf, rules: TurnRules, needs_contrast: bool) -> bool:
    """Say whether the condition of a row, with the numbers that it states, is true."""
    tests = {
        r"no trained prior": lambda _: not rules.has_prior,
        r"^trained prior": lambda _: rules.has_prior,
        r"N odd": lambda _: n % 2 == 1,
        r"(\d+) trials have ended, no obstacle": lambda k: (
            study.n_ended >= k and rules.is_universal
        ),
        r"no universal prior": lambda _: not rules.is_universal,
        r"N < (\d+)": lambda k: n < k,
        r"fewer than (\d+) trials have ended": lambda k: study.n_ended < k,
        r"needs a test": lambda _: needs_contrast,
        r"nothing observed": lambda _: study.n_ended == 0,
        r"N mod (\d+) = 2": lambda k: n % k == 2,
        r"and (\d+) trials have ended since": lambda k: (study.n_since_incumbent or 0) >= k,
        r"every configuration|the chosen model fails": lambda _: False,
        r"otherwise": lambda _: True,
    }
    found = [(match, test) for text, test in tests.items() if (match := re.search(text, when))]
    assert found, f"a row that this test does not know: {when}"
    return all(test(int(match[1]) if match.groups() else 0) for match, test in found)


@pytest.mark.parametrize(
    ("rules", "needs_contrast"),
    [
        (TurnRules(), False),
        (TurnRules(is_universal=False), False),
        (TurnRules(has_prior=True), False),
        (TurnRules(has_prior=True), True),
    ],
)
@pytest.mark.parametrize("n_since", [0, 7, 8, 30])
def test_the_table_says_who_proposes(n_since: int, rules: TurnRules, needs_contrast: bool) -> None:
    for n in range(40):
        since = min(n_since, n - 1) if n else None
        study = ProgressOf(n, can_rank=n > 0, lists=n > 0, n_since_incumbent=since)
        stated = next(
            source for when, source in rows() if holds(when, n, study, rules, needs_contrast)
        )
        assert stated == proposer_for(n, study, rules, needs_contrast=needs_contrast), n


def test_the_table_names_sources_that_there_are() -> None:
    assert {source for _, source in rows()} <= {*SOURCES}


def test_contrasts_are_due_as_the_page_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("- **Contrasts:**"))
    first, second, third, credit = (
        int(re.search(pattern, line)[1])
        for pattern in (
            r"once (\d+) trials",
            r"two after (\d+)",
            r"three after (\d+)",
            r"; (\d+) if",
        )
    )
    favourites = np.zeros
    assert [is_contrast_due(favourites(n), 1.0) for n in (first - 1, first)] == [False, True]
    for n, n_before in ((second, 1), (third, 2)):
        tried = np.concatenate([np.ones(n_before), favourites(n - n_before)])
        assert is_contrast_due(tried, 1.0) and not is_contrast_due(tried[:-1], 1.0)
    assert is_contrast_due(np.ones(credit - 1), 0.4) and not is_contrast_due(np.ones(credit), 0.4)
