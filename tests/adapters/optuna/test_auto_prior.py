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
    messages = [text for text in texts if "parameters of XGBoost" in text]
    assert len(messages) == 1
    assert "prior 'xgboost-small' knows learning_rate" in messages[0]
    assert "if not, prior='universal'" in messages[0]
    sources = [trial.user_attrs["dre:explanation"]["source"] for trial in study.trials]
    # The prior has the first two trials, and then those of even numbers.
    assert sources[0] == "prior" and sources[3] == "random" and "random" not in sources[:2]


def test_what_trials_contradict_has_no_turns() -> None:
    def mirrored(trial: optuna.Trial) -> float:
        return -boosting(trial)

    studies = [tuned(objective, "auto", 12) for objective in (boosting, mirrored)]
    contradicted = [study.sampler.stats["prior_contradicted"] for study in studies]
    assert max(contradicted) > 0  # one of an objective and its opposite disagrees with any prior
    assert min(contradicted) < 5
    resumed = optuna.create_study(sampler=DRESampler(seed=0, prior="auto", settings=SETTINGS))
    resumed.add_trials(studies[1].trials[:11])
    resumed.optimize(mirrored, n_trials=1)
    assert resumed.trials[11].params == studies[1].trials[11].params


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
        sampler = DRESampler(seed=number + 5, prior="auto", settings=SETTINGS)
        again = optuna.create_study(sampler=sampler)
        again.optimize(choice, n_trials=1)
        first = again.trials[0]
        recognised = {name: value for name, value in first.params.items() if "__" in name}
        expected = firsts[first.params["classifier"]].params
        assert recognised == pytest.approx({name: expected[name] for name in recognised})
    assert study.trials[0].user_attrs["dre:explanation"]["source"] == "prior"


def test_several_objectives_have_no_prior_that_was_not_given() -> None:
    found = []
    for prior in ("auto", "universal"):
        sampler = DRESampler(seed=0, prior=prior, settings=SETTINGS)
        study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
        study.optimize(lambda trial: (boosting(trial), 1.0), n_trials=4)
        found.append([trial.params for trial in study.trials[1:]])
    assert found[0] == found[1]


def test_it_is_the_named_prior_once_the_space_is_known() -> None:
    first = tuned(boosting, "xgboost-small", 1).trials[0]
    following = []
    for prior in ("xgboost-small", "auto"):
        sampler = DRESampler(seed=0, prior=prior, settings=SETTINGS)
        study = optuna.create_study(sampler=sampler)
        study.add_trial(first)
        study.optimize(boosting, n_trials=1)
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
