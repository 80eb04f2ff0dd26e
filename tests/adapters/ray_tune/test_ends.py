"""How trials of Ray Tune end, and begin again."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.tune")

from presets import TINY
from ray import tune

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend import Trial
from dre_plugins.recommend.settings import Settings

pytestmark = pytest.mark.ray

SPACE = {"x": tune.uniform(0.0, 1.0), "n": tune.randint(0, 5)}


def search_of(**arguments: Any) -> DRESearch:
    options = {
        "metric": "loss",
        "mode": "min",
        "seed": 0,
        "n_startup_trials": 4,
        "settings": Settings(preset=TINY),
    }
    return DRESearch(**{**options, **arguments})


def report(iteration: int, loss: float = 1.0, **others: Any) -> dict[str, Any]:
    times = {"training_iteration": iteration, "time_total_s": float(iteration)}
    return {**times, "loss": loss, **others}


def run(search: DRESearch, trial_id: str, n: int, **others: Any) -> None:
    """Run a trial that something ends at iteration n, whose result Ray keeps to itself."""
    search.suggest(trial_id)
    for iteration in range(1, n):
        search.on_trial_result(trial_id, report(iteration, 1.0 / iteration))
    search.on_trial_complete(trial_id, report(n, 1.0 / n, done=True, **others))


def states(search: DRESearch) -> list[str]:
    return [trial.state.value for trial in trials(search)]


def trials(search: DRESearch) -> tuple[Trial, ...]:
    assert search._study is not None
    return search._study.trials


def test_a_trial_that_a_scheduler_stops_is_pruned() -> None:
    search = search_of(space=SPACE)
    run(search, "a", 3)
    run(search, "b", 9)
    assert states(search) == ["pruned", "complete"]


@pytest.mark.parametrize("limit", [{"budget": 10}, {"budget": 10, "loss": 5}])
def test_a_limit_of_the_run_completes_a_trial(limit: dict[str, float]) -> None:
    search = search_of()
    search.set_search_properties(None, None, SPACE, stop=limit, num_samples=4)
    run(search, "a", 3, budget=10)
    run(search, "b", 9, budget=11)
    assert states(search) == ["complete", "complete"]
    run(search, "c", 3, budget=9)
    assert states(search)[2] == "pruned"


def test_trials_that_end_themselves_can_be_complete() -> None:
    search = search_of(space=SPACE, stopped="complete")
    run(search, "a", 3)
    run(search, "b", 9)
    assert states(search) == ["complete", "complete"]
    with pytest.raises(ValueError, match=r"stopped must be .* got 'never'"):
        search_of(stopped="never")


@pytest.mark.parametrize("last", [None, report(2, -99.0), report(1, -99.0)])
@pytest.mark.parametrize("metric", ["loss", ["loss", "size"]])
def test_an_errored_trial_has_failed_whatever_it_reported(metric: Any, last: Any) -> None:
    mode = "min" if metric == "loss" else ["min", "min"]
    search = search_of(space=SPACE, metric=metric, mode=mode, constraints={"memory": 1.0})
    search.suggest("a")
    search.on_trial_result("a", report(1, -99.0, size=-99.0, memory=0.5))
    result = last and {**last, "size": -99.0, "memory": 0.5}
    search.on_trial_complete("a", result, error=True)
    (trial,) = trials(search)
    assert (trial.state.value, trial.value, trial.objectives) == ("failed", None, ())
    assert np.isnan(trial.constraints["memory"])


def test_a_crashed_trial_that_runs_again_counts_again() -> None:
    search = search_of(space=SPACE)
    config = search.suggest("a")
    search.on_trial_result("a", report(1, 5.0))
    search.on_trial_complete("a", None, error=True)
    assert states(search) == ["failed"]
    search.on_trial_result("a", report(1, 4.0))
    search.on_trial_complete("a", report(1, 4.0))
    (trial,) = trials(search)
    assert (trial.state.value, trial.value, trial.configuration) == ("complete", 4.0, config)


def test_what_was_reported_before_a_retry_is_forgotten() -> None:
    search = search_of(space=SPACE)
    search.suggest("a")
    for iteration in range(1, 6):
        search.on_trial_result("a", report(iteration, 0.1))
    search.on_trial_result("a", report(1, 9.0))
    search.on_trial_complete("a", report(2, 8.0, done=True))
    (trial,) = trials(search)
    assert trial.rungs == {1.0: 9.0, 2.0: 8.0} and trial.value == 8.0


def test_a_missing_metric_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    search = search_of(space=SPACE)
    for number, result in enumerate([{"score": 1.0}, {"loss": "low"}, {"loss": [1.0, 2.0]}]):
        search.suggest(str(number))
        search.on_trial_complete(str(number), {"training_iteration": 1, **result})
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1 and "'loss'" in warnings[0] and "score" in warnings[0]
    assert states(search) == ["pruned", "failed", "failed"]


def test_points_are_cast_to_what_a_trial_gets() -> None:
    points = [{"x": 1, "n": 2.0}, {"x": np.float64(0.5), "n": np.int64(3)}]
    search = search_of(space=SPACE, points_to_evaluate=points)
    asked = [search.suggest(str(number)) for number in range(2)]
    assert asked == [{"x": 1.0, "n": 2}, {"x": 0.5, "n": 3}]
    assert all(type(config["x"]) is float and type(config["n"]) is int for config in asked)


def test_hidden_objects_come_with_a_hint() -> None:
    hidden = {"act": tune.choice([("__ref_ph", "1"), ("__ref_ph", "2")])}
    search = search_of(points_to_evaluate=[{"act": len}])
    with pytest.raises(ValueError, match=r"'act'.*DRESearch\(space=…\)"):
        search.set_search_properties(None, None, hidden)


@pytest.mark.parametrize("seed", [1.5, -1, "a", True])
def test_a_wrong_seed_is_named(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a non-negative integer"):
        search_of(seed=seed)


def past_experiment(folder: Path) -> Path:
    """Write what Ray leaves behind of an experiment."""
    rng = np.random.default_rng(0)
    for number, x in enumerate(rng.random(12)):
        trial = folder / "past" / f"trial_{number}"
        trial.mkdir(parents=True)
        (trial / "params.json").write_text(json.dumps({"x": x, "n": number % 5}))
        result = {"training_iteration": 1, "loss": (x - 0.7) ** 2, "done": True}
        (trial / "result.json").write_text(json.dumps(result) + "\n")
    return folder / "past"


def test_what_was_learnt_from_past_results_outlives_them(tmp_path: Path) -> None:
    """`Tuner.restore` sets the search properties before it restores the state."""
    folder = past_experiment(tmp_path)
    search = search_of(past_results=[str(folder)], n_startup_trials=None)
    search.set_search_properties(None, None, SPACE)
    search.suggest("a")
    assert search.stats["prior"] == 1
    search.save(str(tmp_path / "state"))
    other = search_of(past_results=[str(folder)], n_startup_trials=None)
    for file in sorted(folder.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    folder.rmdir()
    other.set_search_properties(None, None, SPACE)
    other.restore(str(tmp_path / "state"))
    assert other.suggest("b") == search.suggest("b")
    with pytest.raises(ValueError, match="There is no folder"):
        fresh = search_of(past_results=[str(folder)], n_startup_trials=None)
        fresh.set_search_properties(None, None, SPACE)
        fresh.suggest("a")
