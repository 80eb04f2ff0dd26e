"""A search that is restored beside trials of which Ray has stored less, or more, than it knows."""

import copy
import json
import logging
import os
import pickle
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import ray_tune_worker as worker
from ray import cloudpickle
from ray.tune.search import Repeater, SearchGenerator
from ray.tune.utils.serialization import TuneFunctionEncoder

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend.settings import Settings

Trials = dict[str, tuple[str, dict[str, Any], dict[str, Any]]]


def known_to_ray(n_ended: int, n_running: int) -> tuple[DRESearch, Trials]:
    """Return a search and its trials as Ray knows them: status, configuration, last result."""
    search, trials = worker.begun(worker.MIXED_SPACE), {}
    for place in range(n_ended + n_running):
        config = search.suggest(name := f"t{place}")
        assert config is not None
        trials[name] = ("RUNNING", config, {})
        if place < n_ended:
            trials[name] = ended(search, name, config)
    return search, trials


def ended(search: DRESearch | None, name: str, config: Any, value: Any = None) -> Any:
    """Let a trial end as a function does, and return what Ray knows of it then."""
    value = worker.mixed_value(config) if value is None else value
    result = {"loss": value, "training_iteration": 1, "time_total_s": 0.5}
    if search is not None:
        search.on_trial_result(name, result)
        search.on_trial_complete(name, result)
    return "TERMINATED", config, result


def stored(folder: Path, trials: Trials, search: DRESearch | None = None) -> None:
    """Write what Ray writes, and the state of a search."""
    encoded = partial(json.dumps, indent=2, cls=TuneFunctionEncoder)
    data = [
        [encoded({"trial_id": name, "status": s, "config": c}), encoded({"last_result": result})]
        for name, (s, c, result) in trials.items()
    ]
    (folder / "experiment_state-1.json").write_text(json.dumps({"trial_data": data}))
    if search is not None:
        search.save_to_dir(str(folder), session_str="1")


def restored(folder: Path, *files: Any) -> DRESearch:
    """Return a search, restored in the order of `Tuner.restore` after files are stored."""
    if files:
        stored(folder, *files)
    search = worker.begun(worker.MIXED_SPACE)
    search.restore_from_dir(str(folder))
    return search


def test_what_began_and_ended_after_the_state_is_learnt(tmp_path: Path) -> None:
    search, trials = known_to_ray(5, 2)
    search.save_to_dir(str(tmp_path), session_str="1")
    trials["t5"] = ended(search, "t5", trials["t5"][1], np.float32(1.5))  # no number of JSON
    config = search.suggest("t7")
    assert config is not None
    trials["t7"] = ended(search, "t7", config)
    trials["t8"] = ("PENDING", search.suggest("t8") or {}, {})
    again = restored(tmp_path, trials)
    assert worker.states(again) == ["complete"] * 6 + ["running", "complete", "running"]
    for trial, before in zip(again.study.trials, search.study.trials, strict=True):
        assert {**trial.configuration, "constant": 7} == {**before.configuration, "constant": 7}
        assert (trial.value, trial.rungs) == (before.value, before.rungs)
    assert again.suggest("t9") == search.suggest("t9")
    # Ray goes on with what it knows, and the end of it counts.
    ended(again, "t8", trials["t8"][1])
    assert worker.states(again)[8] == "complete"


def test_a_nested_metric_of_what_ended_after_the_state_is_learnt(tmp_path: Path) -> None:
    """Ray stores results as they were reported, and flattens them for searchers only."""
    search = worker.tiny_search(worker.MIXED_SPACE, metric="of/loss", mode="min")
    search.save_to_dir(str(tmp_path), session_str="1")
    result = {"of": {"loss": 1.5}, "training_iteration": 1, "time_total_s": 0.5}
    stored(tmp_path, {"t0": ("TERMINATED", search.suggest("t0") or {}, result)})
    again = worker.tiny_search()
    again.restore_from_dir(str(tmp_path))
    assert [trial.rungs for trial in again.study.trials] == [{1.0: 1.5}]


def test_a_trial_whose_failure_was_missed_has_failed_whatever_it_reported(tmp_path: Path) -> None:
    """Ray hands on no result of a trial that failed; what it has stored of it must not count."""
    search, trials = known_to_ray(3, 4)
    best = {"loss": -99.0, "training_iteration": 4, "time_total_s": 2.0}
    for place, name in enumerate(("t3", "t4")):  # of t3 the search has heard before
        trials[name] = ("ERROR", trials[name][1], best)
        if place == 0:
            search.on_trial_result(name, best)
    unheard, silent = ("ERROR", trials["t5"][1], best), ("ERROR", trials["t6"][1], {})
    del search._trials.numbers["t5"], search._trials.running["t5"]
    again = restored(tmp_path, {**trials, "t5": unheard, "t6": silent}, search)
    assert worker.states(again) == [
        *("complete", "complete", "complete", "failed", "failed", "running", "failed", "failed")
    ]
    assert again.study.best.value is not None and again.study.best.value > -99.0


