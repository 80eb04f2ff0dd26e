"""What results of Ray Tune teach: how its trials report, end, and begin again."""

import json
import logging
import math
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray_tune_worker as worker
from ray import tune
from ray.tune.search import ConcurrencyLimiter, Repeater

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.adapters.ray_tune.sources import metadata_from_results
from dre_plugins.recommend.trials import Trial, TrialState

PLAIN = {"x": tune.uniform(0.0, 1.0), "n": tune.randint(0, 5)}
OF_PRIOR: dict[str, Any] = {"n_startup_trials": None}  # a prior suggests from the start
search_of = partial(worker.tiny_search, metric="loss", mode="min")


def report(iteration: int, loss: float = 1.0, **others: Any) -> dict[str, Any]:
    return worker.result(loss, iteration, **others)


def end_at(search: DRESearch, trial_id: str, n: int, **others: Any) -> None:
    """Run a trial that a scheduler ends at iteration n; Ray does not report that result."""
    search.suggest(trial_id)
    for iteration in range(1, n):
        search.on_trial_result(trial_id, report(iteration, 1.0 / iteration))
    search.on_trial_complete(trial_id, report(n, 1.0 / n, done=True, **others))


@pytest.mark.parametrize("limit", [{"budget": 10}, {"budget": 10, "loss": 5}])
def test_a_limit_of_the_run_completes_a_trial(limit: dict[str, float]) -> None:
    search = search_of()
    search.set_search_properties(None, None, PLAIN, stop=limit, num_samples=4)
    end_at(search, "a", 3, budget=10)
    end_at(search, "b", 9, budget=11)
    assert worker.states(search) == ["complete", "complete"]
    end_at(search, "c", 3, budget=9)
    assert worker.states(search)[2] == "pruned"


def test_trials_that_end_themselves_can_be_complete() -> None:
    search = search_of(space=PLAIN, stopped="complete")
    end_at(search, "a", 3)
    end_at(search, "b", 9)
    assert worker.states(search) == ["complete", "complete"]
    with pytest.raises(ValueError, match=r"stopped must be .* got 'never'"):
        search_of(stopped="never")


def test_the_last_values_of_a_stopped_trial_count_for_several_objectives() -> None:
    search = search_of(space=PLAIN, metric=["loss", "size"], mode=["min", "max"])
    for trial_id, last in (("stopped", 1), ("whole", 3)):
        search.suggest(trial_id)
        for iteration in range(1, last):
            search.on_trial_result(trial_id, report(iteration, 9.0, size=9.0))
        search.on_trial_complete(trial_id, report(last, float(last), size=2.0))
    assert [trial.objectives for trial in worker.trials(search)] == [(1.0, 2.0), (3.0, 2.0)]
    assert worker.states(search) == ["complete", "complete"]


@pytest.mark.parametrize("last", [None, report(2, -99.0), report(1, -99.0)])
@pytest.mark.parametrize("metric", ["loss", ["loss", "size"]])
def test_an_errored_trial_has_failed_whatever_it_reported(metric: Any, last: Any) -> None:
    mode = "min" if metric == "loss" else ["min", "min"]
    search = search_of(space=PLAIN, metric=metric, mode=mode, constraints={"memory": 1.0})
    search.suggest("a")
    search.on_trial_result("a", report(1, -99.0, size=-99.0, memory=0.5))
    result = last and {**last, "size": -99.0, "memory": 0.5}
    search.on_trial_complete("a", result, error=True)
    (trial,) = worker.trials(search)
    assert (trial.state.value, trial.value, trial.objectives) == ("failed", None, ())
    assert np.isnan(trial.constraints["memory"])


def test_a_crashed_trial_that_runs_again_counts_again() -> None:
    search = search_of(space=PLAIN)
    config = search.suggest("a")
    search.on_trial_result("a", report(1, 5.0))
    search.on_trial_complete("a", None, error=True)
    assert worker.states(search) == ["failed"]
    search.on_trial_result("a", report(1, 4.0))
    search.on_trial_complete("a", report(1, 4.0))
    (trial,) = worker.trials(search)
    assert (trial.state.value, trial.value, trial.configuration) == ("complete", 4.0, config)


