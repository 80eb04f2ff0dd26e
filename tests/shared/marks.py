"""Marks of tests that take long."""

import pytest

# Of a case whose other cases are enough for CI.
LONG = (pytest.mark.slow, pytest.mark.long)


def of_tuners(framework: str, seconds: int) -> list[pytest.MarkDecorator]:
    """Return marks of slow tests with real tuners, in which a framework warns of itself."""
    limits = [pytest.mark.slow, pytest.mark.timeout(seconds)]
    return [getattr(pytest.mark, framework), *limits, pytest.mark.filterwarnings("ignore")]
