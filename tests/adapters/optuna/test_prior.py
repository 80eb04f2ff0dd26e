"""`DRESampler` with a prior: given, one for each objective, or recognised (`prior="auto"`)."""

import logging
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import optuna
import pytest
from optuna.trial import create_trial
from optuna_past import PRESET, loss_of, objective, past_study, sampler_of, source_of, tuned
from optuna_worker import AS_ONE, optimized
from presets import FAST, NARROW, TINY
from small_priors import small
from spies import spy

from dre_plugins import DRESampler, Prior
from dre_plugins.adapters.optuna.sources import metadata_from_studies
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float
from dre_plugins.transfer.meta_training import MetaTrainingSettings

pytestmark = pytest.mark.usefixtures("small_priors")


def trained(**options: Any) -> Prior:
    metadata = metadata_from_studies([past_study(seed, **options) for seed in range(6)])
    settings = MetaTrainingSettings(n_steps=300, learning_rate=0.01, n_lists=2, list_length=40)
    return Prior.train(metadata, scorer=NARROW, settings=settings)


@pytest.fixture(scope="module")
def prior() -> Prior:
    return trained()


# ---- a prior


def test_the_first_trial_is_better_than_random_ones(prior, caplog):
    caplog.set_level("INFO", "optuna.dre_plugins")
    study = tuned(sampler_of(prior=prior), 8)
    random = [trial.value for trial in tuned(optuna.samplers.RandomSampler(seed=0), 100).trials]
    assert source_of(study.trials[0]) == "prior"
    assert study.trials[0].value < np.quantile(random, 0.2)
    sources = {source_of(trial) for trial in study.trials[1:]}
    assert sources == {"model", "contrast"}
    stats = study.sampler.stats  # a trial counts as one suggestion
    assert stats["suggestions"] == 8 == stats["prior"] + stats["model"] + stats["contrast"]
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    messages = [record.message for record in caplog.records if "dre_plugins" in record.name]
    about, *sources_logged = sorted(messages, key=lambda message: not message.startswith("prior "))
    assert about.endswith("; not: none")
    assert [message.split()[1] for message in sources_logged] == ["prior", "ranking"]


@pytest.mark.parametrize("seed", range(4))
def test_what_a_parameter_means_is_told_by_those_before_it(seed):
    """`max_iter` is the number of trees beside a learning rate, of which the prior wants many.

    Drawn independently it was a Sobol point, although the learning rate had been chosen together
    with a large number of trees.
    """

    def boosting(trial):
        trial.suggest_float("learning_rate", 0.01, 1.0, log=True)
        return trial.suggest_int("max_iter", 5, 150, log=True)

    study = tuned(DRESampler(seed=seed, prior="xgboost"), 1, boosting)
    assert study.trials[0].params["max_iter"] > 75
    assert study.sampler.stats["independent"] == 0


def test_the_gamma_of_support_vectors_is_not_that_of_boosted_trees():
    def support_vectors(trial):
        trial.suggest_float("C", 1e-2, 1e3, log=True)
        return trial.suggest_float("gamma", 1e-5, 1e1, log=True)

    sampler = DRESampler(seed=0, prior="xgboost", warn_independent_sampling=False)
    assert source_of(tuned(sampler, 1, support_vectors).trials[0]) == "independent"


def test_unknown_priors_and_both_a_prior_and_past_studies_are_refused_at_once(prior):
    with pytest.raises(ValueError, match="xgboost"):
        DRESampler(prior="no such prior")
    with pytest.raises(ValueError, match="past_studies"):
        DRESampler(prior=prior, past_studies=[past_study(0)])


@AS_ONE
def test_a_small_space_is_not_asked_twice(prior):
    """In a space of 18 points, 16 trials that run at once are 16 different points."""
    study = optuna.create_study(sampler=sampler_of(prior=prior))
    trials = [study.ask() for _ in range(16)]
    for trial in trials:
        trial.suggest_int("depth", 1, 6)
        trial.suggest_categorical("kind", ["a", "b", "c"])
    assert len({repr(sorted(trial.params.items())) for trial in trials}) == 16


