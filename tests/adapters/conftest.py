"""A sampler small enough to run hundreds of trials in a test; nothing here needs a framework."""

from importlib.util import find_spec
from pathlib import Path

import pytest

# Each extra of the package can be tested alone.
FRAMEWORKS = {"optuna": "optuna", "ray_tune": "ray", "syne_tune": "syne_tune"}
collect_ignore = [folder for folder, package in FRAMEWORKS.items() if not find_spec(package)]
MARKS = {"ray_tune": "ray", "syne_tune": "syne_tune"}
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of a framework's folder, so that `-m` can choose them."""
    for item in items:
        for folder, mark in MARKS.items():
            if HERE / folder in item.path.parents:
                item.add_marker(mark)
