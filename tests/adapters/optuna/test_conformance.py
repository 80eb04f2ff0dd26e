"""Optuna's own conformance classes, unmodified."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from optuna.samplers import BaseSampler
from optuna_worker import tiny_sampler
from presets import TINY

from dre_plugins.engine import FittingSettings, ScorerSettings
from dre_plugins.recommend.settings import Settings

pytest_samplers = pytest.importorskip(
    "optuna.testing.pytest_samplers", reason="Optuna publishes its conformance classes since 4.8"
)


# Whether suggestions are legal is asked of a thousand of them, and not how good they are.
LEAST = replace(
    TINY,
    scorer=ScorerSettings(n_members=1, hidden=(4,), activation="silu"),
    from_random=FittingSettings(n_steps=1, learning_rate=0.02),
)


class TestDRESampler(
    pytest_samplers.BasicSamplerTestCase,
    pytest_samplers.RelativeSamplerTestCase,
    pytest_samplers.MultiObjectiveSamplerTestCase,
):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: tiny_sampler(n_startup_trials=0, settings=Settings(preset=LEAST))
