"""What goes wrong in surrogates, objectives and arguments."""

import math
from typing import Any
from unittest.mock import Mock

import optuna
import pytest
from optuna.trial import Trial
from optuna_worker import mixed_objective, optimized, params_of, tiny_sampler

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.space import UnsupportedDomainError


def test_a_study_in_which_every_trial_fails_goes_on() -> None:
    def objective(trial: Trial) -> float:
        return trial.suggest_float("x", 0, 1) * math.nan

    study = optimized(tiny_sampler(), objective, 10)
    assert len({trial.params["x"] for trial in study.trials}) == 10
    assert study.sampler.stats["fallbacks"] == 0


@pytest.mark.parametrize(
    "error",
    [
        optuna.exceptions.StorageInternalError("read only"),
        RuntimeError("Error: did not possess lock"),  # a journal, when the machine hangs
        OSError(28, "No space left on device"),
    ],
    ids=repr,
)
def test_a_storage_that_takes_no_attributes_costs_no_trial(monkeypatch, error: Exception) -> None:
    study = optuna.create_study(sampler=tiny_sampler())
    expected = optimized(tiny_sampler(), mixed_objective, 8)
    refuse = Mock(side_effect=error)
    monkeypatch.setattr(study._storage, "set_trial_system_attr", refuse)
    monkeypatch.setattr(study._storage, "set_trial_user_attr", refuse)
    study.optimize(mixed_objective, n_trials=8)
    assert params_of(study) == params_of(expected)


@pytest.mark.parametrize("n_trials_before", [0, 3])
def test_a_range_without_end_is_an_error_that_names_it(n_trials_before: int) -> None:
    study = optimized(tiny_sampler(), mixed_objective, n_trials_before)
    for ends in ((0.0, math.inf), (-math.inf, 0.0)):
        with pytest.raises(UnsupportedDomainError, match=r"'width'.*inf"):
            study.optimize(lambda trial: trial.suggest_float("width", *ends), n_trials=1)  # noqa: B023


@pytest.mark.parametrize("name", [3, None, ("a", 1)])
def test_a_name_that_is_no_text_is_refused_with_the_first_trial(name: Any) -> None:
    study = optuna.create_study(sampler=DRESampler(seed=0))
    with pytest.raises(UnsupportedDomainError, match="its name must be a text, such as"):
        study.optimize(lambda trial: trial.suggest_float(name, 0.0, 1.0), n_trials=1)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_wrong_seed_is_named(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"seed must be a non-negative integer.*{seed}"):
        DRESampler(seed=seed)


def test_arguments_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        DRESampler(1)  # type: ignore[misc]
