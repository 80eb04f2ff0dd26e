"""What `DRESampler.explain` says of trials of every source."""

import json
import math
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import optuna
import pytest
from optuna.trial import Trial, TrialState, create_trial
from optuna_worker import mixed_objective, optimized, tiny_sampler
from presets import FAST
from spies import spy

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import Recommender
from dre_plugins.recommend.explanation import SOURCES, Explanation

KEY = "dre:explanation"


def slope(trial: Trial) -> float:
    return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0)


def explained(study: optuna.Study) -> list[Explanation]:
    """Explain with a sampler that has never seen the study."""
    return [DRESampler().explain(study, number) for number in range(len(study.trials))]


def sources(study: optuna.Study) -> list[str]:
    return [explanation.source for explanation in explained(study)]


def test_the_stored_figures_are_those_of_the_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    suggest = spy(monkeypatch, Recommender, "suggest")
    study = optimized(tiny_sampler(), slope, 7)
    assert sources(study) == ["independent"] + ["random"] * 3 + ["model"] * 3
    explanation, wanted = explained(study)[-1], suggest.results[-1][0].explanation
    assert explanation.predicted_rank == pytest.approx(wanted.predicted_rank, rel=1e-3)
    assert explanation.spread == pytest.approx(wanted.spread, rel=1e-3)
    assert explanation.n_reference == wanted.n_reference


def test_nothing_is_expected_of_a_value_that_the_model_has_not_chosen() -> None:
    """The objective was redefined, as in a notebook, with a range that no trial has had."""
    study = optimized(tiny_sampler(), slope, 6)
    study.optimize(lambda trial: trial.suggest_float("x", 2.0, 3.0), n_trials=1)
    *_, before, last = explained(study)
    assert before.predicted_rank is not None
    assert last == Explanation("model")


def test_every_counter_is_documented(tmp_path: Path) -> None:
    arguments = {
        "settings": FAST,
        "memory": tmp_path,
        "valid": lambda c: c.get("x", 0.0) < 1e-4,
        "constraints_func": lambda trial: 1 / 0,
    }
    study = optuna.create_study(sampler=DRESampler(seed=0, **arguments))
    study.enqueue_trial({"x": 0.5, "y": 0.5})
    study.optimize(slope, n_trials=5)
    assert {
        "thin_rule",
        "invalid",
        "constraint_errors",
        "past_studies",
    } <= study.sampler.stats.keys()
    counters = study.sampler.stats.keys() - SOURCES.keys()
    assert [name for name in counters if f'"{name}"' not in DRESampler.__doc__] == []


@pytest.mark.parametrize("wanted", [{"x": 0.5, "y": 0.5}, {"x": 0.5}])
def test_enqueued(wanted: dict[str, float]) -> None:
    study = optimized(tiny_sampler(), slope, 5)
    study.enqueue_trial(wanted)
    waiting = study.get_trials(states=[TrialState.WAITING])[0]
    assert study.sampler.explain(study, waiting).source == "enqueued"
    study.optimize(slope, n_trials=1)
    assert explained(study)[-1] == Explanation("enqueued")


def test_pruned_failed_and_running_trials_are_explained() -> None:
    study = optuna.create_study(sampler=tiny_sampler())

    def objective(trial: Trial) -> float:
        value = slope(trial)
        if trial.number == 5:
            trial.report(value, 0)
            raise optuna.TrialPruned
        if trial.number == 6:
            raise RuntimeError
        return value

    study.optimize(objective, n_trials=7, catch=RuntimeError)
    slope(study.ask())
    states = [trial.state for trial in study.trials[5:]]
    assert states == [TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING]
    assert sources(study)[5:] == ["model"] * 3


def test_a_study_that_is_loaded_says_the_same(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optimized(tiny_sampler(), mixed_objective, 7, storage=storage, study_name="s")
    loaded = optuna.load_study(study_name="s", storage=storage)
    assert explained(loaded) == explained(study)
    assert sources(loaded)[-1] == "model"
    # What tools show: one legible attribute.
    shown = loaded.trials_dataframe()[f"user_attrs_{KEY}"].iloc[-1]
    assert shown.keys() == {"source", "predicted_rank", "spread", "n_reference"}
    assert [*loaded.trials[-1].user_attrs] == [KEY]
    assert len(json.dumps(shown)) < 200


def test_a_suggestion_costs_three_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optimized(tiny_sampler(), slope, 6)
    write = Mock()
    for kind in ("user", "system"):
        monkeypatch.setattr(study._storage, f"set_trial_{kind}_attr", write)
    slope(study.ask())
    # It is announced that a trial is choosing, then what it has chosen, then why.
    keys = [key for (_, key, _), _ in write.call_args_list]
    assert keys == ["dre:suggestion", "dre:suggestion", KEY]


def test_a_trial_of_another_sampler_is_unknown() -> None:
    study = optimized(optuna.samplers.RandomSampler(seed=0), slope, 1)
    for attribute in ("not ours", {"source": "unknown", "predicted_rank": math.nan}):
        study.add_trial(create_trial(value=0.0, user_attrs={KEY: attribute}))
    assert explained(study) == [Explanation("unknown")] * 3


@pytest.mark.parametrize("trial", [3, -1, "0", None, [0]])
def test_no_such_trial(trial: Any) -> None:
    study = optimized(optuna.samplers.RandomSampler(seed=0), slope, 1)
    with pytest.raises(ValueError, match=r"number of one of the study's 1 trials, got"):
        DRESampler().explain(study, trial)
    with pytest.raises(ValueError, match="study must be a study of Optuna, got None"):
        DRESampler().explain(None, trial)  # type: ignore[arg-type]


def test_a_branch_that_a_prior_knows_does_not_change_what_chose() -> None:
    def objective(trial: Trial) -> float:
        value = trial.suggest_float("x", 0.0, 1.0)
        # Entered first by trial 3, long after the model has begun.
        return value + (trial.suggest_float("y", 0.0, 1.0) if trial.number >= 3 else 0.0)

    past = optimized(optuna.samplers.RandomSampler(seed=0), slope, 12)
    sampler = tiny_sampler(past_studies=past, n_startup_trials=None, settings=FAST)
    study = optimized(sampler, objective, 6)
    found = sources(study)
    assert found[0] == "past-studies" and found[3:] == ["universal-prior"] * 3
    counted = {source: sampler.stats[source] for source in set(found)}
    assert counted == {source: found.count(source) for source in set(found)}
    assert sampler.stats["suggestions"] == 6
