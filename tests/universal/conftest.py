"""Tasks here are small: a second thread only costs time, and training needs one to be the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dre_plugins.engine.runtime import isolated


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with isolated("cpu", 1):
        yield