def test_a_crashed_trial_that_runs_again_under_a_new_id_counts_again() -> None:
    """`Tuner.restore(restart_errored=True)` gives trials new ids, and none is suggested again."""
    space = {**worker.MIXED_SPACE, "kept": (1, 2)}
    search = search_of(space=space, points_to_evaluate=[{"rate": 0.5}, {"rate": 0.5}])
    configs = [search.suggest(name) for name in "abc"]
    for name in "abc":
        search.on_trial_complete(name, None, error=True)
    for name, config in [("new", configs[1]), ("other", {**configs[2], "rate": 0.125})]:
        search.on_trial_result(name, worker.result(4.0, config=config))
        search.on_trial_complete(name, worker.result(4.0, config=config))
    assert worker.states(search) == ["failed", "complete", "failed", "complete"]
    assert [search.study.trials[number].value for number in (1, 3)] == [4.0, 4.0]
    search.on_trial_complete("again", None, error=True)
    assert len(search.study.trials) == 4


@pytest.mark.parametrize("first", [1, 3])  # begun anew, or from a checkpoint of iteration 2
@pytest.mark.parametrize("has_metric", [False, True])
def test_what_was_reported_before_a_retry_is_forgotten(first: int, has_metric: bool) -> None:
    search = search_of(space=PLAIN)
    search.suggest("a")
    for iteration in range(1, 6):
        search.on_trial_result("a", report(iteration, 0.1))
    again = report(first, 9.0) if has_metric else {"training_iteration": first}
    search.on_trial_result("a", again)
    search.on_trial_complete("a", report(first + 1, 8.0, done=True))
    (trial,) = worker.trials(search)
    reported = [0.1] * (first - 1) + [9.0 if has_metric else None, 8.0]
    assert trial.rungs == {i: value for i, value in enumerate(reported, 1) if value is not None}
    assert trial.value == 8.0


def test_a_missing_metric_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    search = search_of(space=PLAIN)
    reports = [{"score": 1.0, 1: 2.0}, {"loss": "low"}, {"loss": [1.0, 2.0]}]  # a key is no text
    for number, values in enumerate(reports):
        search.suggest(str(number))
        rays_own = {"training_iteration": 1, "pid": 3, "config/x": 0.5}
        search.on_trial_complete(str(number), rays_own | values)
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1 and "'loss'" in warnings[0] and "['1', 'score']" in warnings[0]
    assert worker.states(search) == ["pruned", "failed", "failed"]


def test_points_are_cast_to_what_a_trial_gets() -> None:
    points = [{"x": 1, "n": 2.0}, {"x": np.float64(0.5), "n": np.int64(3)}]
    search = search_of(space=PLAIN, points_to_evaluate=points)
    asked = [search.suggest(str(number)) for number in range(2)]
    assert asked == [{"x": 1.0, "n": 2}, {"x": 0.5, "n": 3}]
    assert all(type(config["x"]) is float and type(config["n"]) is int for config in asked)


def test_hidden_objects_come_with_a_hint() -> None:
    hidden = {"act": tune.choice([("__ref_ph", "1"), ("__ref_ph", "2")])}
    search = search_of(points_to_evaluate=[{"act": len}])
    with pytest.raises(ValueError, match=r"'act'.*DRESearch\(space=…\)"):
        search.set_search_properties(None, None, hidden)