def test_trials_stopped_with_the_experiment_count_by_their_reports(tmp_path, monkeypatch) -> None:
    """Ray does not say so to a search; one without a report is suggested to another trial.

    Nor does a `ConcurrencyLimiter` tell that what crashed and was restarted ended well, as t5.
    """
    search, trials = known_to_ray(2, 4)
    for name, iteration in (("t2", 4), ("t3", 2), ("t5", 2)):
        search.on_trial_result(name, result := worker.result(0.5, iteration))
        trials[name] = ("RUNNING", trials[name][1], result)
    monkeypatch.setattr(json, "loads", parse := Mock(side_effect=json.loads))
    stored(tmp_path, trials, search)
    assert not parse.called  # as long as a trial runs, which takes long
    assert worker.states(search) == ["complete"] * 2 + ["running"] * 4
    ours = {"of ours": {"status": "RUNNING"}}  # a constant
    over: Trials = {n: ("TERMINATED", {**c, **ours}, r) for n, (_, c, r) in trials.items()}
    over["t5"][2]["done"] = True
    again = restored(tmp_path, over)  # the state is from before
    search.save_to_dir(str(tmp_path), session_str="1")
    for ended_search in (search, again):
        assert worker.states(ended_search) == [*["complete"] * 3, "pruned", "running", "complete"]
    assert again.suggest("new") == trials["t4"][1]


def test_a_restored_failure_stays_one_until_the_trial_runs_again(tmp_path: Path) -> None:
    search, trials = known_to_ray(3, 2)
    best = {"loss": -99.0, "training_iteration": 4, "time_total_s": 2.0}
    search.on_trial_result("t3", best)
    search.on_trial_complete("t3", None, error=True)
    again = restored(tmp_path, {**trials, "t3": ("ERROR", trials["t3"][1], best)}, search)
    assert worker.states(again) == ["complete"] * 3 + ["failed", "running"]
    # Tuner.restore(restart_errored=True): it runs again, ends well, and the end was missed.
    later = ended(None, "t3", trials["t3"][1], 5.0)
    again = restored(tmp_path, {**trials, "t3": later})
    assert worker.states(again) == ["complete"] * 4 + ["running"]
    assert again.study.trials[3].value == 5.0


def test_what_ray_has_forgotten_is_suggested_once_more(tmp_path: Path) -> None:
    search, trials = known_to_ray(5, 2)
    forgotten = trials.pop("t6")
    again = restored(tmp_path, trials, search)
    assert again.suggest("t7") == forgotten[1]
    assert len(again.study.trials) == 7
    new = again.suggest("t8")
    assert len(again.study.trials) == 8 and new != forgotten[1]
    ended(again, "t7", forgotten[1])
    assert worker.states(again) == ["complete"] * 5 + ["running", "complete", "running"]
    assert again.explain("t7") == search.explain("t6")
    with pytest.raises(ValueError, match="trial_id"):
        again.explain("t6")


def test_a_trial_may_end_after_a_restart_without_reporting_again(tmp_path: Path) -> None:
    """Its function finds all done in its checkpoint, and its last report came after the state."""
    search, trials = known_to_ray(2, 2)
    search.on_trial_result("t3", worker.result(0.5, 2))
    search.save_to_dir(str(tmp_path), session_str="1")
    last = worker.result(0.5, 1)
    stored(tmp_path, {**trials, "t2": ("RUNNING", trials["t2"][1], last)})
    again = restored(tmp_path)
    again.on_trial_complete("t2", {**last, "done": True})
    assert worker.states(again) == ["complete"] * 3 + ["running"]


@pytest.mark.parametrize("status", ["RUNNING", "ERROR"])
@pytest.mark.parametrize("name", ["t4", "new"])
def test_a_search_that_knows_more_than_ray_keeps_it(name: str, status: str, tmp_path) -> None:
    """Ray runs again what it does not know to have ended, and what failed then is restarted."""
    search, trials = known_to_ray(5, 1)
    trials["t4"] = (status, trials["t4"][1], {})
    again = restored(tmp_path, trials, search)
    if status == "RUNNING":
        ended(again, "t4", trials["t4"][1], 99.0)
        again.on_trial_complete("t4", None, error=True)
    assert again.study.trials == search.study.trials
    restarted = worker.result(9.0, config=trials["t4"][1])
    again.on_trial_result(name, restarted)
    again.on_trial_complete(name, restarted)
    assert worker.states(again) == [*["complete"] * 5, "running"]
    assert again.study.trials[4].value == 9.0


