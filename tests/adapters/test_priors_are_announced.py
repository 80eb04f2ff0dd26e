"""One line at INFO says which parameters of a study a prior knows.

Ray Tune and Syne Tune leave it to `AskTell`, in their own logs (`test_logs.py`).
"""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from presets import TINY

import dre_plugins
from dre_plugins.recommend.settings import Settings

KNOWN = "knows learning_rate (there 'eta'), max_iter (there 'nrounds'); not: patience"
OPTIONS: dict[str, Any] = {"prior": "xgboost", "settings": Settings(preset=TINY)}


def optuna_study() -> None:
    optuna = pytest.importorskip("optuna")

    def objective(trial: Any) -> float:
        rate = trial.suggest_float("learning_rate", 1e-3, 1.0, log=True)
        return rate + trial.suggest_int("max_iter", 5, 500) + trial.suggest_float("patience", 0, 1)

    study = optuna.create_study(sampler=dre_plugins.DRESampler(seed=0, **OPTIONS))
    study.optimize(objective, n_trials=4)


def ask_tell() -> None:
    from dre_plugins.space import Float, Integer

    known = {"learning_rate": Float(1e-3, 1.0, "log"), "max_iter": Integer(5, 500)}
    space = {**known, "patience": Float(0.0, 1.0)}
    loaded = dre_plugins.Prior.load("xgboost")  # AskTell takes no names
    study = dre_plugins.AskTell(space, seed=0, **{**OPTIONS, "prior": loaded})
    for _ in range(4):
        study.ask()


@pytest.mark.parametrize("study", [optuna_study, ask_tell])
def test_what_a_prior_knows_is_said_once(study: Callable[[], None], caplog) -> None:
    with caplog.at_level(logging.INFO), caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study()
    announced = [record for record in caplog.records if "prior 'xgboost'" in record.getMessage()]
    assert [record.getMessage() for record in announced] == [f"prior 'xgboost' {KNOWN}"]
    assert announced[0].levelno == logging.INFO


def test_the_universal_prior_has_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    options = {**OPTIONS, "prior": "universal"}
    with caplog.at_level(logging.INFO):
        dre_plugins.AskTell({"x": [1, 2, 3]}, seed=0, **options).ask()
    assert "knows" not in caplog.text
