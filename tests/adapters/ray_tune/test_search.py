"""`DRESearch` by itself, called as Ray Tune calls it; no cluster."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.tune")

from ray import cloudpickle, tune
from ray.tune.search import ConcurrencyLimiter, Repeater, Searcher
from ray_tune_worker import MIXED_SPACE, SMALL_SPACE, mixed_value, tiny_search

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import UnsupportedDomainError
from dre_plugins.transfer.metadata import MetaDataset, Task

pytestmark = pytest.mark.ray

SPACE = {"x": tune.uniform(0, 1), "n": {"z": tune.randint(0, 5)}, "constant": 7}


def begun(space: dict[str, Any] = SPACE, mode: str = "min", **arguments: Any) -> DRESearch:
    """Return a search that a Tuner has begun to use."""
    search = tiny_search(**arguments)
    assert search.set_search_properties("loss", mode, space, num_samples=9, stop=None) is True
    return search


def result(loss: Any, iteration: int = 1, **more: Any) -> dict[str, Any]:
    """Return a result as Ray delivers it."""
    return {"loss": loss, "training_iteration": iteration, "time_total_s": iteration / 8, **more}


def complete(search: Searcher, trial_id: str, loss: Any) -> None:
    """Report once and end, as a function does that returns a value."""
    search.on_trial_result(trial_id=trial_id, result=result(loss))
    search.on_trial_complete(trial_id=trial_id, result=result(loss, done=True), error=False)


def run(
    search: Searcher,
    n_trials: int,
    value: Callable[[dict[str, Any]], float] = mixed_value,
    first: int = 0,
) -> list[dict[str, Any]]:
    """Run trials one after the other and return their configurations."""
    configs = []
    for number in range(first, first + n_trials):
        config = search.suggest(f"t{number}")
        assert isinstance(config, dict)
        configs.append(config)
        complete(search, f"t{number}", value(config))
    return configs


def trials(search: DRESearch) -> tuple[Trial, ...]:
    assert search._study is not None
    return search._study.trials


def states(search: DRESearch) -> list[str]:
    return [trial.state.value for trial in trials(search)]


# ---- the space


def test_suggestions_are_configurations_of_the_space() -> None:
    search = begun()
    for config in run(search, 12, lambda config: config["x"]):
        assert list(config) == ["x", "n", "constant"] and list(config["n"]) == ["z"]
        assert type(config["x"]) is float and 0 <= config["x"] <= 1
        assert type(config["n"]["z"]) is int and 0 <= config["n"]["z"] < 5
    assert search.stats == {"suggestions": 12, "random": 4, "model": 8}


def test_the_space_may_be_given_to_the_constructor() -> None:
    own = tiny_search(space=SPACE, metric="loss", mode="min")
    assert run(own, 8, lambda c: c["x"]) == run(begun(), 8, lambda c: c["x"])


def test_metric_and_mode_may_be_given_in_either_place() -> None:
    for own, given in [
        ({}, ("loss", "max")),
        ({"metric": "loss"}, ("loss", "max")),
        ({"metric": "loss"}, (None, "max")),
        ({"mode": "max"}, ("loss", None)),
        ({"metric": "loss", "mode": "max"}, (None, None)),
    ]:
        search = tiny_search(**own)
        assert search.set_search_properties(*given, SPACE)
        assert (search.metric, search.mode) == ("loss", "max")
    search = tiny_search(space=SPACE, metric="loss", mode="max")
    assert search.set_search_properties("loss", "max", {"constant": 7, "other": 8})


def test_a_mode_alone_means_the_anonymous_metric() -> None:
    search = tiny_search()
    search.set_search_properties(None, "min", SPACE)
    assert search.metric == "_metric"


@pytest.mark.parametrize(
    ("own", "given", "message"),
    [
        ({}, (None, None), "metric and a mode, got None and None"),
        ({}, ("loss", None), "got 'loss' and None"),
        ({"metric": "loss"}, ("score", "min"), "metric is 'loss' for DRESearch and 'score'"),
        ({"mode": "max"}, ("loss", "min"), "mode is 'max' for DRESearch and 'min'"),
        ({}, (["loss", "time"], ["min"]), "several objectives.*'loss', 'time'"),
        ({}, (["loss", "time"], "min"), "several objectives.*'loss', 'time'"),
        ({}, ("loss", "smallest"), "mode must be 'min' or 'max', got 'smallest'"),
    ],
)
def test_a_wrong_objective_is_refused_at_set_up(
    own: dict[str, Any], given: tuple[Any, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_search(**own).set_search_properties(*given, SPACE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": ["a", "b"], "mode": ["min", "up"]}, "mode.*'up'"),
        ({"metric": ["a", 2], "mode": ["min", "max"]}, "metric.*2"),
        ({"constraints": {"size": "small"}}, "constraints.*'size'.*'small'"),
        ({"mode": "up"}, "mode.*'up'"),
        ({"metric": 3}, "metric.*3"),
        ({"seed": -1}, "seed.*-1"),
        ({"n_startup_trials": -1}, "n_startup_trials.*-1"),
        ({"failed": "drop"}, "failed.*'drop'"),
        ({"space": [1]}, r"space must be a dictionary.*\[1\]"),
        ({"points_to_evaluate": {"x": 1}}, "points_to_evaluate must be a list"),
        ({"points_to_evaluate": [3]}, r"points_to_evaluate.*\[3\]"),
        ({"points_to_evaluate": [{"x": 1}], "evaluated_rewards": [1, 2]}, "1 points.*got 2"),
        ({"evaluated_rewards": [1]}, "0 points_to_evaluate, got 1"),
        ({"prior": "xgboost", "past_results": "."}, "prior and past_results"),
        ({"prior": "nothing"}, "nothing"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DRESearch(**arguments)


def test_two_spaces_are_fine_only_if_they_are_equal() -> None:
    for given in (SPACE, {**SPACE, "more": 1}, {"constants": {"only": 2}}):
        search = tiny_search(space=SPACE, metric="loss", mode="min")
        assert search.set_search_properties(None, None, given)
        assert search.suggest("a") is not None
    search = tiny_search(space=SPACE, metric="loss", mode="min")
    with pytest.raises(ValueError, match=r"searches \['x', 'n/z'\] already.*\['x'\]"):
        search.set_search_properties(None, None, {"x": tune.uniform(0, 2)})


def test_a_search_may_serve_two_experiments_of_one_space() -> None:
    search = begun()
    run(search, 3, lambda config: config["x"])
    assert search.set_search_properties("loss", "min", SPACE)
    assert len(trials(search)) == 3
    with pytest.raises(ValueError, match="new DRESearch"):
        search.set_search_properties("loss", "min", SMALL_SPACE)


def test_what_cannot_be_searched_is_refused_at_set_up() -> None:
    for entry, message in [
        (tune.grid_search([1, 2]), r"'n/g' is a tune.grid_search.*tune.choice\(\[1, 2\]\)"),
        (tune.sample_from(lambda config: 1), "'n/g' is a tune.sample_from.*Tuner"),
    ]:
        with pytest.raises(UnsupportedDomainError, match=message):
            begun({"n": {"g": entry}})
        with pytest.raises(UnsupportedDomainError, match=message):
            tiny_search(space={"n": {"g": entry}})


@pytest.mark.parametrize("space", [{"a": 1, "b": {"c": [2]}}, {}], ids=str)
def test_constants_only(space: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        search = begun(space)
        assert run(search, 20, lambda config: 1.0) == [space] * 20
    assert len(caplog.records) == 1 and "constants only" in caplog.text


def test_no_space_and_no_metric_are_errors_of_the_first_trial() -> None:
    with pytest.raises(ValueError, match=r"nothing to search.*param_space"):
        tiny_search(metric="loss", mode="min").suggest("a")
    with pytest.raises(ValueError, match=r"metric and a mode.*TuneConfig"):
        tiny_search(space=SPACE, metric="loss").suggest("a")


# ---- points to evaluate


def test_points_are_run_first_and_in_order() -> None:
    points = [
        {"x": 0.25, "n": {"z": 3}},
        {"x": 0.5, "n/z": 2, "constant": 7},
        {"n": {"z": 1}},
        {"x": 0.75},
        {"x": 7.0, "n/z": 4},  # out of range
    ]
    search = begun(points_to_evaluate=points)
    first, second, third, fourth, fifth, sixth = run(search, 6, lambda config: config["x"])
    assert first == {"x": 0.25, "n": {"z": 3}, "constant": 7}
    assert second == {"x": 0.5, "n": {"z": 2}, "constant": 7}
    assert third["n"] == {"z": 1} and 0 <= third["x"] <= 1
    assert fourth["x"] == 0.75 and 0 <= fourth["n"]["z"] < 5
    assert fifth == {"x": 7.0, "n": {"z": 4}, "constant": 7}
    assert 0 <= sixth["x"] <= 1
    assert search.stats["enqueued"] == 5
    assert trials(search)[4].value == 7.0


def test_a_point_out_of_range_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        run(begun(points_to_evaluate=[{"x": 7.0}, {"x": 8.0}]), 3, lambda config: 1.0)
    assert len(caplog.records) == 1 and "x=7.0" in caplog.text


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"y": 1}, r"no parameter 'y'.*\['x', 'n', 'constant'\]"),
        ({"n": {"y": 1}}, "'n/y'"),
        ({"constant": 8}, "'constant' is the constant 7"),
        ({"x": "big"}, "'x'.*'big'"),
    ],
)
def test_unknown_points_are_refused_at_set_up(point: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        begun(points_to_evaluate=[point])
    with pytest.raises(ValueError, match=message):
        begun(points_to_evaluate=[{"x": 0.5, "n/z": 1, **point}], evaluated_rewards=[1.0])
    with pytest.raises(ValueError, match=message):
        begun().add_evaluated_point({"x": 0.5, "n/z": 1, **point}, 1.0)


def test_evaluated_points_are_learnt_from_and_not_run() -> None:
    points = [{"x": i / 4, "n": {"z": i}, "constant": 7} for i in range(4)]
    search = begun(points_to_evaluate=points, evaluated_rewards=[3.0, math.nan, None, 0.5])
    assert states(search) == ["complete", "failed", "failed", "complete"]
    assert [trial.value for trial in trials(search)] == [3.0, None, None, 0.5]
    run(search, 1, lambda config: config["x"])
    assert search.stats == {"suggestions": 1, "model": 1}


def test_evaluated_points_may_come_before_and_after_the_set_up() -> None:
    search = tiny_search()
    search.add_evaluated_point({"x": 0.5, "n/z": 1}, 1.0)
    search.set_search_properties("loss", "max", SPACE)
    search.add_evaluated_point({"x": 0.25, "n": {"z": 1}, "constant": 7}, np.float32(2.0))
    search.add_evaluated_point({"x": 0.75, "n/z": 1}, 9.0, error=True)
    search.add_evaluated_point(
        {"x": 0.125, "n/z": 1}, 3.0, pruned=True, intermediate_values=[1.0, math.nan, 3.0]
    )
    search.add_evaluated_point({"x": 9, "n/z": 1}, 4.0, intermediate_values=[2.0, 4.0])
    search.add_evaluated_point({"x": 0.25, "n/z": 2}, 5.0, pruned=True)
    assert states(search) == ["complete", "complete", "failed", "pruned", "complete", "complete"]
    assert [trial.value for trial in trials(search)] == [1.0, 2.0, None, None, 4.0, 5.0]
    assert list(trials(search)[3].rungs) == [1.0, 2.0, 3.0]
    assert trials(search)[4].rungs == {1.0: 2.0, 2.0: 4.0}
    with pytest.raises(ValueError, match=r"lacks.*n/z"):
        search.add_evaluated_point({"x": 0.5}, 1.0)


# ---- direction, duplicates, exhaustion


def test_maximising_is_minimising_the_negative() -> None:
    smallest = run(begun(MIXED_SPACE, "min"), 14)
    largest = run(begun(MIXED_SPACE, "max"), 14, lambda config: -mixed_value(config))
    assert smallest == largest


def test_suggestions_depend_on_the_seed_only() -> None:
    assert run(begun(MIXED_SPACE), 9) == run(begun(MIXED_SPACE), 9)
    assert run(begun(MIXED_SPACE), 2) != run(begun(MIXED_SPACE, seed=1), 2)
    assert run(begun(MIXED_SPACE, seed=None), 2) != run(begun(MIXED_SPACE, seed=None), 2)


@pytest.mark.parametrize("n_ended", [0, 2])
def test_running_trials_are_not_suggested_again(n_ended: int) -> None:
    search = begun(SMALL_SPACE, n_startup_trials=2)
    run(search, n_ended, lambda config: config["y"])
    suggested = [search.suggest(f"pending{i}") for i in range(16)]
    assert len({(config["x"], config["y"]) for config in suggested if config}) == 16


def test_a_finite_space_ends_the_search_when_it_is_used_up() -> None:
    search = begun(SMALL_SPACE)
    configs = run(search, 18, lambda config: config["y"])
    assert len({(config["x"], config["y"]) for config in configs}) == 18
    assert search.suggest("one more") == Searcher.FINISHED
    assert search.suggest("another") == Searcher.FINISHED


def test_duplicates_may_be_allowed() -> None:
    search = begun(SMALL_SPACE, allow_duplicates=True)
    assert len(run(search, 25, lambda config: config["y"])) == 25


def test_a_point_that_is_given_twice_does_not_end_the_search() -> None:
    points = [{"x": "a", "y": 0}] * 3
    configs = run(begun(SMALL_SPACE, points_to_evaluate=points), 20, lambda config: config["y"])
    assert len({(config["x"], config["y"]) for config in configs}) == 18


def test_the_same_trial_id_gets_the_same_configuration() -> None:
    search = begun()
    assert search.suggest("a") == search.suggest("a") != search.suggest("b")


# ---- results


@pytest.mark.parametrize(
    ("loss", "state"),
    [
        (1.5, "complete"),
        (np.float32(1.5), "complete"),
        (np.array(1.5), "complete"),
        (math.inf, "complete"),
        (-math.inf, "complete"),
        (math.nan, "failed"),
        (None, "failed"),
        ("bad", "failed"),
        ([1, 2], "failed"),
        (10**400, "complete"),  # infinite
    ],
    ids=lambda one: repr(one)[:20],
)
def test_any_value_of_the_metric_will_do(loss: Any, state: str) -> None:
    search = begun()
    search.suggest("a")
    complete(search, "a", loss)
    assert states(search) == [state]
    run(search, 8, lambda config: config["x"])
    assert search.stats["fallbacks"] == 0


def last(search: DRESearch) -> Trial:
    return trials(search)[-1]


def test_a_trial_that_returns_is_complete_whatever_the_others_do() -> None:
    search = begun()
    for trial_id, n in (("long", 5), ("short", 2)):
        search.suggest(trial_id)
        for iteration in range(1, n + 1):
            search.on_trial_result(trial_id, result(1 / iteration, iteration))
        search.on_trial_complete(trial_id, result(1 / n, n, done=True))
    assert states(search) == ["complete", "complete"]
    assert last(search).value == 0.5 and last(search).rungs == {1.0: 1.0, 2.0: 0.5}


def test_a_trial_that_is_stopped_counts_by_what_it_reported() -> None:
    search = begun()
    search.suggest("a")  # stopped by a scheduler: the last result comes with the end only
    search.on_trial_result("a", result(3.0, 1))
    search.on_trial_complete("a", result(2.0, 2, done=True))
    assert last(search).state is TrialState.COMPLETE and last(search).value == 2.0
    search.suggest("b")
    search.on_trial_complete("b", result(4.0, 1, done=True))
    assert last(search).state is TrialState.PRUNED and last(search).rungs == {1.0: 4.0}
    search.suggest("c")  # stopped while it is paused
    search.on_trial_result("c", result(4.0, 1))
    search.on_trial_complete("c")
    assert last(search).state is TrialState.PRUNED
    search.suggest("d")  # began anew after a pause and was stopped at the same iteration
    search.on_trial_result("d", result(4.0, 1))
    search.on_trial_complete("d", {**result(4.0, 1, done=True), "time_total_s": 9.0})
    assert last(search).state is TrialState.PRUNED


@pytest.mark.parametrize(
    ("end", "is_counted"),
    [
        ({"error": True}, False),
        ({"result": None, "error": True}, False),
        ({"result": {"training_iteration": 1}, "error": True}, False),
        ({"result": None}, True),
        ({"result": {}}, True),
        ({"result": {"training_iteration": 3, "done": True}}, True),  # no metric
    ],
    ids=repr,
)
def test_ends_without_a_value(end: dict[str, Any], is_counted: bool) -> None:
    search = begun()
    for trial_id in ("silent", "reported"):
        search.suggest(trial_id)
        if trial_id == "reported":
            search.on_trial_result(trial_id, result(1.0))
        search.on_trial_complete(trial_id=trial_id, **end)
    assert trials(search)[0].value is None and not trials(search)[0].rungs
    assert last(search).value == (1.0 if is_counted else None)
    run(search, 6, lambda config: config["x"])
    assert search.stats["fallbacks"] == 0


def test_results_without_the_metric_or_an_iteration_are_passed_over() -> None:
    search = begun()
    search.suggest("a")
    for one in ({}, {"training_iteration": 1}, {"loss": 2.0}):
        search.on_trial_result("a", one)
    assert last(search).rungs == {}
    search.on_trial_complete("a", {"loss": 3.0})  # as a Repeater ends
    assert last(search).value == 3.0


def test_unknown_and_repeated_trials_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    search = begun()
    search.suggest("a")
    complete(search, "a", 1.0)
    with caplog.at_level(logging.DEBUG, logger="ray.tune.dre_plugins"):
        complete(search, "a", 2.0)
        complete(search, "unknown", 2.0)
        search.on_trial_complete("unknown", error=True)
        DRESearch().on_trial_complete("unknown", error=True)
    assert [trial.value for trial in trials(search)] == [1.0]
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_pausing_does_nothing() -> None:
    search = begun()
    search.suggest("a")
    search.on_trial_result("a", result(1.0))
    search.on_pause("a")
    search.on_unpause("a")
    search.on_trial_result("a", result(0.5, 2))
    assert last(search).rungs == {1.0: 1.0, 2.0: 0.5}


def test_ray_is_left_to_limit_the_concurrency() -> None:
    assert begun().set_max_concurrency(3) is False


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_concurrency_limiter_around_it(is_batch: bool) -> None:
    limiter = ConcurrencyLimiter(tiny_search(), max_concurrent=3, batch=is_batch)
    assert limiter.set_search_properties("loss", "min", MIXED_SPACE)
    number = 0
    for _ in range(4):
        batch = []
        while (config := limiter.suggest(f"t{number}")) is not None:
            batch.append((f"t{number}", config))
            number += 1
        assert len(batch) == 3
        for trial_id, config in batch:
            complete(limiter, trial_id, mixed_value(config))
    limiter.on_pause("t0")
    limiter.on_unpause("t0")
    assert states(limiter.searcher) == ["complete"] * 12


def test_a_repeater_around_it_hands_on_means() -> None:
    repeater = Repeater(tiny_search(), repeat=2)
    assert repeater.set_search_properties("loss", "min", SPACE)
    for number in range(8):
        assert repeater.suggest(f"t{number}") is not None
    for number in range(8):
        is_crash = number in (3, 4, 5)
        outcome = None if is_crash else result(float(number))
        if number == 4:
            repeater.on_trial_complete(f"t{number}", outcome, error=True)
        elif number == 5:
            with pytest.warns(RuntimeWarning, match="empty slice"):
                repeater.on_trial_complete(f"t{number}", outcome, error=True)
        else:
            repeater.on_trial_complete(f"t{number}", outcome, error=is_crash)
    assert [trial.value for trial in trials(repeater.searcher)] == [0.5, 2.0, None, 6.5]
    assert states(repeater.searcher) == ["complete", "complete", "failed", "complete"]


# ---- faults


def fit_raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError("injected")


@pytest.fixture
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the surrogate in the way that the test names."""
    from dre_plugins.engine import surrogate

    fit = surrogate.DeepRankingEnsemble.fit

    def fit_to_nan(self: Any, *arguments: Any, **keywords: Any) -> Any:
        fitted = fit(self, *arguments, **keywords)
        spoilt = {name: value * math.nan for name, value in fitted.parameters.items()}
        return dataclasses.replace(fitted, parameters=spoilt)

    if request.param == "fit raises":
        monkeypatch.setattr(surrogate.DeepRankingEnsemble, "fit", fit_raises)
    elif request.param == "weights are NaN":
        monkeypatch.setattr(surrogate.DeepRankingEnsemble, "fit", fit_to_nan)
    else:
        monkeypatch.setattr(EnsembleProposer, "propose", fit_raises)