@pytest.mark.parametrize("set_index", [True, False])
def test_a_repeater_restored_in_the_middle_hands_on_means(tmp_path: Path, set_index: bool) -> None:
    """It tells the mean of several trials under the name of the first, once all have ended."""
    of_user = type("OfUser", (Repeater,), {})
    searches = [worker.begun(worker.MIXED_SPACE) for _ in range(3)]
    before, again, last = (SearchGenerator(of_user(s, 2, set_index)) for s in searches)
    configs = {name: before.searcher.suggest(name) or {} for name in ("t0", "t1", "t2")}
    trials: Trials = {"t1": ("RUNNING", configs["t1"], {})}
    for name, value in (("t0", 1.0), ("t2", 5.0)):  # the other one of t2 has not begun
        trials[name] = ended(before, name, configs[name], value)
    stored(tmp_path, trials, before)
    again.restore_from_dir(str(tmp_path))
    assert again.searcher.suggest("t3") == before.searcher.suggest("t3")
    trials["t1"] = ended(again, "t1", configs["t0"], 3.0)
    again.on_trial_complete("t3", None, error=True)  # the mean of the others counts
    trials["t3"] = ("ERROR", configs["t2"], {})
    stored(tmp_path, trials, again)
    last.restore_from_dir(str(tmp_path))
    for search in searches[1:]:
        assert [trial.value for trial in worker.trials(search)] == [2.0, 5.0]


@pytest.mark.parametrize("n_known", [0, 1])
def test_points_that_ray_has_begun_are_not_given_again(tmp_path: Path, n_known: int) -> None:
    """The state is from before; what was given several times still runs as often."""
    point: dict[str, Any] = {"kind": {"name": "b", "share": 0.5}, "rate": 0.5}
    points = [point, {"rate": 0.25}, point, {}, point]
    search = worker.begun(worker.MIXED_SPACE, points_to_evaluate=points)
    begun: Trials = {}
    for place in range(3):
        if place == n_known:
            search.save_to_dir(str(tmp_path), session_str="1")
        begun[f"t{place}"] = ("RUNNING", search.suggest(f"t{place}") or {}, {})
    again = restored(tmp_path, begun)
    assert {again.explain(trial_id).source for trial_id in begun} == {"enqueued"}
    assert [again.suggest(n) for n in "abc"] == [search.suggest(n) for n in "abc"]


def test_repeats_count_where_they_may_have_been_suggested(tmp_path: Path) -> None:
    search, trials = known_to_ray(2, 1)
    search._given.options["allow_duplicates"] = True
    trials["t9"] = ended(None, "t9", trials["t0"][1], 9.0)
    assert len(restored(tmp_path, trials, search).study.trials) == len(search.study.trials) + 1


def test_a_trial_that_took_over_after_the_state_is_known_by_its_configuration(tmp_path) -> None:
    search, trials = known_to_ray(3, 1)
    trials["t9"] = trials.pop("t3")  # Ray has forgotten t3, whose configuration was given again
    again = restored(tmp_path, trials, search)
    assert again.study.trials == search.study.trials
    ended(again, "t9", trials["t9"][1])
    assert worker.states(again) == ["complete"] * 4


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"trial_data": [["{}", "{}"]]}', "\0"])
def test_a_torn_file_of_ray_changes_nothing(tmp_path: Path, content: str) -> None:
    search, _ = known_to_ray(2, 1)
    search.save_to_dir(str(tmp_path), session_str="1")
    (tmp_path / "experiment_state-1.json").write_text(content)
    assert restored(tmp_path).study.trials == search.study.trials


# ---- state


def half_way() -> DRESearch:
    """Return a search with all that a state may have: results, running trials, points."""
    points = [{"rate": 0.01 * (i + 1)} for i in range(10)]
    search = worker.begun(worker.MIXED_SPACE, points_to_evaluate=points)
    worker.run(search, 6)
    search.suggest("running")
    search.suggest("reporting")
    search.on_trial_result("reporting", worker.result(1.0))
    return search


def future(search: DRESearch) -> list[Any]:
    """Return what a search does next, with the trials that were running."""
    worker.complete(search, "running", 0.5)
    search.on_trial_complete("reporting", worker.result(0.75, 2))
    configs = worker.run(search, 6, first=100)
    others = dict(search.stats), search.metric, search.mode
    return [*configs, *map(str, worker.trials(search)), others]


def saved(search: DRESearch, folder: Path) -> DRESearch:
    path = folder / "state.pkl"
    search.save(str(path))
    assert [file.name for file in folder.iterdir()] == ["state.pkl"]
    again = DRESearch(seed=9, settings=Settings(preset="paper"))
    again.restore(str(path))
    return again


