"""Constraints and several objectives through Optuna."""

import logging
import math
from typing import Any

import optuna
import pytest
from optuna_worker import optimized, params_of, reported, tiny_sampler

from dre_plugins.adapters.optuna import DRESampler


def plane(trial: optuna.Trial) -> tuple[float, float]:
    return trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)


def circle(x: float, y: float) -> float:
    return x * x + y * y - 0.25


def constrained_by_trial(sampler: DRESampler, n_trials: int = 12) -> optuna.Study:
    def objective(trial: optuna.Trial) -> float:
        x, y = plane(trial)
        trial.set_constraint("circle", circle(x, y))
        return x + y

    return optimized(sampler, objective, n_trials, direction="maximize")


def constrained_by_function(sampler: DRESampler, n_trials: int = 12) -> optuna.Study:
    return optimized(sampler, lambda trial: sum(plane(trial)), n_trials, direction="maximize")


def circle_of(trial: optuna.trial.FrozenTrial) -> list[float]:
    return [circle(trial.params["x"], trial.params["y"])]


needs_set_constraint = pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="Trial.set_constraint is new in Optuna 5"
)


@needs_set_constraint
def test_both_ways_of_stating_constraints_are_the_same() -> None:
    by_trial = constrained_by_trial(tiny_sampler())
    by_function = constrained_by_function(tiny_sampler(constraints_func=circle_of))
    unconstrained = constrained_by_function(tiny_sampler())
    assert params_of(by_trial) == params_of(by_function) != params_of(unconstrained)
    assert by_trial.best_trial.number == by_function.best_trial.number
    assert circle_of(by_function.best_trial)[0] <= 0.0


def broken_of(trial: optuna.trial.FrozenTrial) -> list[float]:
    if trial.number % 3 == 0:
        raise RuntimeError("no measurement")
    if trial.number % 3 == 1:
        return [math.nan]
    return [1.0] * (trial.number % 4)  # of varying length


def test_broken_constraints_end_no_study(caplog: pytest.LogCaptureFixture) -> None:
    sampler = tiny_sampler(constraints_func=broken_of)
    study = constrained_by_function(sampler)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 12
    assert sampler.stats["constraint_errors"] == 4
    assert sampler.stats["fallbacks"] == 0
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1 and "no measurement" in warnings[0]


def test_several_objectives_are_resumed_and_reproducible() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x, y = plane(trial)
        return x**2 + y, (x - 1) ** 2 + y

    def run(*parts: int) -> optuna.Study:
        storage = optuna.storages.InMemoryStorage()
        for n_trials in parts:
            of_study = {"study_name": "s", "storage": storage, "load_if_exists": True}
            directions = ["minimize", "minimize"]
            study = optimized(
                tiny_sampler(), objective, n_trials, directions=directions, **of_study
            )
        return study

    whole = run(14)
    assert params_of(whole) == params_of(run(7, 7))
    sources = [trial.user_attrs["dre:explanation"]["source"] for trial in whole.trials]
    assert sources[4:] == ["model"] * 10
    assert len(whole.best_trials) >= 2


def test_failed_trials_of_several_objectives_are_survived() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x, y = plane(trial)
        if trial.number % 4 == 0:
            raise ValueError("crash")
        return (math.nan if trial.number % 4 == 1 else x), (math.inf if y > 0.5 else y)

    sampler = tiny_sampler()
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.optimize(objective, n_trials=16, catch=ValueError)
    assert len(study.trials) == 16
    assert sampler.stats["fallbacks"] == 0 and sampler.stats["model"] > 6


def test_objectives_of_changing_number_end_no_study() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        return (*plane(trial), 1.0)[: 1 + trial.number % 3]

    sampler = tiny_sampler()
    study = optimized(sampler, objective, 18, directions=["minimize", "maximize"])
    states = [trial.state.name for trial in study.trials]
    assert states == ["FAIL", "COMPLETE", "FAIL"] * 6
    assert sampler.stats["fallbacks"] == 0 and sampler.stats["model"] > 6


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered")  # Optuna's median of NaN
@pytest.mark.parametrize("pruner", ["halving", "hyperband", "median", "patient", "own"])
def test_rungs_that_are_missing_end_no_study(pruner: str) -> None:
    """Trials report at some of the steps, a NaN among the values, or nothing at all."""
    pruners: dict[str, Any] = {
        "halving": optuna.pruners.SuccessiveHalvingPruner(min_resource=1),
        "hyperband": optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9),
        "median": optuna.pruners.MedianPruner(n_startup_trials=2),
        "patient": optuna.pruners.PatientPruner(optuna.pruners.MedianPruner(), patience=1),
        "own": optuna.pruners.NopPruner(),
    }

    def objective(trial: optuna.Trial) -> float:
        x, y = plane(trial)
        for step in range(1, 10):
            if (trial.number + step) % 3 and trial.number % 5:
                trial.report(math.nan if (trial.number * step) % 7 == 0 else x + y / step, step)
            if trial.should_prune() or (pruner == "own" and step > 1 + trial.number % 9):
                raise optuna.TrialPruned
        return x + y

    sampler = tiny_sampler()
    study = optimized(sampler, objective, 24, pruner=pruners[pruner])
    assert len(study.trials) == 24
    assert sampler.stats["fallbacks"] == 0 and sampler.stats["model"] > 6
    if pruner == "own":
        assert any(not t.intermediate_values for t in study.trials if t.state.name == "PRUNED")


@needs_set_constraint
def test_the_brackets_of_hyperband_learn_from_each_other() -> None:
    """Optuna shows a sampler the trials of the present bracket only."""

    def objective(trial: optuna.Trial) -> float:
        return reported(trial, trial.suggest_int("a", 0, 5) + trial.suggest_int("b", 0, 5))

    sampler = tiny_sampler()
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optimized(sampler, objective, 30, pruner=pruner, study_name="brackets")
    assert len({(*trial.params.values(),) for trial in study.trials}) == 30
    assert sampler.stats["independent"] == 2  # those of the first trial


@needs_set_constraint
def test_constraints_of_several_objectives() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x, y = plane(trial)
        trial.set_constraint("circle", circle(x, y))
        return x, y

    sampler = tiny_sampler()
    study = optimized(sampler, objective, 16, directions=["maximize", "maximize"])
    assert sampler.stats["fallbacks"] == 0
    assert all(trial.constraints["circle"] <= 0.0 for trial in study.best_trials)
