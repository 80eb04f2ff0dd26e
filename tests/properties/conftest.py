"""What holds for all properties: many cases, and what frameworks find odd."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import TRIED

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _odd_things_are_not_warned_of() -> Iterator[None]:
    with warnings.catch_warnings():
        # The frameworks warn of unhashable choices, steps that do not fit, and the like.
        warnings.filterwarnings("ignore", module="(optuna|ray|syne_tune)")
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(600))  # of many cases


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TRIED:
        terminalreporter.write_line(f"property cases: {sum(TRIED.values())} {dict(TRIED)}")
