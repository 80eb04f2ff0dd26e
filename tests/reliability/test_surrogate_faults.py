"""The surrogate breaks, memory runs out, a GPU goes: every study ends with all its trials.

Whole runs through the tuners of Ray and Syne Tune are in `test_ray_tuner_faults.py` and
`test_syne_tune_tuner_faults.py`.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from presets import TINY
from searches import MakeSearch, Outcome, every_framework

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.settings import Settings

N_TRIALS, N_STARTUP = 12, 4
META, CUDA = b"\x8c\x04meta", b"\x8c\x04cuda"  # short strings of four characters in a pickle
# "meta" is a device that is there and cannot compute, like a GPU whose memory is full.
ON_META = Settings(preset=TINY, device="meta")

ERRORS = {
    "memory": MemoryError(),
    "memory of a GPU": torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    "memory of torch": RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    "CUDA": RuntimeError("CUDA error: unspecified launch failure"),
}


@pytest.fixture
def break_fits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let fits raise, from the given one on or at that one only."""

    def spoil(error: Exception, first: int = 0, is_once: bool = False) -> None:
        fit, calls = DeepRankingEnsemble.fit, iter(range(10**6))

        def broken(self: DeepRankingEnsemble, *arguments: Any, **keywords: Any) -> Any:
            call = next(calls)
            if call == first or (call > first and not is_once):
                raise error
            return fit(self, *arguments, **keywords)

        monkeypatch.setattr(DeepRankingEnsemble, "fit", broken)

    return spoil


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if "dre_plugins" in record.name and record.levelno >= logging.WARNING
    ]


def all_fell_back(framework: MakeSearch) -> Outcome:
    """Run trials, none of which is suggested by the model."""
    outcome = framework().run(N_TRIALS)
    assert outcome.n_complete == N_TRIALS
    assert outcome.stats["fallbacks"] == outcome.stats["fallback"] == N_TRIALS - N_STARTUP
    return outcome


@every_framework
@pytest.mark.parametrize("fault", ERRORS)
def test_space_filling_points_take_over(framework, fault, break_fits, caplog) -> None:
    break_fits(ERRORS[fault])
    outcome = all_fell_back(framework)
    assert len({str(configuration) for configuration in outcome.configurations}) == N_TRIALS
    (warning,) = warned(caplog)
    assert "surrogate failed" in warning and type(ERRORS[fault]).__name__ in warning


def weights_of_nan() -> Callable[..., Any]:
    fit = DeepRankingEnsemble.fit

    def fit_to_nan(self: DeepRankingEnsemble, *arguments: Any, **keywords: Any) -> Any:
        fitted = fit(self, *arguments, **keywords)
        spoilt = {name: value * math.nan for name, value in fitted.parameters.items()}
        return replace(fitted, parameters=spoilt)

    return fit_to_nan


@every_framework
@pytest.mark.parametrize("fault", ["weights are NaN", "scoring raises"])
def test_models_that_fit_and_cannot_choose_cost_no_trial(
    framework: MakeSearch,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if fault == "scoring raises":
        monkeypatch.setattr(EnsembleProposer, "propose", Mock(side_effect=RuntimeError))
    else:
        monkeypatch.setattr(DeepRankingEnsemble, "fit", weights_of_nan())
    all_fell_back(framework)
    (warning,) = warned(caplog)
    assert "surrogate failed" in warning


@every_framework
def test_a_single_failure_costs_a_single_suggestion(framework, break_fits) -> None:
    break_fits(MemoryError(), first=5, is_once=True)
    stats = framework().run(N_TRIALS).stats
    assert stats["fallbacks"] == stats["fallback"] == 1
    assert stats["model"] + stats["exploration"] == N_TRIALS - N_STARTUP - 1


# ---- a device that is gone


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@every_framework
def test_a_device_that_is_not_there_is_an_error_at_set_up(framework: MakeSearch) -> None:
    with pytest.raises(ValueError, match=r"device must be one that torch can use here.*'cuda'"):
        framework(settings=Settings(preset=TINY, device="cuda"))


@every_framework
def test_the_cpu_takes_over_with_the_same_suggestions(framework: MakeSearch, caplog) -> None:
    outcome = framework(settings=ON_META).run(N_TRIALS)
    assert outcome.configurations == framework().run(N_TRIALS).configurations
    assert outcome.n_complete == N_TRIALS
    assert outcome.stats["device_fallbacks"] == N_TRIALS - N_STARTUP
    assert outcome.stats["fallbacks"] == 0
    (warning,) = warned(caplog)
    assert "'meta'" in warning and "using the CPU" in warning


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@every_framework
def test_a_search_of_a_machine_with_a_gpu_goes_on_without(framework: MakeSearch) -> None:
    search = framework(settings=ON_META)
    search.run(8)
    outcome = search.restarted(lambda state: state.replace(META, CUDA)).run(N_TRIALS - 8)
    assert outcome.configurations == framework().run(N_TRIALS).configurations
    assert outcome.stats["device_fallbacks"] == N_TRIALS - N_STARTUP


@every_framework
def test_a_surrogate_that_fails_on_every_device_is_counted_on_both(
    framework: MakeSearch, break_fits: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    break_fits(RuntimeError("CUDA error: device-side assert triggered"))
    outcome = framework(settings=ON_META).run(10)
    assert outcome.n_complete == 10
    assert outcome.stats["device_fallbacks"] == outcome.stats["fallbacks"] == 10 - N_STARTUP
    assert len(warned(caplog)) == 2
