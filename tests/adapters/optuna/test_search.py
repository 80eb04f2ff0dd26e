"""Conditions, moving ranges, small spaces, queues, pruners, other samplers."""

import logging
import math
import time
from collections import Counter
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial, TrialState
from optuna_worker import optimized, small_objective, tiny_sampler
from presets import TINY
from spies import spy

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.adapters.optuna.attributes import explanation_of
from dre_plugins.adapters.optuna.conversion import learnt_space
from dre_plugins.recommend import Recommender
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Ordinal

N_STARTUP = 4  # of tiny_sampler


def sources(study: optuna.Study) -> list[str]:
    return [explanation_of(trial).source for trial in study.trials]


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


# --- define-by-run -----------------------------------------------------------------------------


def svm_or_forest(trial: Trial) -> float:
    if trial.suggest_categorical("family", ["svm", "forest"]) == "svm":
        rate = trial.suggest_float("C", 1e-3, 1e3, log=True)
        if trial.suggest_categorical("kernel", ["linear", "rbf"]) == "rbf":
            gamma = trial.suggest_float("gamma", 1e-4, 1e1, log=True)
            return abs(math.log10(rate) - 1) + abs(math.log10(gamma) + 2)
        return abs(math.log10(rate)) + 2
    depth = trial.suggest_int("depth", 1, 20)
    return abs(depth - 9) / 4 + trial.suggest_float("features", 0.1, 1.0) + 1


def test_conditional_parameters_are_sampled_by_the_model(caplog: pytest.LogCaptureFixture) -> None:
    sampler = DRESampler(seed=1, settings=Settings(preset=TINY))
    study = optimized(sampler, svm_or_forest, 10)
    n_early = sampler.stats["independent"]
    study.optimize(svm_or_forest, n_trials=15)
    n_asked = sum(len(trial.params) for trial in study.trials[10:])
    assert sampler.stats["independent"] - n_early <= 0.1 * n_asked
    assert set(sources(study)[10:]) <= {"model", "exploration"}
    warned = messages(caplog, logging.WARNING)
    assert len(warned) == len(set(warned)) <= 6


def test_a_new_parameter_is_warned_of_once_and_then_modelled(caplog) -> None:
    def objective(trial: Trial) -> float:
        value = trial.suggest_float("x", 0, 1)
        if trial.number >= 8:
            value += trial.suggest_float("late", 0, 1)
        return value

    study = optimized(tiny_sampler(), objective, 14)
    assert study.sampler.stats["independent"] == 2  # x of trial 0, late of trial 8
    warned = messages(caplog, logging.WARNING)
    assert len(warned) == 1
    assert "'late'" in warned[0]
    assert "warn_independent_sampling=False" in warned[0]
    caplog.clear()
    optimized(tiny_sampler(warn_independent_sampling=False), objective, 14)
    optimized(tiny_sampler(n_startup_trials=0), objective, 1)  # nothing in a first trial
    assert messages(caplog, logging.WARNING) == []


def test_the_independent_sampler_of_the_user_is_asked() -> None:
    class Fixed(optuna.samplers.RandomSampler):
        hooks = 0

        def sample_independent(self, *_: Any) -> float:
            return 0.25

        def before_trial(self, *_: Any) -> None:
            self.hooks += 1

        after_trial = before_trial

    independent = Fixed()
    sampler = tiny_sampler(independent_sampler=independent)
    study = optimized(sampler, lambda trial: trial.suggest_float("x", 0, 1), 2)
    assert study.trials[0].params == {"x": 0.25}
    assert study.trials[1].params != {"x": 0.25}
    assert independent.hooks == 4


def test_parameters_that_another_sampler_leaves_to_this_one_are_modelled() -> None:
    sampler = tiny_sampler()
    other = optuna.samplers.QMCSampler(seed=0, independent_sampler=sampler)
    # QMCSampler knows the parameters of the first trial only.
    optimized(other, lambda t: t.number and t.suggest_float("x", 0, 1), 8)
    assert sampler.stats["independent"] == N_STARTUP


