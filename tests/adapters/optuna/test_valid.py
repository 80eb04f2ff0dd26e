"""`DRESampler(valid=…)` in studies whose parameters appear one by one."""

import math
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from optuna_worker import optimized, params_of
from presets import FAST
from small_spaces import is_shared, rising

from dre_plugins.space.rules import RuleError

optuna = pytest.importorskip("optuna")

from dre_plugins.adapters.optuna import DRESampler  # noqa: E402


def leaves(trial: Any) -> float:
    low, high = trial.suggest_int("low", 1, 64), trial.suggest_int("high", 1, 64)
    return abs(low - 20) + abs(high - 25) + trial.suggest_float("x", 0, 1)


def shares(trial: Any) -> float:
    a, b, c = (trial.suggest_float(name, 0, 1) for name in "abc")
    return (a - 0.5) ** 2 + (b - 0.4) ** 2 + (c - 0.1) ** 2


def tuned(objective: Any, n: int, **options: Any) -> Any:
    return optimized(DRESampler(seed=1, settings=FAST, **options), objective, n)


@pytest.mark.parametrize("seed", range(4))
def test_the_first_trial_makes_up_for_what_it_has_sampled(seed) -> None:
    sampler = DRESampler(seed=seed, settings=FAST, valid=rising)
    study = optimized(sampler, leaves, 1)
    assert rising(study.trials[0].params) and sampler.stats["invalid"] == 0


@pytest.mark.parametrize(("objective", "valid"), [(leaves, rising), (shares, is_shared)])
def test_every_later_trial_satisfies_the_rule(objective, valid) -> None:
    study = tuned(objective, 24, valid=valid)
    assert all(valid(trial.params) for trial in study.trials[1:])
    assert study.sampler.stats["fallbacks"] == 0
    assert {"model", "universal-prior", "random"} <= {
        study.sampler.explain(study, number).source for number in range(24)
    }


def test_a_first_trial_that_cannot_satisfy_it_is_tried_with_a_warning(caplog) -> None:
    study = tuned(shares, 4, valid=lambda c: abs(c["a"] + c["b"] + c["c"] - 3) < 0.3)
    assert [r.message for r in caplog.records if "Trial 0 breaks the rule" in r.message]
    assert study.sampler.stats["invalid"] == 1
    assert all(sum(trial.params.values()) > 2.7 for trial in study.trials[1:])


@pytest.mark.parametrize(("name", "is_reported"), [("hgh", True), ("high", False)])
def test_a_misspelt_name_is_reported_after_ten_trials(caplog, name, is_reported) -> None:
    tuned(leaves, 12, valid=lambda c: c["low"] <= c[name])
    assert (f"reads {name!r}, which none of 10 trials has" in caplog.text) == is_reported


def test_the_samplers_of_independent_parameters_are_asked_again() -> None:
    study = tuned(
        leaves,
        1,
        valid=lambda c: c["high"] - c["low"] in (1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -4, -5),
        independent_sampler=optuna.samplers.RandomSampler(seed=3),
    )
    params = study.trials[0].params
    assert -6 < params["high"] - params["low"] < 8 or study.sampler.stats["invalid"] == 1


def test_a_branch_lacks_what_the_rule_reads() -> None:
    def objective(trial: Any) -> float:
        c = trial.suggest_float("C", 0, 1)
        if trial.suggest_categorical("kernel", ["linear", "rbf"]) == "rbf":
            return c + trial.suggest_float("gamma", 0, 1)
        return c + 0.5

    study = tuned(objective, 24, valid=lambda c: c["gamma"] <= c["C"])
    gammas = [t.params for t in study.trials if "gamma" in t.params]
    assert all(params["gamma"] <= params["C"] for params in gammas)
    assert 3 < len(gammas) < 24


def capped(trial: Any) -> float:
    mode, cap = trial.suggest_categorical("mode", ["safe"]), trial.suggest_float("cap", 0.3, 0.3)
    return trial.suggest_float("x", 0, 1) * len(mode) - cap


def test_the_rule_gets_parameters_of_one_value() -> None:
    study = tuned(
        lambda trial: -capped(trial),
        12,
        valid=lambda c: c["x"] <= c["cap"] and c["mode"] == "safe",
    )
    assert all(trial.params["x"] <= 0.3 for trial in study.trials)
    assert not study.sampler.stats["invalid"]
    study.enqueue_trial({"x": 0.9})
    study.optimize(capped, n_trials=1)
    assert study.trials[-1].params["x"] == 0.9
    assert study.sampler.stats["invalid"] == 1 and not study.sampler.stats["fallbacks"]


def flags(trial: Any) -> float:
    return sum(trial.suggest_categorical(name, [False, True]) for name in "abc")


def any_flag(c: dict[str, Any]) -> bool:
    return any(c.get(name) for name in "abc")


def test_given_values_break_it_only_if_no_others_make_up_for_them() -> None:
    study = tuned(flags, 7, valid=any_flag)
    assert all(map(any_flag, params_of(study))) and not study.sampler.stats["invalid"]
    study = tuned(flags, 3, valid=any_flag, allow_duplicates=True)
    study.enqueue_trial({"a": False})
    study.enqueue_trial(dict.fromkeys("abc", False))
    study.optimize(flags, n_trials=2)
    assert [any_flag(trial.params) for trial in study.trials[3:]] == [True, False]
    assert study.sampler.stats["invalid"] == 1