@pytest.mark.parametrize("is_wanted", [False, True])
def test_choices_that_a_tuner_hides_are_named_and_no_memory_learns_them(
    is_wanted: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space = {"n": tune.choice(np.arange(3)), "m": {"f": tune.choice([abs, None])}, "data": object}
    memory = tmp_path if is_wanted else None
    search = worker.tiny_search(memory=memory)
    with caplog.at_level(logging.INFO, logger="ray.tune.dre_plugins"):
        search.set_search_properties("loss", "min", worker.hidden(space))
        worker.run(search, 3, lambda config: 1.0)
        own = search_of(space={"n": tune.choice([0, 1, 2])}, memory=memory)
        own.set_search_properties(None, None, worker.hidden({"data": object}))
    (record,) = caplog.records
    assert record.levelname == ("WARNING" if is_wanted else "INFO")
    assert "hides the choices of ['n', 'm/f']" in record.getMessage()
    assert "DRESearch(space=…)" in record.getMessage()
    assert not [*tmp_path.rglob("*.jsonl")]
    worker.run(own, 1, lambda config: 1.0)
    assert len([*tmp_path.rglob("*.jsonl")]) == is_wanted


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
    search = search_of(past_results=[str(folder)], **OF_PRIOR)
    search.set_search_properties(None, None, PLAIN)
    search.suggest("a")
    assert search.stats["past-studies"] == 1
    of_metadata = search_of(
        past_results=metadata_from_results(folder, metric="loss", mode="min"), **OF_PRIOR
    )
    of_metadata.set_search_properties(None, None, PLAIN)
    assert of_metadata.suggest("a") and of_metadata.stats["past-studies"] == 1
    search.save(str(tmp_path / "state"))
    other = search_of(past_results=[str(folder)], **OF_PRIOR)
    for file in sorted(folder.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    folder.rmdir()
    other.set_search_properties(None, None, PLAIN)
    other.restore(str(tmp_path / "state"))
    assert other.suggest("b") == search.suggest("b")
    with pytest.raises(ValueError, match=r"There is no folder.*get_results"):
        later = search_of(past_results=[str(folder)], **OF_PRIOR)
        later.set_search_properties(None, None, PLAIN)
        later.suggest("a")


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
    ids=lambda case: repr(case)[:20],
)
def test_any_value_of_the_metric_will_do(loss: Any, state: str) -> None:
    search = worker.begun()
    search.suggest("a")
    worker.complete(search, "a", loss)
    assert worker.states(search) == [state]
    worker.run(search, 8, lambda config: config["x"])
    assert search.stats["fallbacks"] == 0


def last(search: DRESearch) -> Trial:
    return worker.trials(search)[-1]


def test_a_trial_that_returns_is_complete_whatever_the_others_do() -> None:
    search = worker.begun()
    for trial_id, n in (("long", 5), ("short", 2)):
        search.suggest(trial_id)
        for iteration in range(1, n + 1):
            search.on_trial_result(trial_id, worker.result(1 / iteration, iteration))
        search.on_trial_complete(trial_id, worker.result(1 / n, n, done=True))
    assert worker.states(search) == ["complete", "complete"]
    assert last(search).value == 0.5 and last(search).rungs == {1.0: 1.0, 2.0: 0.5}


def test_a_trial_that_is_stopped_counts_by_what_it_reported() -> None:
    search = worker.begun()
    search.suggest("a")  # stopped by a scheduler: the last result comes with the end only
    search.on_trial_result("a", worker.result(3.0, 1))
    search.on_trial_complete("a", worker.result(2.0, 2, done=True))
    assert last(search).state is TrialState.COMPLETE and last(search).value == 2.0
    search.suggest("b")
    search.on_trial_complete("b", worker.result(4.0, 1, done=True))
    assert last(search).state is TrialState.PRUNED and last(search).rungs == {1.0: 4.0}
    search.suggest("c")  # stopped while it is paused
    search.on_trial_result("c", worker.result(4.0, 1))
    search.on_trial_complete("c")
    assert last(search).state is TrialState.PRUNED
    search.suggest("d")  # began anew after a pause and was stopped at the same iteration
    search.on_trial_result("d", worker.result(4.0, 1))
    search.on_trial_complete("d", {**worker.result(4.0, 1, done=True), "time_total_s": 9.0})
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
    search = worker.begun()
    for trial_id in ("silent", "reported"):
        search.suggest(trial_id)
        if trial_id == "reported":
            search.on_trial_result(trial_id, worker.result(1.0))
        search.on_trial_complete(trial_id=trial_id, **end)
    assert worker.trials(search)[0].value is None and not worker.trials(search)[0].rungs
    assert last(search).value == (1.0 if is_counted else None)
    worker.run(search, 6, lambda config: config["x"])
    assert search.stats["fallbacks"] == 0


def test_results_without_the_metric_or_an_iteration_are_passed_over() -> None:
    search = worker.begun()
    search.suggest("a")
    for result in ({}, {"training_iteration": 1}, {"loss": 2.0}):
        search.on_trial_result("a", result)
    assert last(search).rungs == {}
    search.on_trial_complete("a", {"loss": 3.0})  # as a Repeater ends
    assert last(search).value == 3.0


def test_unknown_and_repeated_trials_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    search = worker.begun()
    search.suggest("a")
    worker.complete(search, "a", 1.0)
    with caplog.at_level(logging.DEBUG, logger="ray.tune.dre_plugins"):
        worker.complete(search, "a", 2.0)
        worker.complete(search, "unknown", 2.0)
        search.on_trial_complete("unknown", error=True)
        DRESearch().on_trial_complete("unknown", error=True)
    assert [trial.value for trial in worker.trials(search)] == [1.0]
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_concurrency_limiter_around_it(is_batch: bool) -> None:
    limiter = ConcurrencyLimiter(worker.tiny_search(), max_concurrent=3, batch=is_batch)
    assert limiter.set_search_properties("loss", "min", worker.MIXED_SPACE)
    number = 0
    for _ in range(4):
        batch = []
        while (config := limiter.suggest(f"t{number}")) is not None:
            batch.append((f"t{number}", config))
            number += 1
        assert len(batch) == 3
        for trial_id, config in batch:
            worker.complete(limiter, trial_id, worker.mixed_value(config))
    limiter.on_pause("t0")
    limiter.on_unpause("t0")
    assert worker.states(limiter.searcher) == ["complete"] * 12


def test_a_repeater_around_it_hands_on_means() -> None:
    repeater = Repeater(worker.tiny_search(), repeat=2)
    assert repeater.set_search_properties("loss", "min", worker.SPACE)
    for number in range(8):
        assert repeater.suggest(f"t{number}") is not None
    for number in range(8):
        is_crash = number in (3, 4, 5)
        outcome = None if is_crash else worker.result(float(number))
        # Of two crashes there is no mean.
        heard = pytest.warns(RuntimeWarning, match="empty slice") if number == 5 else nullcontext()
        with heard:
            repeater.on_trial_complete(f"t{number}", outcome, error=is_crash)
    assert [trial.value for trial in worker.trials(repeater.searcher)] == [0.5, 2.0, None, 6.5]
    assert worker.states(repeater.searcher) == ["complete", "complete", "failed", "complete"]


def test_an_unknown_trial_that_does_not_fit_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    search = worker.tiny_search(space=worker.MIXED_SPACE, metric="loss", mode="min")
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        for name in ("other", "another"):
            search.on_trial_complete(name, worker.result(1.0, config={"y": 1}))
    assert "Nothing is learnt from trial other" in caplog.text and len(caplog.records) == 1
    assert not worker.trials(search)


def test_trials_that_were_forgotten_keep_their_constraints_and_their_ends() -> None:
    search = worker.begun(constraints={"memory": 10.0}, n_startup_trials=99)
    configs = [{"x": 0.1 * n, "n": {"z": 1}, "constant": 7} for n in range(1, 6)]
    large = worker.result(-5.0, memory=1000.0, config=configs[0])
    search.on_trial_complete("large", large)
    for iteration in (1, 2):  # one of 2 iterations, which goes on to the third
        search.on_trial_result("long", worker.result(1.0, iteration, config=configs[1]))
    search.on_trial_result("long", worker.result(0.5, 3, config=configs[1]))
    search.on_trial_complete("long", worker.result(0.5, 3, config=configs[1]))
    search.on_trial_result("stopped", worker.result(0.1, 1, config=configs[2]))
    search.on_trial_complete("stopped", worker.result(0.1, 2, config=configs[2]))
    search.on_trial_complete("crashed", worker.result(0.1, config=configs[3]), error=True)
    assert worker.trials(search)[0].constraints == {"memory": 990.0}
    assert worker.states(search)[1:] == ["complete", "pruned", "failed"]
    search.on_trial_complete("nothing", None, error=True)
    assert len(worker.trials(search)) == 4
