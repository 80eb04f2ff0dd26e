"""Optuna's own conformance classes, unmodified."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna_worker import tiny_sampler

pytest_samplers = pytest.importorskip(
    "optuna.testing.pytest_samplers", reason="Optuna publishes its conformance classes since 4.8"
)


class TestDRESampler(
    pytest_samplers.BasicSamplerTestCase,
    pytest_samplers.RelativeSamplerTestCase,
    pytest_samplers.MultiObjectiveSamplerTestCase,
):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: tiny_sampler(n_startup_trials=0)