FAULTS = ["fit raises", "weights are NaN", "scoring raises"]


@pytest.mark.parametrize("fault", FAULTS, indirect=True)
def test_a_broken_surrogate_costs_no_trial(fault: None, caplog: pytest.LogCaptureFixture) -> None:
    search = begun(MIXED_SPACE)
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        configs = run(search, 50)
    assert states(search) == ["complete"] * 50
    assert len({str(config) for config in configs}) == 50
    assert search.stats["fallbacks"] == 46 == search.stats["fallback"]
    assert len(caplog.records) == 1 and "surrogate failed" in caplog.text


# ---- state


def half_way() -> DRESearch:
    """Return a search with all that a state may have: results, running trials, points."""
    points = [{"rate": 0.01 * (i + 1)} for i in range(10)]
    search = begun(MIXED_SPACE, points_to_evaluate=points)
    run(search, 6)
    search.suggest("running")
    search.suggest("reporting")
    search.on_trial_result("reporting", result(1.0))
    return search


def future(search: DRESearch) -> list[Any]:
    """Return what a search does next, with the trials that were running."""
    complete(search, "running", 0.5)
    search.on_trial_complete("reporting", result(0.75, 2))
    configs = run(search, 6, first=100)
    return [*configs, *map(str, trials(search)), dict(search.stats), search.metric, search.mode]