def saved_by_ray(search: DRESearch, folder: Path) -> DRESearch:
    search.save_to_dir(str(folder), session_str="session")
    return restored(folder)


def given_state(search: DRESearch, folder: Path) -> DRESearch:
    again = DRESearch()
    again.set_state(search.get_state())
    return again


undisturbed = cache(lambda: future(half_way()))
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
    assert future(copied) == undisturbed()
    assert future(search) == undisturbed()  # and shares nothing with the copy
    assert search.stats["enqueued"] == 10


def test_states_of_others_are_refused(tmp_path: Path) -> None:
    for state in ({"version": 1}, {"_metric": "loss"}, 3):
        with pytest.raises(ValueError, match="no state of a DRESearch"):
            DRESearch().set_state(state)  # type: ignore[arg-type]
    newer = {**half_way().get_state(), "version": 99}
    (tmp_path / "newer").write_bytes(cloudpickle.dumps(newer))
    with pytest.raises(ValueError, match=r"version 99.*upgrade"):
        DRESearch().restore(str(tmp_path / "newer"))
    (tmp_path / "notes").write_text("cd here\nand there\n")  # to a pickle: import a module
    with pytest.raises(ValueError, match=r"notes cannot be read: No module named 'd here'"):
        DRESearch().restore(str(tmp_path / "notes"))


def test_a_torn_state_falls_back_to_the_one_before(tmp_path, caplog) -> None:
    """As Ray leaves it: it copies file by file, and was killed while it copied the newest."""
    staging, storage = tmp_path / "staging", tmp_path / "storage"
    search = worker.tiny_search(space=worker.MIXED_SPACE, metric="loss", mode="min")

    def save_and_copy(*, killed: bool = False) -> None:
        search.save_to_dir(str(staging), session_str="session")
        (file,) = staging.iterdir()  # what Ray copies; the one before lies in the storage only
        data = file.read_bytes()
        os.utime(file, ns=(2**62, file.stat().st_mtime_ns))  # not every disk notes what is read
        (storage / file.name).write_bytes(data[: len(data) // 2] if killed else data)

    staging.mkdir()
    storage.mkdir()
    for n_trials in range(1, 6):
        configs = worker.run(search, 1, first=n_trials)
        save_and_copy(killed=n_trials == 5)
    again = DRESearch()
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        again.restore_from_dir(str(storage))
    assert "cannot be read" in caplog.text and caplog.text.count("WARNING") == 1
    assert worker.trials(again) == worker.trials(search)[:4]
    # Ray knows the trial that the search has forgotten, and says how it goes. Once is enough.
    last = worker.result(worker.mixed_value(configs[0]), config=configs[0])
    again.on_trial_result("t5", last)
    assert worker.states(again) == ["complete"] * 4 + ["running"]
    for _ in range(2):
        again.on_trial_complete("t5", {**last, "done": True})
    assert [{**trial.configuration, "constant": 7} for trial in worker.trials(again)] == [
        {**trial.configuration, "constant": 7} for trial in worker.trials(search)
    ]
    assert worker.states(again) == ["complete"] * 5
    assert worker.trials(again)[4].value == worker.trials(search)[4].value

    caplog.clear()
    for _ in range(2):
        again.save_to_dir(str(staging), session_str="tomorrow")
    first, _ = staging.glob("*tomorrow*")  # not read: a slow storage may be about to copy it
    (storage / first.name).write_bytes(first.read_bytes())
    newest = DRESearch()
    newest.restore_from_dir(str(storage))
    assert len(worker.trials(newest)) == 5
    assert not caplog.records  # an old torn file worries nobody
    with pytest.raises(RuntimeError, match="no state of a search"):
        DRESearch().restore_from_dir(str(tmp_path))


def test_the_newest_session_of_a_folder_counts(tmp_path: Path) -> None:
    """An experiment of the same name was run before, and saved more often."""
    first, second = (
        worker.tiny_search(space=worker.SPACE, metric="loss", mode="min", seed=s) for s in (0, 1)
    )
    for n in range(5):
        worker.run(first, 1, lambda config: config["x"], first=n)
        first.save_to_dir(str(tmp_path), session_str="2026-01-01_00-00-00")
    worker.run(second, 2, lambda config: config["x"])
    second.save_to_dir(str(tmp_path), session_str="2026-01-02_00-00-00")
    assert len(list(tmp_path.iterdir())) == 3  # and nobody deletes what others have saved
    again = DRESearch()
    again.restore_from_dir(str(tmp_path))
    assert worker.trials(again) == worker.trials(second)
