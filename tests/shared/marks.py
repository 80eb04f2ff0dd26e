"""Marks of tests that take long, and names of test cases."""

import re

import pytest

LONG = (pytest.mark.slow, pytest.mark.long)  # of cases whose like CI runs


def of_tuners(framework: str, seconds: int) -> list[pytest.MarkDecorator]:
    """Return marks of slow tests with real tuners, in which a framework warns of itself."""
    limits = [pytest.mark.slow, pytest.mark.timeout(seconds)]
    return [getattr(pytest.mark, framework), *limits, pytest.mark.filterwarnings("ignore")]


def label_of(value: object) -> str:
    """Return what names a value in every process, without its address."""
    return re.sub(r" object at 0x[0-9a-f]+", "", str(value))
