"""What holds for all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does; pytest-timeout is the limit. A
# commit passes always or never: new examples are what `make fuzz` and `make properties` look for.
settings.register_profile("dre_plugins", deadline=None, derandomize=True)
# `make fuzz`: a hundred times as many, so that one file of a kind is damaged in 10 000 ways.
settings.register_profile("fuzz", deadline=None, max_examples=10_000)
settings.load_profile("dre_plugins")


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
