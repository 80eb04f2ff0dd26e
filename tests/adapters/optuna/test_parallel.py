"""Workers in threads and processes, and pending trials."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import optuna
import optuna_worker as worker
import pytest
from marks import LONG
from processes import run_together

from dre_plugins.adapters.optuna import DRESampler, claims
from dre_plugins.adapters.optuna.attributes import explanation_of
from dre_plugins.adapters.optuna.conversion import internal_numbers
from dre_plugins.space import Float, SearchSpace


def points_of(study: optuna.Study) -> list[tuple[Any, ...]]:
    return [tuple(sorted(trial.params.items())) for trial in study.trials]


def begun(n_ended: int, objective: Any = worker.small_objective) -> optuna.Study:
    """Return a study after so many trials, in which a model suggests after the first."""
    return worker.optimized(worker.tiny_sampler(n_startup_trials=1), objective, n_ended)


# No trial has ended (start-up points), or two have and the model suggests all others.
BEGINNINGS = pytest.mark.parametrize("n_ended", [0, 2], ids=["startup", "model"])


@BEGINNINGS
def test_16_pending_trials_in_a_space_of_18_are_distinct(n_ended: int) -> None:
    study = begun(n_ended)
    for _ in range(16):
        worker.small_objective(study.ask())
    assert len(set(points_of(study))) == 16 + n_ended


@pytest.mark.parametrize("has_asked", [False, True])  # for one of two parameters
def test_a_claim_is_seen_before_its_parameters_are_asked_for(has_asked: bool) -> None:
    study = begun(2)
    trials = [study.ask() for _ in range(16)]
    for trial in trials:
        trial.suggest_int("y", 0, 5)
        if not has_asked:
            trial.suggest_categorical("x", ["a", "b", "c"])
    for trial in reversed(trials):
        trial.suggest_categorical("x", ["a", "b", "c"])
    assert len(set(points_of(study))) == 18


@BEGINNINGS
def test_8_threads_share_a_sampler(n_ended: int) -> None:
    """Nothing is repeated, unless seven trials take the same x before any of them asks for y.

    The threads may all begin before any of them has asked for its second parameter.
    """
    study = begun(n_ended)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: worker.small_objective(study.ask()), range(16)))
    points = points_of(study)
    if n_ended:
        assert len(set(points)) == 16 + n_ended
    for x in "abc":
        ys = [dict(point)["y"] for point in points if dict(point)["x"] == x]
        assert len(set(ys)) == min(len(ys), 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_ended"),
    [pytest.param("journal:", 0, marks=LONG), ("journal:", 2), ("sqlite:///", 2)],
)
def test_4_processes_with_the_same_seed_share_a_storage(tmp_path, kind: str, n_ended: int) -> None:
    storage = f"{kind}{tmp_path / 'storage'}"
    study = optuna.create_study(
        study_name="s", storage=worker.open_storage(storage), sampler=worker.tiny_sampler(seed=7)
    )
    study.optimize(worker.small_objective, n_trials=n_ended)
    outputs = run_together(4, worker.leave_pending, storage)
    stats = sum((Counter(output) for output in outputs), Counter())
    assert stats["fallbacks"] == 0
    points = points_of(study)
    assert len(points) == 16 + n_ended
    assert len(set(points)) == 16 + n_ended, stats


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_12_processes_share_a_journal(tmp_path: Path) -> None:
    """With start-up points only: 12 workers that fit a model at each conflict take minutes."""
    storage = f"journal:{tmp_path / 'journal'}"
    study = optuna.create_study(study_name="s", storage=worker.open_storage(storage))
    study.enqueue_trial({"x": 0, "y": 0})
    study.optimize(worker.table_objective, n_trials=1)
    run_together(12, worker.run_start_up, storage)
    points = points_of(study)
    assert len(points) == len(set(points)) == 25


def test_zombies_do_not_stop_a_study() -> None:
    study = optuna.create_study(sampler=worker.tiny_sampler())
    for _ in range(3):
        study.ask()  # never asks for anything
        worker.mixed_objective(study.ask())  # never ends
    study.optimize(worker.mixed_objective, n_trials=15)
    sources = [explanation_of(trial).source for trial in study.trials]
    assert sources.count("model") >= 10


has_one = claims.repeats_of({"x": 1.0}, SearchSpace({}), [], {"x"}, internal_numbers)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note for how long trials wait for others, and wait for none."""
    noted: list[float] = []
    monkeypatch.setattr(claims.time, "sleep", noted.append)
    return noted


def study_of_two_claims(sampler: DRESampler) -> tuple[optuna.Study, Any, Any]:
    """Return a study and its two trials; the first has announced a claim without values."""
    study = optuna.create_study(sampler=sampler)
    study.ask(), study.ask()
    early, late = study.get_trials(deepcopy=False)
    claims.announce(study, early)
    claims.claim(study, late, {"x": 1.0})
    return study, early, late


