"""What breaks under a search: the surrogate, memory, a GPU, the file of its prior, the clock."""

import logging
import math
import time
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from presets import TINY
from readers import make_prior
from searches import MakeSearch, every_framework

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float, Integer, SearchSpace
from dre_plugins.transfer.prior import Prior, PriorError

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


def break_fits(monkeypatch: pytest.MonkeyPatch, error: Exception, only: int | None = None) -> None:
    """Let all fits raise, or the one of that number."""
    fit, calls = DeepRankingEnsemble.fit, count()

    def broken(self: DeepRankingEnsemble, *arguments: Any, **keywords: Any) -> Any:
        if only in (None, next(calls)):
            raise error
        return fit(self, *arguments, **keywords)

    monkeypatch.setattr(DeepRankingEnsemble, "fit", broken)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if "dre_plugins" in record.name and record.levelno >= logging.WARNING
    ]


def fit_to_nan(ensemble: DeepRankingEnsemble, *_: Any, **__: Any) -> DeepRankingEnsemble:
    spoilt = {name: value * math.nan for name, value in ensemble.parameters.items()}
    return replace(ensemble, parameters=spoilt)


@every_framework
@pytest.mark.parametrize("fault", [*ERRORS, "weights are NaN", "scoring raises"])
def test_space_filling_points_take_over(framework, fault, monkeypatch, caplog) -> None:
    if fault in ERRORS:
        break_fits(monkeypatch, ERRORS[fault])
    elif fault == "scoring raises":
        monkeypatch.setattr(EnsembleProposer, "propose", Mock(side_effect=RuntimeError))
    else:
        monkeypatch.setattr(DeepRankingEnsemble, "fit", fit_to_nan)
    outcome = framework().run(N_TRIALS)
    assert outcome.n_complete == N_TRIALS
    assert outcome.stats["fallbacks"] == outcome.stats["fallback"] == N_TRIALS - N_STARTUP
    assert len({str(configuration) for configuration in outcome.configurations}) == N_TRIALS
    (warning,) = warned(caplog)
    assert "surrogate failed" in warning
    assert fault not in ERRORS or type(ERRORS[fault]).__name__ in warning


@every_framework
def test_a_single_failure_costs_a_single_suggestion(framework, monkeypatch) -> None:
    break_fits(monkeypatch, MemoryError(), only=5)
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
    framework, monkeypatch, caplog
) -> None:
    break_fits(monkeypatch, RuntimeError("CUDA error: device-side assert triggered"))
    outcome = framework(settings=ON_META).run(10)
    assert outcome.n_complete == 10
    assert outcome.stats["device_fallbacks"] == outcome.stats["fallbacks"] == 10 - N_STARTUP
    assert len(warned(caplog)) == 2


# ---- the file of a prior


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prior.safetensors"
    make_prior(path, space=SearchSpace({"x": Float(0.0, 1.0), "n": Integer(1, 9)}))
    return path


@every_framework
def test_a_prior_whose_file_vanishes_goes_on(framework: MakeSearch, file: Path) -> None:
    undisturbed = framework(prior=file).run(12)
    search = framework(prior=file)
    search.run(4)
    file.unlink()
    search.run(4)
    outcome = search.restarted().run(4)
    assert outcome.configurations == undisturbed.configurations
    assert outcome.n_complete == 12
    assert outcome.stats["fallbacks"] == 0


@every_framework
def test_a_prior_whose_file_is_damaged_is_an_error_at_set_up(framework, file) -> None:
    search = framework(prior=file)
    file.write_bytes(file.read_bytes()[:-100])
    search.run(6)  # it was read as a whole
    with pytest.raises(PriorError, match="damaged"):
        framework(prior=file)
    file.unlink()
    with pytest.raises(PriorError, match="path of a file"):
        framework(prior=file)


@pytest.mark.syne_tune
def test_a_searcher_that_is_made_anew_needs_the_prior_itself(file: Path) -> None:
    """`LastValueMultiFidelitySearcher` makes one at every suggestion."""
    pytest.importorskip("syne_tune")
    from syne_tune.config_space import randint, uniform
    from syne_tune.optimizer.schedulers.searchers.last_value_multi_fidelity_searcher import (
        LastValueMultiFidelitySearcher,
    )

    from dre_plugins.adapters.syne_tune import DRESearcher

    space = {"x": uniform(0, 1), "n": randint(1, 9)}
    searcher = LastValueMultiFidelitySearcher(
        space, searcher=DRESearcher, searcher_kwargs={"prior": Prior.load(file)}
    )
    file.unlink()
    for trial_id in range(4):
        config = searcher.suggest()
        searcher.on_trial_complete(trial_id, config, config["x"], 1)


# ---- the clock


class Jumping(datetime):
    """A clock that jumps by years at each reading, forward and back in turn."""

    looks = count()

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        jump = timedelta(days=(-1) ** next(cls.looks) * 4000)
        return datetime.now(tz) + jump


@pytest.fixture
def jumping_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps, now = count(), time.time
    monkeypatch.setattr(time, "time", lambda: now() + (-1) ** next(jumps) * 4e8)
    if find_spec("optuna"):
        monkeypatch.setattr("optuna.storages._in_memory.datetime", Jumping)


@every_framework
def test_a_clock_that_jumps_changes_nothing(framework, jumping_clock, request) -> None:
    disturbed = framework().run(15)
    assert disturbed.n_complete == 15
    assert disturbed.stats["fallbacks"] == 0
    request.getfixturevalue("monkeypatch").undo()
    assert disturbed.configurations == framework().run(15).configurations