@pytest.mark.whole_search
def test_a_widened_range_keeps_what_was_learnt() -> None:
    """The optimum at 0.8 is known when the range grows; nothing is sampled at random.

    The ensemble goes on there; the universal prior, in its turns, looks at what is new.
    """

    def objective(trial: Trial, high: float) -> float:
        return abs(trial.suggest_float("x", 0, high) - 0.8)

    sampler = DRESampler(seed=0)
    study = optimized(sampler, lambda trial: objective(trial, 1.0), 20)
    study.optimize(lambda trial: objective(trial, 5.0), n_trials=12)
    assert sampler.stats["independent"] == 1  # of trial 0
    later = [trial.params["x"] for trial in study.trials[20:]]
    # Later turns may look elsewhere, as nothing is left to gain there.
    assert abs(later[0] - 0.8) < 0.01
    assert max(later[1::2]) > 2.0
    assert study.sampler.infer_relative_search_space(study, study.trials[-1])["x"].high == 5.0


def test_a_narrowed_or_moved_range_is_re_encoded() -> None:
    sampler = tiny_sampler()
    study = optuna.create_study(sampler=sampler)
    for low, high in [(0, 10), (0, 3), (20, 30)]:
        study.optimize(lambda trial: trial.suggest_int("x", low, high), n_trials=8)  # noqa: B023
    assert all(20 <= trial.params["x"] <= 30 for trial in study.trials[16:])
    assert sampler.stats["fallbacks"] == 0
    assert sampler.stats["independent"] <= 4


def test_a_parameter_may_have_a_range_for_each_branch() -> None:
    """A model's value out of the range is chosen again, by the trials that asked for the range."""
    lowest = {"a": -5.0, "b": -2.0}

    def objective(trial: Trial) -> float:
        low = lowest[trial.suggest_categorical("branch", [*lowest])]
        return (trial.suggest_float("x", low, low + 2.0) - low - 0.7) ** 2

    study = optimized(DRESampler(seed=0), objective, 20)
    stats = study.sampler.stats
    assert stats["independent"] <= 8 and stats["suggestions"] == 19 and not stats["fallbacks"]
    assert sum(trial.value for trial in study.trials[-5:]) < 0.1


def test_several_parameters_out_of_their_ranges_are_chosen_again_at_once(monkeypatch) -> None:
    suggest = spy(monkeypatch, Recommender, "suggest")

    def objective(trial: Trial) -> float:
        low = {"a": -5.0, "b": -2.0}[trial.suggest_categorical("branch", ["a", "b"])]
        return sum((trial.suggest_float(name, low, low + 2.0) - low - 0.7) ** 2 for name in "xyz")

    study = optimized(DRESampler(seed=1), objective, 30)
    stats = study.sampler.stats
    assert stats["independent"] <= 24 and stats["suggestions"] == 29 and not stats["fallbacks"]
    n_calls = Counter(call.kwargs["index"] for call in suggest.call_args_list)
    assert max(n_calls[number] for number in range(20, 30)) == 2
    assert study.best_value < 0.05


# --- ordered choices and small spaces ----------------------------------------------------------


def test_numeric_choices_may_be_left_unordered() -> None:
    space = {"size": CategoricalDistribution([16, 32, 64])}
    space["lags_idx"] = CategoricalDistribution(range(7))
    for ordered, kind in ((True, Ordinal), (False, Categorical)):
        space_ = learnt_space(space, [], [], ordered)[0]
        assert isinstance(space_.domains["size"], kind)
        assert isinstance(space_.domains["lags_idx"], Categorical)
    sampler = DRESampler(seed=0, settings=Settings(order_numeric_choices=False))
    study = optimized(sampler, lambda t: t.suggest_categorical("size", [16, 32, 64]), 3)
    assert {trial.params["size"] for trial in study.trials} == {16, 32, 64}


def test_a_small_space_is_exhausted_without_repeats(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=tiny_sampler())
    with caplog.at_level(logging.INFO, logger="optuna.dre_plugins"):
        study.optimize(small_objective, n_trials=18)
        start = time.process_time()
        study.optimize(small_objective, n_trials=4)
    assert time.process_time() - start < 4.0
    points = [tuple(trial.params.values()) for trial in study.trials]
    assert len(set(points[:18])) == 18
    assert sources(study)[18:] == ["exhausted"] * 4
    assert len([text for text in messages(caplog, logging.INFO) if "repeats" in text]) == 1


# --- queues and foreign trials -----------------------------------------------------------------

SPACE = {
    "x": FloatDistribution(0.0, 1.0),
    "n": IntDistribution(1, 100, log=True),
    "kind": CategoricalDistribution(["a", "b"]),
}


