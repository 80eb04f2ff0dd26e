"""`prior="auto"`: the learner is recognised as the study shows its parameters."""

import logging
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna_worker import optimized
from presets import FAST, TINY

from dre_plugins import DRESampler
from dre_plugins.recommend.settings import Settings


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
    study = optimized(DRESampler(seed=0, prior=prior, settings=FAST), objective, n_trials)
    assert not study.sampler.stats["fallbacks"]
    return study


def test_a_learner_is_recognised_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study = tuned(boosting, "auto")
    texts = [record.getMessage() for record in caplog.records]
    messages = [text for text in texts if "parameters of XGBoost" in text]
    assert len(messages) == 1
    assert "prior 'xgboost-small' knows learning_rate" in messages[0]
    assert "if not, prior='universal'" in messages[0]
    sources = [trial.user_attrs["dre:explanation"]["source"] for trial in study.trials]
    assert sources == ["prior"] * 3 + ["universal-prior"]
    explained = [study.sampler.explain(study, trial) for trial in study.trials]
    told = [explanation.past_studies for explanation in explained]
    assert told == ["the portfolio of XGBoost"] * 3 + [None]
    assert "learnt from the portfolio of XGBoost" in str(explained[0])


def test_after_its_portfolio_a_study_goes_on_without_the_prior() -> None:
    found = tuned(boosting, "auto", 12)
    sampler = DRESampler(seed=0, prior="universal", settings=FAST)
    alone = optuna.create_study(sampler=sampler)
    alone.add_trials(found.trials[:7])
    alone.optimize(boosting, n_trials=5)
    assert [trial.params for trial in alone.trials] == [trial.params for trial in found.trials]


def choice(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("classifier", ["neighbours", "trees"]) == "neighbours":
        return float(trial.suggest_int("knn__n_neighbors", 1, 50))
    leaf = trial.suggest_int("et__min_samples_leaf", 1, 50, log=True)
    return leaf + trial.suggest_float("et__max_features", 0.1, 1.0)


def test_each_branch_begins_with_the_prior_of_its_learner() -> None:
    study = tuned(choice, "auto", 6)
    firsts = {trial.params["classifier"]: trial for trial in reversed(study.trials)}
    assert {*firsts} == {"neighbours", "trees"}
    for number in range(3):  # the same first values whatever the seed
        sampler = DRESampler(seed=number + 5, prior="auto", settings=FAST)
        again = optimized(sampler, choice, 1)
        first = again.trials[0]
        recognised = {name: value for name, value in first.params.items() if "__" in name}
        expected = firsts[first.params["classifier"]].params
        assert recognised == pytest.approx({name: expected[name] for name in recognised})
    assert study.trials[0].user_attrs["dre:explanation"]["source"] == "prior"


def test_several_objectives_have_no_prior_that_was_not_given() -> None:
    found = []
    for prior in ("auto", "universal"):
        sampler = DRESampler(seed=0, prior=prior, settings=FAST)
        study = optimized(
            sampler, lambda trial: (boosting(trial), 1.0), 4, directions=["minimize", "maximize"]
        )
        found.append([trial.params for trial in study.trials[1:]])
    assert found[0] == found[1]


def test_where_nothing_is_recognised_it_is_the_universal_prior(caplog) -> None:
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        auto = tuned(reinforcement, "auto", 7)
    assert "knows" not in caplog.text
    universal = tuned(reinforcement, "universal", 7)
    assert [t.params for t in auto.trials] == [t.params for t in universal.trials]


def first_of(**arguments: Any) -> optuna.trial.FrozenTrial:
    study = optimized(DRESampler(**{"settings": FAST, **arguments}), boosting, 1)
    return study.trials[0]


def test_it_is_the_default_but_not_of_an_ensemble_alone() -> None:
    alone = Settings(preset=TINY)
    for settings, source in ((FAST, "prior"), (alone, "independent")):
        firsts = [
            first_of(settings=settings, seed=0, **given) for given in ({}, {"prior": "auto"})
        ]
        assert firsts[0].params == firsts[1].params
        assert firsts[0].user_attrs["dre:explanation"]["source"] == source


@pytest.mark.usefixtures("small_priors")
def test_past_studies_and_a_memory_take_its_place(tmp_path: Path) -> None:
    past = optuna.create_study(study_name="past", sampler=DRESampler(seed=0, memory=tmp_path))
    past.optimize(lambda trial: 1.0 - boosting(trial), n_trials=12)
    known: dict[str, Any]
    for known in ({"past_studies": past}, {"memory": tmp_path}):
        explanation = first_of(seed=1, **known).user_attrs["dre:explanation"]
        assert explanation["source"] == "past-studies" and "past" in explanation["past_studies"]


def test_workers_that_begin_together_have_a_member_each() -> None:
    study = optuna.create_study(sampler=DRESampler(seed=0, settings=FAST))
    trials = [study.ask() for _ in range(3)]
    for trial in trials:
        boosting(trial)
    assert len({trial.params["colsample_bytree"] for trial in trials}) == 3
    again = optuna.create_study(sampler=DRESampler(seed=7, settings=FAST))
    alone = [again.ask() for _ in range(3)]
    for trial in alone:  # the last parameter, which goes with a recognised learner
        boosting(trial)
    for trial, same in zip(trials, alone, strict=True):
        assert trial.params["colsample_bytree"] == same.params["colsample_bytree"]
