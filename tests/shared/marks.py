"""Marks of tests that take long."""

import pytest

LONG = (pytest.mark.slow, pytest.mark.long)  # of cases whose like CI runs


def of_tuners(framework: str, seconds: int) -> list[pytest.MarkDecorator]:
    """Return marks of slow tests with real tuners, in which a framework warns of itself."""
    limits = [pytest.mark.slow, pytest.mark.timeout(seconds)]
    return [getattr(pytest.mark, framework), *limits, pytest.mark.filterwarnings("ignore")]