def test_an_earlier_trial_waits_for_a_later_one_to_give_way(monkeypatch) -> None:
    """If two trials claim the same values, and none is in use yet, only the later one moves."""
    study = optuna.create_study(sampler=worker.tiny_sampler())
    first, second = study.ask(), study.ask()
    mine, other = study.get_trials(deepcopy=False)
    claims.claim(study, mine, {"x": 1.0})
    claims.claim(study, other, {"x": 1.0})
    assert claims.conflicting_trials(study, other, has_one) is not None

    def give_way(_: float) -> None:
        claims.claim(study, other, {"x": 2.0})

    monkeypatch.setattr(claims.time, "sleep", lambda pause: give_way(pause) if pause else None)
    assert claims.conflicting_trials(study, mine, has_one) is None
    claims.claim(study, other, {"x": 1.0})
    second.suggest_int("x", 1, 1)  # now in use: the earlier one moves although it is earlier
    assert claims.conflicting_trials(study, mine, has_one) is not None
    assert first.number < second.number


def test_a_later_trial_waits_for_the_claim_of_an_earlier_one(monkeypatch) -> None:
    """The earlier one looked before the later began, and never looks again."""
    study, early, late = study_of_two_claims(worker.tiny_sampler())
    pauses: list[float] = []

    def choose(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 4:
            claims.claim(study, early, {"x": 1.0})

    monkeypatch.setattr(claims.time, "sleep", choose)
    assert claims.conflicting_trials(study, late, has_one) is not None
    assert len(pauses) == 4


@worker.AS_ONE
def test_no_trial_waits_for_one_that_has_asked_for_nothing(pauses: list[float]) -> None:
    """A worker that loads its data first, or has another sampler, claims later or never."""
    study = begun(3, worker.mixed_objective)
    pauses.clear()
    silent = study.ask()
    worker.mixed_objective(study.ask())
    assert pauses == [0.0]
    worker.mixed_objective(silent)
    assert len(set(points_of(study))) == 5


@worker.AS_ONE
def test_models_that_choose_at_the_same_time_do_not_choose_nearly_the_same(monkeypatch) -> None:
    """The earlier trial claims what is .004 away after the later one has read the study."""
    study = begun(3, lambda trial: trial.suggest_float("x", 0, 1))
    study.ask(), study.ask()
    early, late = study.get_trials(deepcopy=False)[-2:]
    claim, chosen = claims.claim, []

    def claim_together(study: optuna.Study, trial: Any, numbers: Any) -> str:
        chosen.append(numbers["x"])
        if len(chosen) == 1:
            claim(study, early, {"x": numbers["x"] + (0.004 if numbers["x"] < 0.5 else -0.004)})
        return claim(study, trial, numbers)

    monkeypatch.setattr(claims, "claim", claim_together)
    study.sampler.sample_relative(
        study, late, study.sampler.infer_relative_search_space(study, late)
    )
    assert study.sampler.stats["conflicts"] == 1
    # A claim that the model knew is avoided by the search, as a trial that has ended is.
    assert abs(chosen[1] - chosen[0]) > 0.004 and len(chosen) == 2


def test_a_number_out_of_all_ranges_is_near_to_none() -> None:
    """As one that another worker has enqueued meanwhile."""
    space = SearchSpace({"x": Float(0.0, 1.0)})
    other = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING)
    for held, chosen in ((math.inf, 0.5), (0.5, math.inf), (math.inf, -math.inf), (0.5, 0.501)):
        repeats = claims.repeats_of({"x": chosen}, space, [], "x", lambda _, x=held: {"x": x})
        assert repeats(other) is (chosen == 0.501)


def test_nobody_waits_for_a_first_trial_whose_parameters_no_model_chooses(
    pauses: list[float],
) -> None:
    study = optuna.create_study(sampler=worker.tiny_sampler())
    first, late = study.ask(), study.ask()
    assert first.relative_params == {}
    pauses.clear()
    (_, held) = study.get_trials(deepcopy=False)
    assert claims.conflicting_trials(study, held, has_one) is None
    assert pauses == [0.0]
    assert late.number == 1


def test_a_trial_waits_for_no_claim_of_a_worker_that_was_killed_long_ago(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, _, late = study_of_two_claims(worker.tiny_sampler())
    assert claims.conflicting_trials(study, late, has_one) is None
    assert pauses == [*claims.PATIENCE]  # the other began a moment ago
    pauses.clear()
    late.datetime_start -= 2 * claims.CHOOSING  # the clock of the other was ahead
    assert claims.conflicting_trials(study, late, has_one) is None
    assert pauses == [0.0]
    pauses.clear()
    monkeypatch.setattr(claims, "CHOOSING", timedelta(0))
    assert claims.conflicting_trials(study, late, has_one) is None
    assert pauses == [0.0]