def saved(search: DRESearch, folder: Path) -> DRESearch:
    path = folder / "state.pkl"
    search.save(str(path))
    assert [file.name for file in folder.iterdir()] == ["state.pkl"]
    again = DRESearch(seed=9, settings=Settings(preset="paper"))
    again.restore(str(path))
    return again


def saved_by_ray(search: DRESearch, folder: Path) -> DRESearch:
    search.save_to_dir(str(folder), session_str="session")
    again = tiny_search()
    again.set_search_properties("loss", "min", MIXED_SPACE)  # Tuner.restore does, and then:
    again.restore_from_dir(str(folder))
    return again


def given_state(search: DRESearch, folder: Path) -> DRESearch:
    again = DRESearch()
    again.set_state(search.get_state())
    return again


COPIES: dict[str, Callable[[DRESearch, Path], DRESearch]] = {
    "save": saved,
    "save_to_dir": saved_by_ray,
    "get_state": given_state,
    "pickle": lambda search, folder: pickle.loads(pickle.dumps(search)),
    "cloudpickle": lambda search, folder: cloudpickle.loads(cloudpickle.dumps(search)),
    "deepcopy": lambda search, folder: copy.deepcopy(search),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_has_the_same_future(way: str, tmp_path: Path) -> None:
    search = half_way()
    copied = COPIES[way](search, tmp_path)
    assert type(copied) is DRESearch
    expected = future(half_way())
    assert future(copied) == expected
    assert future(search) == expected  # and shares nothing with the copy
    assert search.stats["enqueued"] == 10


def test_a_state_before_the_set_up_keeps_points_and_seed() -> None:
    def new() -> DRESearch:
        return tiny_search(
            points_to_evaluate=[{"x": 0.5}], seed=5, mode="max", metric="loss", n_startup_trials=2
        )

    again = DRESearch()
    again.set_state(new().get_state())
    expected = new()
    for search in (again, expected):
        search.set_search_properties(None, None, SPACE)
    assert run(again, 5, lambda c: c["x"]) == run(expected, 5, lambda c: c["x"])


def test_states_of_others_are_refused(tmp_path: Path) -> None:
    for state in ({"version": 1}, {"_metric": "loss"}, 3):
        with pytest.raises(ValueError, match="no state of a DRESearch"):
            DRESearch().set_state(state)  # type: ignore[arg-type]
    newer = {**half_way().get_state(), "version": 99}
    (tmp_path / "newer").write_bytes(cloudpickle.dumps(newer))
    with pytest.raises(ValueError, match=r"version 99.*upgrade"):
        DRESearch().restore(str(tmp_path / "newer"))


def test_an_interrupted_save_leaves_the_earlier_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.pkl"
    search = half_way()
    search.save(str(path))
    before = path.read_bytes()

    def fail(self: Path, data: bytes) -> int:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="no space"):
        search.save(str(path))
    assert path.read_bytes() == before


