"""What holds for all tests of reliability."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _quiet_optuna() -> Iterator[None]:
    optuna = sys.modules.get("optuna")
    if optuna is None:
        yield
        return
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)
