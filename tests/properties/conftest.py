"""A small search effort: hundreds of suggestions take seconds, through the same code."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import TRIED

from dre_plugins.recommend import search

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _small_effort(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Search fewer candidates; what is suggested has to be right all the same."""
    for name, less in {"N_REFERENCE": 64, "N_SOBOL": 64, "N_CHILDREN": 32, "N_ROUNDS": 2}.items():
        monkeypatch.setattr(search, name, less)
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