def test_a_first_trial_asks_the_prior_once_while_it_follows(prior, monkeypatch):
    suggest = spy(monkeypatch, Recommender, "suggest")
    tuned(sampler_of(prior=prior), 1)
    assert [call.kwargs["fixed"] for call in suggest.call_args_list] == [{}]

    study = optuna.create_study(sampler=sampler_of(prior=prior))
    study.enqueue_trial({"depth": 2})  # not the value that the prior suggests
    suggest.reset_mock()
    study.optimize(objective, n_trials=1)
    asked = [{*call.kwargs["fixed"]} for call in suggest.call_args_list]
    assert asked in ([set(), {"rate", "depth"}], [{"depth"}])
    # The prior completes the rest.
    assert study.trials[0].params["depth"] == 2 and study.trials[0].params["kind"] == "b"


# ---- a prior for each objective


def two_objectives(trial: optuna.Trial) -> tuple[float, float]:
    return objective(trial), float(trial.params["depth"])


def tuned_twofold(sampler: DRESampler, n_trials: int) -> optuna.Study:
    return optimized(sampler, two_objectives, n_trials, directions=["minimize", "minimize"])


def test_each_objective_may_have_a_prior(prior, caplog):
    random = tuned(optuna.samplers.RandomSampler(seed=0), 100)
    good = np.quantile([trial.value for trial in random.trials], 0.2)
    study = tuned_twofold(sampler_of(prior=[prior, None]), 12)
    first, *others, last = study.trials
    assert source_of(first) == "prior" and first.values[0] < good
    assert {source_of(trial) for trial in others} <= {"model", "contrast"}
    assert source_of(last) == "universal-prior"  # ten trials have ended
    assert study.sampler.stats["fallbacks"] == 0
    assert not [record for record in caplog.records if record.levelname == "WARNING"]

    # A prior of the other objective alone says where that one is small, and nothing of the rest.
    shallow = small(metadata_from_studies([depths(seed) for seed in range(3)]), defaults={})
    study = tuned_twofold(sampler_of(prior=[None, shallow]), 1)
    assert study.trials[0].params["depth"] <= 3
    study = tuned_twofold(sampler_of(prior=[prior, shallow]), 3)
    assert study.sampler.stats["prior"] == 1 and study.sampler.stats["fallbacks"] == 0


def depths(seed: int) -> optuna.Study:
    """A past study in which the value was the depth."""
    study = optuna.create_study(study_name=f"depths {seed}")
    for trial in past_study(seed).trials:
        study.add_trial(
            create_trial(
                params=trial.params,
                distributions=trial.distributions,
                value=float(trial.params["depth"]),
            )
        )
    return study


def test_a_prior_that_does_not_fit_leaves_the_others_alone(prior, caplog):
    alien = Prior.of_beliefs({"dropout": Float(0.0, 1.0)}, [{"dropout": 0.5}])
    study = tuned_twofold(sampler_of(prior=[prior, alien]), 4)
    assert study.sampler.stats["fallbacks"] == study.sampler.stats["random"] == 0
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "not used as long as" in warnings[0].getMessage()


def test_as_many_priors_as_objectives(prior):
    for given in ([prior], [prior, None, prior]):
        with pytest.raises(ValueError, match="one for each objective"):
            tuned_twofold(sampler_of(prior=given), 1)
    with pytest.raises(ValueError, match="one for each objective"):
        tuned(sampler_of(prior=[prior, prior]), 1)
    study = optuna.create_study(sampler=sampler_of(prior=[prior, None]))
    with pytest.raises(ValueError, match="one for each objective"):  # whatever its parameters
        study.optimize(lambda trial: trial.suggest_float("unheard of", 0, 1), 1)
    with pytest.raises(ValueError, match="for one objective at least"):
        DRESampler(prior=[None, None])
    with pytest.raises(ValueError, match=r"prior must be .*, got 3; .*a Prior, and a list"):
        DRESampler(prior=[prior, 3])


def test_a_mirrored_prior_is_shaken_off(prior):
    misled = tuned(sampler_of(prior=trained(value_of=lambda loss: -loss)), 30)
    without_prior = tuned(sampler_of(), 30)
    random = tuned(optuna.samplers.RandomSampler(seed=0), 30)
    assert misled.trials[0].value > np.median([trial.value for trial in random.trials])
    assert misled.best_value < without_prior.best_value + 0.1


