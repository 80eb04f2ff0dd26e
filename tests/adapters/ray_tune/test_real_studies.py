"""Constraints and several objectives in Ray Tune."""

import math
import pickle
from functools import partial

import pytest
from ray import tune
from ray_tune_worker import tiny_search

from dre_plugins.adapters.ray_tune import DRESearch

SPACE = {"x": tune.uniform(0.0, 1.0), "y": tune.uniform(0.0, 1.0)}
search_of = partial(tiny_search, SPACE, metric="gain", mode="max")


def run(search: DRESearch, n: int = 14) -> list[dict[str, float]]:
    """Return the configurations of a run in which each trial reports all that it has once."""
    asked = []
    for number in range(n):
        config = search.suggest(str(number))
        asked.append(config)
        search.on_trial_complete(str(number), result_of(config))
    return asked


def result_of(config: dict[str, float]) -> dict[str, float]:
    x, y = config["x"], config["y"]
    return {"gain": x + y, "size": x * x + y * y, "rate": y}


def test_limits_are_learnt_and_kept_through_pickling() -> None:
    limited = search_of(constraints={"size": 0.5, "rate": (0.1, 0.9)})
    first = run(limited, 8)
    copied = pickle.loads(pickle.dumps(limited))
    assert copied.suggest("next") == limited.suggest("next")
    assert first == run(search_of(constraints={"size": 0.5, "rate": (0.1, 0.9)}), 8)
    assert first != run(search_of(), 8)
    assert limited.stats["fallbacks"] == 0


def test_a_limit_on_what_is_not_reported_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    search = search_of(constraints={"memory": 1.0, "size": 9.0})
    run(search)
    assert caplog.text.count("trial 0 meets the constraints is unknown") == 1
    assert caplog.text.count("constraints") == 1 and "['memory']" in caplog.text
    assert search.stats["model"] == 10 and search.stats["fallbacks"] == 0


@pytest.mark.parametrize("result", [None, {}, {"gain": 1.0}, {"gain": math.nan, "size": 1.0}])
def test_a_trial_without_all_objectives_has_failed(result: dict[str, float] | None) -> None:
    search = search_of(metric=["gain", "size"], mode=["max", "min"])
    for number in range(10):
        search.suggest(str(number))
        search.on_trial_result(str(number), {"gain": 1.0, "training_iteration": 1})
        search.on_trial_complete(str(number), result, error=result is None)
    run(search, 12)
    assert search.stats["fallbacks"] == 0


def test_points_of_several_objectives_that_were_evaluated() -> None:
    search = search_of(
        metric=["gain", "size"],
        mode=["max", "min"],
        points_to_evaluate=[{"x": 0.5, "y": 0.5}, {"x": 0.75, "y": 0.5}],
        evaluated_rewards=[[1.0, 0.5], None],
    )
    search.add_evaluated_point({"x": 0.25, "y": 0.5}, [0.75, 0.3])
    assert search.suggest("0") not in ({"x": 0.5, "y": 0.5}, {"x": 0.25, "y": 0.5})