def test_a_torn_state_falls_back_to_the_one_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As Ray leaves it: it copies file by file, and was killed while it copied the newest."""
    staging, storage = tmp_path / "staging", tmp_path / "storage"
    search = tiny_search(space=MIXED_SPACE, metric="loss", mode="min")

    def save_and_copy(*, killed: bool = False) -> None:
        search.save_to_dir(str(staging), session_str="session")
        (file,) = staging.iterdir()  # what Ray copies; the one before lies in the storage only
        data = file.read_bytes()
        (storage / file.name).write_bytes(data[: len(data) // 2] if killed else data)

    staging.mkdir()
    storage.mkdir()
    for n_trials in range(1, 6):
        configs = run(search, 1, first=n_trials)
        save_and_copy(killed=n_trials == 5)
    again = DRESearch()
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        again.restore_from_dir(str(storage))
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "cannot be read" in caplog.text and len(warnings) == 1
    assert trials(again) == trials(search)[:4]
    # Ray knows the trial that the search has forgotten, and says how it goes. Once is enough.
    last = {**result(mixed_value(configs[0])), "config": configs[0]}
    again.on_trial_result("t5", last)
    assert states(again) == ["complete"] * 4 + ["running"]
    for _ in range(2):
        again.on_trial_complete("t5", {**last, "done": True})
    assert [{**trial.configuration, "constant": 7} for trial in trials(again)] == [
        {**trial.configuration, "constant": 7} for trial in trials(search)
    ]
    assert states(again) == ["complete"] * 5
    assert trials(again)[4].value == trials(search)[4].value

    caplog.clear()
    again.save_to_dir(str(staging), session_str="tomorrow")
    (file,) = staging.glob("*tomorrow*")
    (storage / file.name).write_bytes(file.read_bytes())
    newest = DRESearch()
    newest.restore_from_dir(str(storage))
    assert len(trials(newest)) == 5 and not caplog.records  # an old torn file worries nobody
    with pytest.raises(RuntimeError, match="no state of a search"):
        DRESearch().restore_from_dir(str(tmp_path))


def test_trials_that_were_forgotten_keep_their_constraints_and_their_ends() -> None:
    search = tiny_search(
        space=SPACE, metric="loss", mode="min", constraints={"memory": 10.0}, n_startup_trials=99
    )
    configs = [{"x": 0.1 * n, "n": {"z": 1}, "constant": 7} for n in range(1, 6)]
    search.on_trial_complete("large", {**result(-5.0), "memory": 1000.0, "config": configs[0]})
    for iteration in (1, 2):  # one of 2 iterations, which goes on to the third
        search.on_trial_result("long", {**result(1.0, iteration), "config": configs[1]})
    search.on_trial_result("long", {**result(0.5, 3), "config": configs[1]})
    search.on_trial_complete("long", {**result(0.5, 3), "config": configs[1]})
    search.on_trial_result("stopped", {**result(0.1, 1), "config": configs[2]})
    search.on_trial_complete("stopped", {**result(0.1, 2), "config": configs[2]})
    search.on_trial_complete("crashed", {"config": configs[3]}, error=True)
    assert trials(search)[0].constraints == {"memory": 990.0}
    assert states(search)[1:] == ["complete", "pruned", "failed"]
    search.on_trial_complete("nothing", None, error=True)
    assert len(trials(search)) == 4


def test_the_newest_session_of_a_folder_counts(tmp_path: Path) -> None:
    """An experiment of the same name was run before, and saved more often."""
    first, second = (tiny_search(space=SPACE, metric="loss", mode="min", seed=s) for s in (0, 1))
    for n in range(5):
        run(first, 1, lambda config: config["x"], first=n)
        first.save_to_dir(str(tmp_path), session_str="2026-01-01_00-00-00")
    run(second, 2, lambda config: config["x"])
    second.save_to_dir(str(tmp_path), session_str="2026-01-02_00-00-00")
    assert len(list(tmp_path.iterdir())) == 2  # and nobody deletes what others have saved
    again = DRESearch()
    again.restore_from_dir(str(tmp_path))
    assert trials(again) == trials(second)


def test_an_unknown_trial_that_does_not_fit_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    search = tiny_search(space=MIXED_SPACE, metric="loss", mode="min")
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        for name in ("other", "another"):
            search.on_trial_complete(name, {**result(1.0), "config": {"y": 1}})
    assert "Nothing is learnt of trial other" in caplog.text and len(caplog.records) == 1
    assert not trials(search)


def test_functions_to_choose_from_survive() -> None:
    space = {"f": tune.choice([len, abs, lambda x: x]), "x": tune.uniform(0, 1), "g": max}
    search = tiny_search(space=space, metric="loss", mode="min")
    run(search, 6, lambda config: config["x"])
    again = cloudpickle.loads(cloudpickle.dumps(search))
    for one in (search, again):
        one.on_trial_complete("none")
    ours, theirs = run(search, 4, lambda c: c["x"]), run(again, 4, lambda c: c["x"])
    assert [config["x"] for config in ours] == [config["x"] for config in theirs]
    assert all(callable(config["f"]) and config["g"] is max for config in theirs)


# ---- what past tasks taught


def past_task(name: str, best: float) -> Task:
    from dre_plugins.adapters.ray_tune.conversion import ParamSpace

    space = ParamSpace.of(SPACE).space
    rng = np.random.default_rng(0)
    configurations = [{"x": float(rng.random()), "n/z": int(rng.integers(5))} for _ in range(30)]
    return Task.from_trials(
        name,
        space,
        [
            Trial(one, TrialState.COMPLETE, -((one["x"] - best) ** 2) - one["n/z"])
            for one in configurations
        ],
    )


def test_past_results_teach_the_first_trial() -> None:
    past = MetaDataset.of([past_task("a", 0.8), past_task("b", 0.82), past_task("c", 0.78)])
    search = begun(past_results=past, settings=Settings(preset="default"), n_startup_trials=None)
    (config,) = run(search, 1, lambda config: config["x"])
    assert search.stats == {"suggestions": 1, "prior": 1}
    assert abs(config["x"] - 0.8) < 0.25 and config["n"]["z"] <= 1


def test_a_prior_by_name_and_one_that_does_not_fit() -> None:
    space = {"eta": tune.loguniform(1e-3, 1), "max_depth": tune.randint(1, 12), "gamma": 0.0}
    search = tiny_search(
        space=space, metric="loss", mode="min", prior="xgboost", n_startup_trials=0
    )
    assert isinstance(search.suggest("a"), dict)
    assert search.stats == {"suggestions": 1, "prior": 1}
    with pytest.raises(ValueError, match="in common"):
        tiny_search(space=SMALL_SPACE, metric="loss", mode="min", prior="xgboost")


# ---- imports


def test_importing_it_loads_neither_torch_nor_another_framework() -> None:
    code = (
        "import sys, dre_plugins.adapters.ray_tune as a; a.DRESearch();"
        "print(sorted({'torch', 'optuna', 'syne_tune'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_missing_ray_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "try:\n    import dre_plugins.adapters.ray_tune\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dre-plugins[ray]'" in done.stdout
