"""Trials that have ended are converted once, which changes no suggestion."""

import copy
import gc
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
from optuna_worker import mixed_objective, optimized, params_of, tiny_sampler
from spies import spy

from dre_plugins.adapters.optuna import DRESampler, history as optuna_history
from dre_plugins.adapters.optuna.conversion import internal_numbers
from dre_plugins.adapters.optuna.history import History, trial_of

Space = dict[str, BaseDistribution]
MINIMIZE = [StudyDirection.MINIMIZE]


# --- suggestions -------------------------------------------------------------------------------


def eventful_objective(trial: Trial) -> float:
    """Move a range, add a parameter late, fail, prune, and state a constraint."""
    value = trial.suggest_float("y", 0.0, trial.suggest_int("top", 1, 9))
    trial.report(value, 1)
    if trial.number > 8:
        value += trial.suggest_float("late", 0.0, 1.0)
    if trial.number % 5 == 2:
        raise optuna.TrialPruned
    if trial.number % 7 == 3:
        return float("nan")
    trial.set_user_attr("violation", value - 4.0)
    return value


def run(
    sampler: DRESampler, objective: Callable[[Trial], float], *, copies: bool = False
) -> list[dict[str, Any]]:
    """Return 14 suggestions; one trial is still running while four others are suggested."""
    study = optuna.create_study(study_name="s", sampler=sampler)
    for number in range(14):
        if number == 6:
            waiting = study.ask()
            waiting.suggest_float("early", 0.0, 1.0)
        if number == 10:
            study.tell(waiting, 0.5)
        study.optimize(objective, n_trials=1)
        if copies:  # which begin with nothing
            study.sampler = copy.deepcopy(study.sampler)
    return params_of(study)


def violations(trial: FrozenTrial) -> Sequence[float]:
    return [trial.user_attrs.get("violation", 0.0)]


@pytest.mark.parametrize("objective", [mixed_objective, eventful_objective])
def test_no_suggestion_depends_on_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, objective: Callable[[Trial], float]
) -> None:
    def sampler() -> DRESampler:
        return tiny_sampler(constraints_func=violations, warn_independent_sampling=False)

    kept = run(sampler(), objective)
    assert run(sampler(), objective, copies=True) == kept
    get_trials = optuna.Study.get_trials
    monkeypatch.setattr(  # a storage that makes its trials anew at each read
        optuna.Study,
        "get_trials",
        lambda self, deepcopy=True, states=None: get_trials(self, True, states),
    )
    assert run(sampler(), objective) == kept


def test_another_study_of_the_same_name_is_not_mistaken_for_the_first() -> None:
    def run_and_delete(sampler: DRESampler, sign: float) -> list[dict[str, Any]]:
        study = optuna.create_study(study_name="s", storage=storage, sampler=sampler)
        study.optimize(lambda trial: sign * trial.suggest_float("x", 0.0, 1.0), n_trials=8)
        suggested = params_of(study)
        optuna.delete_study(study_name="s", storage=storage)
        return suggested

    storage, used = optuna.storages.InMemoryStorage(), tiny_sampler()
    first, second = run_and_delete(used, 1.0), run_and_delete(used, -1.0)
    assert second == run_and_delete(tiny_sampler(), -1.0) != first


def test_a_suggestion_converts_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    convert = spy(monkeypatch, optuna_history, "trial_of")
    study = optimized(tiny_sampler(n_startup_trials=100), mixed_objective, 20)
    running = study.ask()
    mixed_objective(running)
    for _ in range(3):
        convert.reset_mock()
        last = study.trials[-1].number
        study.optimize(mixed_objective, n_trials=1)
        converted = {call.args[0].number for call in convert.call_args_list}
        assert {running.number} <= converted <= {running.number, last}


# --- conversion --------------------------------------------------------------------------------

UNIT, WIDE = FloatDistribution(0.0, 1.0), FloatDistribution(-5.0, 5.0)
SPACES: dict[str, Space] = {
    "first": {"x": UNIT, "k": CategoricalDistribution([1, "a"])},
    "range": {"x": WIDE, "k": CategoricalDistribution([1, "a"])},
    "type": {"x": UNIT, "k": CategoricalDistribution([True, "a"])},
    "parameter": {"x": UNIT, "k": CategoricalDistribution([1, "a"]), "n": IntDistribution(0, 9)},
    "order": {"k": CategoricalDistribution([1, "a"]), "x": UNIT},
    "fewer": {"x": UNIT},
}


