"""What was evaluated is not run again, whatever decides which parameters an objective asks for."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import Trial, TrialState, create_trial
from optuna_worker import small_objective, tiny_sampler

from dre_plugins.adapters.optuna import DRESampler

Objective = Callable[[Trial], float]
SEEDS = range(2)


def run_study(sampler: DRESampler, objective: Objective, n_trials: int) -> optuna.Study:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n_trials, catch=ValueError)
    assert sampler.stats["fallbacks"] == 0
    return study


def n_repeats(study: optuna.Study, first: int = 0) -> int:
    """Return how many trials from the first one on asked for what an earlier one had."""
    asked = [tuple(sorted(trial.params.items())) for trial in study.trials]
    return sum(params in asked[:number] for number, params in enumerate(asked) if number >= first)


# --- several parameters decide -----------------------------------------------------------------


def shared_child(trial: Trial) -> float:
    """Ask for `max_depth` in one branch, and in half of another: 3 + 12 + 12 + 1 runs."""
    model = trial.suggest_categorical("model", ["svm", "rf", "gb"])
    if model == "svm":
        return trial.suggest_categorical("C", [0.1, 1, 10])
    if model == "gb" and trial.suggest_categorical("booster", ["tree", "linear"]) == "linear":
        return 30
    return 20 + trial.suggest_int("max_depth", 1, 12)


def conjunction(trial: Trial) -> float:
    opt = trial.suggest_categorical("opt", ["adam", "sgd", "rms"])
    schedule = trial.suggest_categorical("schedule", [True, False])
    if opt == "sgd" and schedule:
        return abs(trial.suggest_float("lr", 0, 1) - 0.7)
    return {"adam": 0.4, "sgd": 0.5, "rms": 0.6}[opt]


def second_phase(trial: Trial) -> float:
    x, kind = trial.suggest_int("x", 0, 15), trial.suggest_categorical("kind", ["a", "b"])
    value = abs(x - 11) + {"a": 0, "b": 2}[kind]
    trial.report(value, 0)
    if value > 4:
        raise optuna.TrialPruned
    return value + 0.1 * abs(trial.suggest_int("fine", 0, 20) - 13)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_child_of_two_branches_ends_in_an_exhausted_space(seed: int) -> None:
    sampler = tiny_sampler(seed=seed)
    study = run_study(sampler, shared_child, 32)
    assert n_repeats(study) == sampler.stats["exhausted"] == 32 - 28


@pytest.mark.parametrize("objective", [conjunction, second_phase])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_trial_is_a_repeat(seed: int, objective: Objective) -> None:
    assert n_repeats(run_study(tiny_sampler(seed=seed), objective, 30)) == 0


@pytest.mark.filterwarnings("ignore:PartialFixedSampler")
@pytest.mark.parametrize("seed", SEEDS)
def test_trials_with_another_fixed_value_are_no_repeats(seed: int) -> None:
    sampler = tiny_sampler(seed=seed)
    study = optuna.create_study(sampler=sampler)
    for x in "abc":
        study.sampler = optuna.samplers.PartialFixedSampler({"x": x}, sampler)
        study.optimize(small_objective, n_trials=6)
    assert n_repeats(study) == sampler.stats["exhausted"] == 0


def test_repeats_are_allowed_where_the_user_wants_them() -> None:
    sampler = tiny_sampler(allow_duplicates=True)
    assert n_repeats(run_study(sampler, conjunction, 20)) > 5
    assert sampler.stats["exhausted"] == 0


# --- another script ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_parameter_that_was_swapped_for_another(seed: int) -> None:
    """Values that the old script exhausted may be tried again with the new parameter."""

    def objective(trial: Trial) -> float:
        x = trial.suggest_int("x", 0, 3)
        if trial.number < 12:
            return x + trial.suggest_int("old", 0, 2)  # all there was
        return x + abs(trial.suggest_int("new", 0, 5) - 4)

    study = run_study(tiny_sampler(seed=seed), objective, 12 + 24)
    assert n_repeats(study) == 0
    assert len({(trial.params["x"], trial.params["new"]) for trial in study.trials[12:]}) == 24


@pytest.mark.parametrize("seed", SEEDS)
def test_trials_of_a_smaller_space_do_not_stand_for_the_larger_one(seed: int) -> None:
    def objective(trial: Trial) -> float:
        x = trial.suggest_int("x", 0, 3)
        if trial.number < 4:  # all there was
            return x + 5
        return 3 - x + abs(trial.suggest_float("new", 0, 1) - 0.3)

    sampler = tiny_sampler(seed=seed, n_startup_trials=24)
    study = run_study(sampler, objective, 24)
    # One trial, as nothing new was to be seen before it asked for more.
    assert sampler.stats["exhausted"] == 1
    assert {trial.params["x"] for trial in study.trials[4:]} == {0, 1, 2, 3}


# --- failures ----------------------------------------------------------------------------------


def nan_for_lbfgs(trial: Trial) -> float:
    if trial.suggest_categorical("opt", ["adam", "lbfgs"]) == "lbfgs":
        return math.nan
    return trial.suggest_float("lr", 0, 1)


def kernel_that_raises(trial: Trial) -> float:
    if trial.suggest_categorical("model", ["svm", "rf"]) == "rf":
        return 1 + abs(trial.suggest_int("depth", 1, 30) - 12)
    if trial.suggest_categorical("kernel", ["rbf", "precomputed"]) == "precomputed":
        raise ValueError("not square")  # before it asks for its other parameters
    return abs(trial.suggest_float("C", 0, 9) - 3) + abs(trial.suggest_float("gamma", 0, 1) - 0.2)


@pytest.mark.parametrize("objective", [nan_for_lbfgs, kernel_that_raises])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_fails_before_it_asks_for_more_is_tried_twice_at_most(seed, objective) -> None:
    study = run_study(tiny_sampler(seed=seed), objective, 30)
    assert sum(trial.state is TrialState.FAIL for trial in study.trials) in (1, 2)


def test_one_accident_does_not_close_a_branch() -> None:
    entered: Counter[str] = Counter()

    def objective(trial: Trial) -> float:
        model = trial.suggest_categorical("model", ["svm", "rf"])
        entered[model] += 1
        if model == "svm" and entered["svm"] == 1:
            raise ValueError("the data could not be downloaded")
        return trial.suggest_float("C" if model == "svm" else "depth", 0, 1) - (model == "svm")

    study = run_study(tiny_sampler(), objective, 20)
    assert sum(trial.state is TrialState.FAIL for trial in study.trials) == 1
    assert study.best_params["model"] == "svm"


# --- waiting trials ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["retry", "enqueue"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_waiting_trial_gets_the_rest_chosen_for_what_it_has(seed: int, way: str) -> None:
    """A retry has its parameters as such, an enqueued trial in an attribute."""
    x, y = IntDistribution(0, 1), CategoricalDistribution(["a", "b", "c", "d"])
    study = optuna.create_study(sampler=tiny_sampler(seed=seed))
    for letter in "bcd":  # of x = 1 only "a" is left
        params: dict[str, Any] = {"x": 1, "y": letter}
        study.add_trial(create_trial(params=params, distributions={"x": x, "y": y}, value=1.0))
    if way == "retry":
        waiting = TrialState.WAITING
        study.add_trial(create_trial(state=waiting, params={"x": 1}, distributions={"x": x}))
    else:
        study.enqueue_trial({"x": 1})
    trial = study.ask()
    assert trial.suggest_int("x", 0, 1) == 1
    assert trial.suggest_categorical("y", ["a", "b", "c", "d"]) == "a"