def test_names_that_only_a_mapping_tells(prior):
    def renamed(trial: optuna.Trial) -> float:
        return loss_of(
            trial.suggest_float("step size", 1e-4, 1.0, log=True),
            trial.suggest_int("levels", 1, 10),
            trial.suggest_categorical("kind", ["a", "b", "c"]),
        )

    mapped = prior.with_mapping({"step size": "rate", "levels": "depth"})
    study = tuned(sampler_of(prior=mapped), 3, renamed)
    plain = tuned(sampler_of(prior=prior), 3)
    assert source_of(study.trials[0]) == "prior"
    assert [trial.value for trial in study.trials] == [trial.value for trial in plain.trials]


def test_a_prior_of_something_else_is_not_used_and_says_so_once(prior, caplog):
    study = tuned(sampler_of(prior=prior), 21, lambda trial: trial.suggest_float("other", 0, 1))
    (warning,) = [record for record in caplog.records if "prior is not used" in record.message]
    assert "other" in warning.message and "rate" in warning.message
    assert {source_of(trial) for trial in study.trials} == {
        *("independent", "random", "model", "universal-prior")
    }


def test_a_prior_is_used_once_a_study_shows_what_it_knows(prior):
    def branching(trial: optuna.Trial) -> float:
        if trial.number == 0:
            return trial.suggest_float("other", 0, 1) + 100
        return objective(trial)

    study = tuned(sampler_of(prior=prior), 4, branching)
    assert source_of(study.trials[1]) == "prior"
    assert study.trials[1].params["kind"] == "b"


def test_what_the_prior_cannot_tell_apart_is_learnt(prior):
    """A range that lies outside of the prior's by far."""

    def far(trial: optuna.Trial) -> float:
        return abs(np.log10(trial.suggest_float("rate", 1e-12, 1e-8, log=True)) + 9.0)

    # Where nothing is learnt all of them stay at 1; single runs do for other reasons as well.
    samplers = [
        DRESampler(seed=seed, settings=Settings(preset=PRESET), prior=prior) for seed in range(3)
    ]
    assert np.median([tuned(sampler, 25, far).best_value for sampler in samplers]) < 0.4


def test_objectives_that_always_fail_end_with_all_trials(prior):
    study = tuned(sampler_of(prior=prior), 8, lambda trial: objective(trial) * float("nan"))
    assert len({repr(trial.params) for trial in study.trials}) == 8
    assert study.sampler.stats["fallbacks"] == 0


def test_a_surrogate_that_fails_costs_no_trial(prior, monkeypatch, caplog):
    fail = Mock(side_effect=RuntimeError("no more memory"))
    monkeypatch.setattr("dre_plugins.recommend.members.Members.scores", fail)
    study = tuned(sampler_of(prior=prior), 6)
    assert len(study.trials) == 6 and study.sampler.stats["fallbacks"] >= 6
    assert len([r for r in caplog.records if "no more memory" in r.message]) == 1
    assert {source_of(trial) for trial in study.trials} == {"fallback"}


# ---- `prior="auto"`: the learner is recognised as the study shows its parameters


def boosting(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("learning_rate", 1e-3, 0.3, log=True)
    depth = trial.suggest_int("max_depth", 2, 10)
    weight = trial.suggest_float("min_child_weight", 3.0, 100.0, log=True)
    share = trial.suggest_float("colsample_bytree", 0.3, 1.0)
    return rate + 0.01 * depth + 0.001 * weight + share


def reinforcement(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True)
    return rate + trial.suggest_float("gamma", 0.9, 0.9999)


def studied(objective, prior: str, n_trials: int = 4) -> optuna.Study:
    study = optimized(DRESampler(seed=0, prior=prior, settings=FAST), objective, n_trials)
    assert not study.sampler.stats["fallbacks"]
    return study


def test_a_learner_is_recognised_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study = studied(boosting, "auto")
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
    found = studied(boosting, "auto", 12)
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
    study = studied(choice, "auto", 6)
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
        auto = studied(reinforcement, "auto", 7)
    assert "knows" not in caplog.text
    universal = studied(reinforcement, "universal", 7)
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