def ended_trials(n: int = 12) -> list[FrozenTrial]:
    trials = []
    for number in range(n):
        params: dict[str, Any] = {"x": number / n, "k": (1, "a")[number % 2]}
        distributions: Space = dict(SPACES["first"])
        if number % 3 == 0:
            params["n"], distributions["n"] = number % 10, IntDistribution(0, 9)
        trials.append(
            create_trial(
                state=(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)[number % 3],
                value=float(number) if number % 3 == 0 else None,
                params=params,
                distributions=distributions,
                intermediate_values={1: 0.1 * number},
            )
        )
        trials[-1].number = number
    return trials


@pytest.mark.parametrize("second", SPACES)
def test_a_changed_search_space_changes_the_conversion(second: str) -> None:
    history, trials = History(), ended_trials()
    for name in ("first", second, "first"):
        expected = [trial_of(trial, SPACES[name], MINIMIZE) for trial in trials]
        # By text: 1 is not True, and order matters.
        assert repr(history.readable(trials, SPACES[name], MINIMIZE)[1]) == repr(expected)


def test_the_direction_counts() -> None:
    history, trials = History(), ended_trials()
    down = history.readable(trials, SPACES["first"], MINIMIZE)[1]
    up = history.readable(trials, SPACES["first"], [StudyDirection.MAXIMIZE])[1]
    assert [trial.value for trial in down[3::3]] == [-3.0, -6.0, -9.0]
    assert [trial.value for trial in up[3::3]] == [3.0, 6.0, 9.0]


def test_a_trial_that_ends_is_converted_anew() -> None:
    history, study = History(), optuna.create_study(sampler=tiny_sampler())
    space: Space = {"x": UNIT, "y": UNIT}
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)

    def converted() -> Any:
        (trial,) = history.readable(study.get_trials(deepcopy=False), space, MINIMIZE)[1]
        return trial

    assert (converted().state, [*converted().configuration]) == ("running", ["x"])
    trial.suggest_float("y", 0.0, 1.0)
    assert [*converted().configuration] == ["x", "y"]
    study.tell(trial, 2.0)
    assert (converted().state, converted().value) == ("complete", -2.0)
    assert converted() is converted()


def test_a_part_of_the_trials_is_enough() -> None:
    """A pruner such as Hyperband shows a sampler different subsets of the trials."""
    history, trials = History(), ended_trials()
    whole = history.readable(trials, SPACES["first"], MINIMIZE)[1]
    odd = history.readable(trials[1::2], SPACES["first"], MINIMIZE)[1]
    assert all(trial is expected for trial, expected in zip(odd, whole[1::2], strict=True))
    again = history.readable(trials, SPACES["first"], MINIMIZE)[1]
    assert all(trial is expected for trial, expected in zip(again, whole, strict=True))


def test_numbers_are_those_of_the_trial_that_is_asked_for() -> None:
    history, trials, others = History(), ended_trials(), ended_trials(6)[::-1]
    for number, other in enumerate(others):
        other.number = number
    history.readable(trials, SPACES["first"], MINIMIZE)
    for trial in [*trials, *others]:
        assert history.numbers(trial) == internal_numbers(trial)


def test_threads_may_share_it() -> None:
    history, trials = History(), ended_trials(200)
    other = [*reversed(ended_trials(200))]
    for number, trial in enumerate(other):
        trial.number = number

    def converts_correctly(turn: int) -> bool:
        shown = (trials, other)[turn % 5 == 0][: 40 + turn]
        space = SPACES[("first", "range", "parameter")[turn % 3]]
        expected = [trial_of(trial, space, MINIMIZE) for trial in shown]
        return repr(history.readable(shown, space, MINIMIZE)[1]) == repr(expected)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(converts_correctly, range(100)))


def test_a_study_that_is_over_is_forgotten() -> None:
    history, trials = History(), ended_trials()
    history.readable(trials, SPACES["first"], MINIMIZE)
    first, last = weakref.ref(trials[0]), weakref.ref(trials[-1])
    del trials
    history.readable(ended_trials(2), SPACES["first"], MINIMIZE)
    gc.collect()
    assert first() is None and last() is None


@pytest.mark.filterwarnings("ignore:Inconsistent parameter values")
def test_a_waiting_trial_may_have_a_range_that_cannot_be_searched() -> None:
    """A storage does not check ranges; the next parameter is suggested beside such a value."""
    study = optuna.create_study(sampler=DRESampler(seed=0))
    wide = {"x": optuna.distributions.FloatDistribution(-1.7e308, 1.7e308)}
    waiting = create_trial(state=TrialState.WAITING, params={"x": 0.5}, distributions=wide)
    study.add_trial(waiting)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_int("n", 1, 9), n_trials=3)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 3
