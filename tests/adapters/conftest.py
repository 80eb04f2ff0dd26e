"""A sampler small enough to run hundreds of trials in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from optuna_worker import TINY  # noqa: E402

from dre_plugins.adapters.optuna import DRESampler  # noqa: E402


@pytest.fixture
def tiny_sampler() -> Callable[..., DRESampler]:
    """Build samplers with a tiny surrogate; arguments override."""

    def build(**arguments: Any) -> DRESampler:
        return DRESampler(**{"seed": 0, "n_startup_trials": 4, "preset": TINY, **arguments})

    return build


@pytest.fixture(autouse=True)
def _quiet_optuna() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)
