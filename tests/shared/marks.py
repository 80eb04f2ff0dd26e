"""Marks of modules whose tests run real tuners."""

import pytest


def of_tuners(framework: str, seconds: int) -> list[pytest.MarkDecorator]:
    """Return marks of slow tests, in which a framework warns of itself."""
    limits = [pytest.mark.slow, pytest.mark.timeout(seconds)]
    return [getattr(pytest.mark, framework), *limits, pytest.mark.filterwarnings("ignore")]