@pytest.mark.parametrize(
    ("objective", "valid", "given"),
    [
        (shares, lambda c: c["a"] < 0.5, {"a": 0.9}),
        (lambda trial: capped(trial) * math.nan, lambda c: c["cap"] > 0.5, {}),  # all fail
    ],
)
def test_a_restart_changes_no_trial_that_breaks_it(objective, valid, given) -> None:
    study = tuned(objective, 3, valid=valid)
    sampler = DRESampler(seed=1, settings=FAST, valid=valid)
    resumed = optuna.create_study(study_name=study.study_name, sampler=sampler)
    resumed.add_trials(study.trials)
    for each in (study, resumed):
        each.enqueue_trial(given)
        each.optimize(objective, n_trials=1)
    assert study.trials[-1].params == resumed.trials[-1].params


@pytest.mark.filterwarnings("ignore:PartialFixedSampler")
@pytest.mark.parametrize("margin", [0, 40])
def test_values_that_another_sampler_fixes_are_seen(margin: int) -> None:
    """But not in the first trial, in which they are not known, or if nothing goes with them."""

    def valid(c: dict[str, Any]) -> bool:
        return c["low"] + margin <= c["high"]

    sampler = DRESampler(seed=1, settings=FAST, valid=valid)
    fixed = optuna.samplers.PartialFixedSampler({"high": 20}, sampler)
    study = optimized(fixed, leaves, 8)
    n_invalid = sum(not valid(trial.params) for trial in study.trials)
    assert sampler.stats["invalid"] == n_invalid
    assert n_invalid == 8 if margin else n_invalid <= 1


def test_a_first_trial_that_is_given_is_counted_once() -> None:
    sampler = DRESampler(seed=1, settings=FAST, valid=rising)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"low": 50, "high": 3})
    study.optimize(leaves, n_trials=2)
    assert study.trials[0].params["high"] == 3 and rising(study.trials[1].params)
    assert sampler.stats["invalid"] == 1


def test_ranges_without_a_valid_configuration_can_be_mended() -> None:
    study = optuna.create_study(sampler=DRESampler(seed=1, settings=FAST, valid=rising))
    for low, outcome in ((65, pytest.raises(RuleError)), (1, nullcontext())):
        with outcome:
            study.optimize(
                lambda t, low=low: t.suggest_int("low", low, 99) + t.suggest_int("high", 1, 64), 3
            )
    assert all(rising(trial.params) for trial in study.trials[-2:])


def test_a_rule_that_nothing_satisfies_ends_the_study() -> None:
    with pytest.raises(RuleError, match=r"valid holds for none of .* low, high, x"):
        tuned(leaves, 3, valid=lambda c: c["low"] > 64)
    with pytest.raises(RuleError, match=r"TypeError: .*, for \{'low'"):
        tuned(leaves, 3, valid=lambda c: c["low"] > "high")


def test_a_rule_that_raises_on_what_a_trial_gives_loses_no_result() -> None:
    sampler = DRESampler(seed=1, settings=FAST, valid=lambda c: c["x"] < c["mode"])
    study = optimized(
        sampler, lambda t: t.suggest_float("x", 0, 1) + len(t.suggest_categorical("mode", "a")), 1
    )
    assert study.trials[0].value is not None
    with pytest.raises(RuleError, match="TypeError"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)


@pytest.mark.parametrize("pruner", [None, optuna.pruners.HyperbandPruner(1, 9)])
def test_a_rule_that_raises_before_a_trial_leaves_none_running(pruner: Any) -> None:
    study = optimized(DRESampler(seed=1, valid=rising), leaves, 1, pruner=pruner)
    study.enqueue_trial({"low": "a", "high": 3})
    with pytest.raises(RuleError, match="TypeError"):
        study.optimize(leaves, n_trials=1)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL"]
    study.optimize(leaves, n_trials=1)


def test_parallel_trials_obey_it() -> None:
    sampler = DRESampler(seed=1, settings=FAST, valid=rising)
    study = optuna.create_study(sampler=sampler)
    study.optimize(leaves, n_trials=14, n_jobs=3)
    broken = [trial.number for trial in study.trials if not rising(trial.params)]
    assert len(broken) <= sampler.stats["invalid"]


def test_each_study_has_constants_of_its_own() -> None:
    def objective(trial: Any, cap: float) -> float:
        return trial.suggest_float("cap", cap, cap) * trial.suggest_float("z", 0, 1)

    sampler = DRESampler(seed=1, settings=FAST, valid=lambda c: c["x"] <= c["cap"])
    studies = [optimized(sampler, partial(objective, cap=cap), 1) for cap in (0.02, 0.9)]
    trials = [study.ask() for study in studies]
    assert all("z" in trial.relative_params for trial in trials)  # they are chosen when read
    assert trials[0].suggest_float("x", 0, 1) <= 0.02


def test_a_parameter_of_one_value_may_get_a_range_while_others_run() -> None:
    sampler = DRESampler(seed=1, settings=FAST, valid=rising)
    study = optimized(
        sampler, lambda t: t.suggest_int("low", 3, 3) + t.suggest_int("high", 3, 9), 1
    )
    assert all(trial.suggest_int("low", 1, 9) for trial in (study.ask(), study.ask()))


def test_threads_may_search_different_spaces() -> None:
    def valid(_: Any) -> bool:
        if to_run and to_run.pop():
            other.optimize(capped, n_trials=1)  # as another thread may at any time
        return True

    to_run: list[bool] = []
    sampler = DRESampler(seed=1, settings=FAST, valid=valid)
    study, other = optimized(sampler, flags, 1), optimized(sampler, capped, 1)
    to_run += [True, False]  # at the second call of the rule
    study.optimize(flags, n_trials=1)
    assert len(other.trials) == len(study.trials) == sampler.stats["suggestions"] == 2