def objective_of_space(trial: Trial) -> float:
    return (
        trial.suggest_float("x", 0, 1)
        + trial.suggest_int("n", 1, 100, log=True)
        + (trial.suggest_categorical("kind", ["a", "b"]) == "a")
    )


def test_enqueued_trials_come_first_and_in_order() -> None:
    study = optuna.create_study(sampler=tiny_sampler())
    study.enqueue_trial({"x": 0.25, "n": 7, "kind": "b"})
    study.enqueue_trial({"n": 9})
    with pytest.warns(UserWarning, match="out of range"):
        study.enqueue_trial({"x": 3.0, "kind": "a"})
        study.optimize(objective_of_space, n_trials=12)
    first, second, third = (trial.params for trial in study.trials[:3])
    assert first == {"x": 0.25, "n": 7, "kind": "b"}
    assert second["n"] == 9
    assert (third["x"], third["kind"]) == (3.0, "a")
    assert all(0 <= trial.params["x"] <= 1 for trial in study.trials[3:])
    assert sources(study)[:3] == ["enqueued"] * 3
    assert set(sources(study)[N_STARTUP:]) == {"model"}


def test_the_model_fills_in_what_an_enqueued_trial_leaves_open() -> None:
    """Values near x = n: what goes with the given n is not what goes with the best one."""
    study = optuna.create_study(sampler=DRESampler(seed=1, n_startup_trials=12))

    def objective(trial: Trial) -> float:
        n = trial.suggest_int("n", 0, 10)
        return abs(trial.suggest_float("x", 0, 10) - n)

    study.optimize(objective, n_trials=25)
    for n in (1, 9):
        study.enqueue_trial({"n": n})
    study.optimize(objective, n_trials=2)
    low, high = (trial.params for trial in study.trials[-2:])
    assert (low["n"], high["n"]) == (1, 9)
    assert low["x"] < 5 < high["x"]


def test_added_trials_are_learnt_from(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=tiny_sampler())
    for i in range(6):
        params = {"x": i / 5, "n": i + 1, "kind": "ab"[i % 2]}
        study.add_trial(optuna.create_trial(params=params, distributions=SPACE, value=float(i)))
    other = {"x": FloatDistribution(-9.0, 9.0)}
    study.add_trial(optuna.create_trial(params={"x": -5.0}, distributions=other, value=1.0))
    study.add_trial(optuna.create_trial(params={}, distributions={}, state=TrialState.FAIL))
    study.optimize(objective_of_space, n_trials=5)
    assert set(sources(study)[8:]) <= {"model", "exploration"}
    assert study.sampler.stats["fallbacks"] == 0
    # The last trial said that x goes from -9 to 9, so the next value may be outside [0, 1].
    assert study.sampler.stats["independent"] <= 1
    assert len(messages(caplog, logging.WARNING)) <= 1


def test_both_ways_of_ask_and_tell() -> None:
    study = optuna.create_study(sampler=tiny_sampler())
    for number in range(10):
        trial = study.ask({"x": SPACE["x"]} if number % 2 else None)
        value = objective_of_space(trial)
        study.tell(trial, value)
    assert all(set(trial.params) == set(SPACE) for trial in study.trials)
    assert set(sources(study)[N_STARTUP:]) == {"model"}


# --- pruners and other samplers ----------------------------------------------------------------


def test_mixed_up_choices_of_one_true_and_nan_are_all_tried() -> None:
    choices = [1, True, 1.0, None, math.nan, "1"]
    seen: list[int] = []

    def objective(trial: Trial) -> float:
        value = trial.suggest_categorical("x", choices)
        seen.append(next(i for i, choice in enumerate(choices) if choice is value))
        return float(seen[-1])

    optimized(tiny_sampler(), objective, 6)
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("n_values", [4, 10**6])
def test_a_given_value_brings_the_parameters_that_belong_to_it(n_values: int) -> None:
    def objective(trial: Any) -> float:
        if trial.suggest_categorical("kind", ["a", "b", "c"]) == "a":
            return 5.0 + trial.suggest_int("n", 1, n_values)
        return 1.0

    study = optimized(DRESampler(seed=0, allow_duplicates=True), objective, 7)
    study.enqueue_trial({"kind": "a"})
    study.optimize(objective, n_trials=1)
    assert "n" in study.trials[-1].params and not study.sampler.stats["fallbacks"]
