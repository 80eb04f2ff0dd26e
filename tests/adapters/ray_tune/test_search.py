"""`DRESearch` by itself, called as Ray Tune calls it; no cluster."""

import logging
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray import cloudpickle, tune
from ray.tune.search import Searcher
from ray_tune_worker import (
    MIXED_SPACE,
    SMALL_SPACE,
    SPACE,
    begun,
    hidden,
    result,
    run,
    states,
    tiny_search,
    trials,
)

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend.explanation import Explanation

PLAIN = tune.uniform(0, 1)

# ---- the space


def test_functions_to_choose_from_survive() -> None:
    space = {"f": tune.choice([len, abs, lambda x: x]), "x": tune.uniform(0, 1), "g": max}
    search = tiny_search(space=space, metric="loss", mode="min")
    run(search, 6, lambda config: config["x"])
    search.on_trial_complete("none")
    again = cloudpickle.loads(cloudpickle.dumps(search))
    ours, theirs = (run(each, 4, lambda c: c["x"]) for each in (search, again))
    assert [config["x"] for config in ours] == [config["x"] for config in theirs]
    assert all(callable(config["f"]) and config["g"] is max for config in theirs)


def test_a_state_before_the_set_up_keeps_points_and_seed() -> None:
    objective: dict[str, Any] = {"metric": "loss", "mode": "max", "n_startup_trials": 2}
    new = partial(tiny_search, points_to_evaluate=[{"x": 0.5}], seed=5, **objective)
    again = DRESearch()
    again.set_state(new().get_state())
    expected = new()
    for search in (again, expected):
        search.set_search_properties(None, None, SPACE)
    assert run(again, 5, lambda c: c["x"]) == run(expected, 5, lambda c: c["x"])


