"""`prior="auto"`: the learner is recognised as the study shows its parameters."""

from __future__ import annotations

import logging

import optuna
import pytest
from presets import TINY

from dre_plugins import DRESampler, DRETable
from dre_plugins.recommend.settings import Settings

SETTINGS = Settings(preset=TINY)


def boosting(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("learning_rate", 1e-3, 0.3, log=True)
    depth = trial.suggest_int("max_depth", 2, 10)
    weight = trial.suggest_float("min_child_weight", 3.0, 100.0, log=True)
    share = trial.suggest_float("colsample_bytree", 0.3, 1.0)
    return rate + 0.01 * depth + 0.001 * weight + share


def reinforcement(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True)
    return rate + trial.suggest_float("gamma", 0.9, 0.9999)


def tuned(objective, prior: str, n_trials: int = 4) -> optuna.Study:
    study = optuna.create_study(sampler=DRESampler(seed=0, prior=prior, settings=SETTINGS))
    study.optimize(objective, n_trials=n_trials)
    assert not study.sampler.stats["fallbacks"]
    return study


def test_a_learner_is_recognised_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study = tuned(boosting, "auto")
    texts = [record.getMessage() for record in caplog.records]
    said = [text for text in texts if "parameters of XGBoost" in text]
    assert len(said) == 1
    assert "prior 'xgboost-small' knows learning_rate" in said[0]
    assert "if not, prior='universal'" in said[0]
    sources = [trial.user_attrs["dre:explanation"]["source"] for trial in study.trials]
    assert sources[0] == "prior" and "random" not in sources


def test_it_is_the_named_prior_once_the_space_is_known() -> None:
    first = tuned(boosting, "xgboost-small", 1).trials[0]
    following = []
    for prior in ("xgboost-small", "auto"):
        sampler = DRESampler(seed=0, prior=prior, settings=SETTINGS)
        study = optuna.create_study(sampler=sampler)
        study.add_trial(first)
        study.optimize(boosting, n_trials=2)
        following.append([trial.params for trial in study.trials])
    assert following[0] == following[1]


def test_where_nothing_is_recognised_it_is_the_universal_prior(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        auto = tuned(reinforcement, "auto", 7)
    assert "knows" not in caplog.text
    universal = tuned(reinforcement, "universal", 7)
    assert [t.params for t in auto.trials] == [t.params for t in universal.trials]


def test_past_studies_take_its_place() -> None:
    past = optuna.create_study(study_name="past")
    past.optimize(boosting, n_trials=3)
    sampler = DRESampler(seed=0, prior="auto", past_studies=past, settings=SETTINGS)
    study = optuna.create_study(sampler=sampler)
    study.optimize(boosting, n_trials=1)
    assert study.trials[0].user_attrs["dre:explanation"]["source"] == "prior"


def test_a_table_has_nothing_to_recognise() -> None:
    with pytest.raises(ValueError, match="prior"):
        DRETable(seed=0, prior="auto")