def test_metric_and_mode_may_be_given_in_either_place() -> None:
    for arguments, given in [
        ({}, ("loss", "max")),
        ({"metric": "loss"}, ("loss", "max")),
        ({"metric": "loss"}, (None, "max")),
        ({"mode": "max"}, ("loss", None)),
        ({"metric": "loss", "mode": "max"}, (None, None)),
    ]:
        search = tiny_search(**arguments)
        assert search.set_search_properties(*given, SPACE)
        assert (search.metric, search.mode) == ("loss", "max")
    search = tiny_search(space=SPACE, metric="loss", mode="max")
    assert search.set_search_properties("loss", "max", {"constant": 7, "other": 8})
    search = tiny_search()
    search.set_search_properties(None, "min", SPACE)
    assert search.metric == "_metric"  # the anonymous one
    search = tiny_search(SPACE, metric=("a", "b"), mode=("min", "max"))
    assert search.set_search_properties(("a", "b"), ["min", "max"], {"constant": 7})
    assert search.study.directions == ("minimize", "maximize")


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
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
def test_a_wrong_objective_is_refused_at_set_up(arguments, given, message) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_search(**arguments).set_search_properties(*given, SPACE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": ["a", "b"], "mode": ["min", "up"]}, "mode.*'up'"),
        ({"metric": ["a", 2], "mode": ["min", "max"]}, "metric.*2"),
        ({"constraints": {"size": "small"}}, "constraints.*'size'.*'small'"),
        ({"mode": "up"}, "mode.*'up'"),
        ({"metric": 3}, "metric.*3"),
        ({"seed": -1}, "seed.*-1"),
        ({"space": [1]}, r"space must be a dictionary.*\[1\]"),
        ({"points_to_evaluate": {"x": 1}}, "points_to_evaluate must be a list"),
        ({"points_to_evaluate": [3]}, r"points_to_evaluate.*\[3\]"),
        ({"points_to_evaluate": [{"x": 1}], "evaluated_rewards": [1, 2]}, "1 points.*got 2"),
        ({"evaluated_rewards": 0.5}, "evaluated_rewards must be a list.*got 0.5"),
        ({"evaluated_rewards": [1]}, "0 points_to_evaluate, got 1"),
        (
            {"points_to_evaluate": [{"x": 1}] * 2, "evaluated_rewards": [None, "a"]},
            r"evaluated_rewards must be numbers, or None or NaN .*got 'a'",
        ),
        ({"prior": "xgboost", "past_results": "."}, "prior and past_results"),
        ({"past_results": 3}, "results has 3; give a ResultGrid"),
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


def test_points_are_run_first_and_in_order_with_one_warning_of_those_out_of_range(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    points = [
        {"x": 0.25, "n": {"z": 3}},
        {"x": 0.5, "n/z": 2, "constant": 7},
        {"n": {"z": 1}},
        {"x": 0.75},
        {"x": 7.0, "n/z": 4},  # out of range
        {"x": 8.0},
    ]
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        search = begun(points_to_evaluate=points, memory=tmp_path)
        configs = run(search, 7, lambda config: config["x"])
    first, second, third, fourth, fifth, _, last = configs
    assert first == {"x": 0.25, "n": {"z": 3}, "constant": 7}
    assert second == {"x": 0.5, "n": {"z": 2}, "constant": 7}
    assert third["n"] == {"z": 1} and 0 <= third["x"] <= 1
    assert fourth["x"] == 0.75 and 0 <= fourth["n"]["z"] < 5
    assert fifth == {"x": 7.0, "n": {"z": 4}, "constant": 7}
    assert 0 <= last["x"] <= 1
    assert search.stats["enqueued"] == 6
    assert trials(search)[4].value == 7.0
    assert len(caplog.records) == 1 and "x=7.0" in caplog.text
    assert "used as it is" in caplog.text


@pytest.mark.parametrize("has_memory", [False, True])  # one that is read when a trial begins
def test_unknown_points_are_refused_at_set_up(tmp_path: Path, has_memory: bool) -> None:
    memory = tmp_path if has_memory else False
    message, whole = r"no parameter 'y'.*\['x', 'n', 'constant'\]", {"x": 0.5, "n/z": 1, "y": 1}
    with pytest.raises(ValueError, match=message):
        begun(points_to_evaluate=[{"y": 1}], memory=memory)
    with pytest.raises(ValueError, match=message):
        begun(points_to_evaluate=[whole], evaluated_rewards=[1.0], memory=memory)
    with pytest.raises(ValueError, match=message):
        begun(memory=memory).add_evaluated_point(whole, 1.0)


def test_evaluated_points_are_learnt_from_and_not_run() -> None:
    points = [{"x": i / 4, "n": {"z": i}, "constant": 7} for i in range(4)]
    search = begun(points_to_evaluate=points, evaluated_rewards=[3.0, math.nan, None, 0.5])
    assert states(search) == ["complete", "failed", "failed", "complete"]
    assert [trial.value for trial in trials(search)] == [3.0, None, None, 0.5]
    run(search, 1, lambda config: config["x"])
    assert search.stats == {"suggestions": 1, "model": 1}


@pytest.mark.parametrize("space", [None, {name: SPACE[name] for name in ("x", "n")}])
def test_evaluated_points_may_come_before_and_after_the_set_up(space: Any) -> None:
    rule, points = (lambda config: config["constant"] == 7), [{"x": 0.5, "constant": 7}]
    search = tiny_search(space, mode="max", valid=rule, points_to_evaluate=points)
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
    with pytest.raises(ValueError, match=r"value must be numbers.*got 'high'"):
        search.add_evaluated_point({"x": 0.5, "n/z": 1}, "high")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"lacks.*n/z"):
        search.add_evaluated_point({"x": 0.5}, 1.0)
    with pytest.raises(ValueError, match=r"parameters must be a dictionary .* got None"):
        search.add_evaluated_point(None, 1.0)  # type: ignore[arg-type]


# ---- direction, duplicates, exhaustion


def test_suggestions_depend_on_the_seed_only() -> None:
    assert run(begun(MIXED_SPACE), 9) == run(begun(MIXED_SPACE), 9)
    assert run(begun(MIXED_SPACE), 2) != run(begun(MIXED_SPACE, seed=1), 2)
    assert run(begun(MIXED_SPACE, seed=None), 2) != run(begun(MIXED_SPACE, seed=None), 2)
    search = begun()  # and on the id of a trial
    assert search.suggest("a") == search.suggest("a") != search.suggest("b")


def test_a_finite_space_ends_the_search_when_it_is_used_up(caplog) -> None:
    caplog.set_level(logging.INFO, logger="ray.tune.dre_plugins")
    search = begun(SMALL_SPACE)
    configs = run(search, 18, lambda config: config["y"])
    assert len({(config["x"], config["y"]) for config in configs}) == 18
    assert "no more trials" not in caplog.text
    assert search.suggest("one more") == Searcher.FINISHED
    assert "Every configuration was tried, so that no more trials begin." in caplog.text
    assert search.suggest("another") == Searcher.FINISHED


def test_a_point_that_is_given_twice_does_not_end_the_search() -> None:
    points = [{"x": "a", "y": 0}] * 3
    configs = run(begun(SMALL_SPACE, points_to_evaluate=points), 20, lambda config: config["y"])
    assert len({(config["x"], config["y"]) for config in configs}) == 18


def test_a_rule_is_asked_about_nested_choices_as_trials_get_them() -> None:
    def is_deep_or_slow(config: dict[str, Any]) -> bool:
        if config["kind"]["name"] == "a":
            return config["kind"]["depth"] > 6
        return config["rate"] <= config["kind"]["share"]

    configs = run(begun(MIXED_SPACE, valid=is_deep_or_slow), 16)
    assert all(map(is_deep_or_slow, configs))
    assert {config["kind"]["name"] for config in configs} == {"a", "b"}


def test_a_rule_on_what_a_tuner_hides_is_refused() -> None:
    space = {
        "batch": tune.choice(np.array([16, 32])),
        "net": {"act": tune.choice([{"name": "a", "f": abs}, {"name": "b", "p": PLAIN}]), "n": 1},
        "limit": [np.float32(0.5)],
        "drawn": tune.sample_from(lambda config: 1),
        "x": PLAIN,
    }

    def valid(config: dict[str, Any]) -> bool:
        return bool(config["batch"] != 16)

    message = r"valid must be left out, or \['batch', 'net/act', 'limit'\] .*\(space=…\).*got <f"
    for arguments in ({}, {"past_results": "not read yet"}):
        search = tiny_search(valid=valid, **arguments)
        with pytest.raises(ValueError, match=message):
            search.set_search_properties("loss", "min", hidden(space))
    with pytest.raises(ValueError, match=message):
        tiny_search(hidden(space), metric="loss", mode="min", valid=valid)
    del space["drawn"]
    search = tiny_search(space, metric="loss", mode="min", valid=valid)
    assert all(map(valid, run(search, 6, lambda config: config["x"])))
    search = tiny_search(valid=lambda config: config["x"] < 0.5)
    drawn = {"x": PLAIN, "drawn": tune.sample_from(lambda config: 1)}
    assert search.set_search_properties("loss", "min", hidden(drawn))


# ---- what past tasks taught


def test_a_prior_by_name_and_one_that_does_not_fit() -> None:
    space = {"eta": tune.loguniform(1e-3, 1), "max_depth": tune.randint(1, 12), "gamma": 0.0}
    search = tiny_search(
        space=space, metric="loss", mode="min", prior="xgboost", n_startup_trials=0
    )
    assert isinstance(search.suggest("a"), dict)
    assert search.stats == {"suggestions": 1, "prior": 1}
    with pytest.raises(ValueError, match="in common"):
        tiny_search(space=SMALL_SPACE, metric="loss", mode="min", prior="xgboost")


# ---- where configurations come from


def test_a_search_that_was_restored_explains_its_trials_as_before(tmp_path: Path) -> None:
    search = begun()
    run(search, 6, lambda config: config["x"])
    search.suggest("running")
    search.save_to_dir(str(tmp_path))
    restored = DRESearch()
    restored.restore_from_dir(str(tmp_path))
    for trial_id in [*(f"t{number}" for number in range(6)), "running"]:
        assert restored.explain(trial_id) == search.explain(trial_id)
    # It began after the state was saved.
    config = {"x": 0.5, "n": {"z": 1}, "constant": 7}
    restored.on_trial_result(trial_id="later", result=result(1.0, config=config))
    restored.on_trial_result(trial_id="foreign", result=result(1.0, config={"z": 1}))
    assert restored.explain("later") == restored.explain("foreign") == Explanation("unknown")
    assert restored.explain("t5").source == "model"


def test_a_trial_that_there_is_not_cannot_be_explained() -> None:
    search = begun()
    run(search, 1, lambda config: config["x"])
    for wrong in ("t1", ["t0"]):
        with pytest.raises(ValueError, match="trial_id must be that of a trial of this search"):
            search.explain(wrong)
    with pytest.raises(ValueError, match=r"has not begun here.*restore_from_dir"):
        _ = DRESearch().study
