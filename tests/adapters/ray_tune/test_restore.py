"""A search that is restored beside trials of which Ray has stored less, or more, than it knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.tune")

import numpy as np
from ray.tune.search.repeater import TRIAL_INDEX
from ray.tune.utils.serialization import TuneFunctionEncoder
from ray_tune_worker import MIXED_SPACE, mixed_value, tiny_search

from dre_plugins.adapters.ray_tune import DRESearch

pytestmark = pytest.mark.ray

Trials = dict[str, tuple[str, dict[str, Any], dict[str, Any]]]


def begun(n_ended: int, n_running: int) -> tuple[DRESearch, Trials]:
    """Return a search and its trials as Ray knows them: status, configuration, last result."""
    search, trials = tiny_search(), {}
    search.set_search_properties("loss", "min", MIXED_SPACE)
    for place in range(n_ended + n_running):
        config = search.suggest(name := f"t{place}")
        assert config is not None
        trials[name] = ("RUNNING", config, {})
        if place < n_ended:
            trials[name] = ended(search, name, config)
    return search, trials


def ended(search: DRESearch | None, name: str, config: Any, value: Any = None) -> Any:
    """Let a trial end as a function does, and return what Ray knows of it then."""
    value = mixed_value(config) if value is None else value
    result = {"loss": value, "training_iteration": 1, "time_total_s": 0.5}
    if search is not None:
        search.on_trial_result(name, result)
        search.on_trial_complete(name, result)
    return "TERMINATED", config, result


def stored(folder: Path, trials: Trials, search: DRESearch | None = None) -> None:
    """Write what Ray writes, and the state of a search."""
    data = [
        [
            json.dumps(
                {"trial_id": name, "status": status, "config": config}, cls=TuneFunctionEncoder
            ),
            json.dumps({"last_result": result}, cls=TuneFunctionEncoder),
        ]
        for name, (status, config, result) in trials.items()
    ]
    (folder / "experiment_state-1.json").write_text(json.dumps({"trial_data": data}))
    if search is not None:
        search.save_to_dir(str(folder), session_str="1")


def as_ray_writes(item: dict[str, Any]) -> str:
    return json.dumps(item, cls=TuneFunctionEncoder)


def restored(folder: Path) -> DRESearch:
    search = tiny_search()
    search.set_search_properties("loss", "min", MIXED_SPACE)
    search.restore_from_dir(str(folder))
    return search


def states(search: DRESearch) -> list[str]:
    return [trial.state.value for trial in search.study.trials]


def test_what_began_and_ended_after_the_state_is_learnt(tmp_path: Path) -> None:
    search, trials = begun(5, 2)
    search.save_to_dir(str(tmp_path), session_str="1")
    trials["t5"] = ended(search, "t5", trials["t5"][1], np.float32(1.5))  # no number of JSON
    config = search.suggest("t7")
    assert config is not None
    trials["t7"] = ended(search, "t7", config)
    trials["t8"] = ("PENDING", search.suggest("t8") or {}, {})
    stored(tmp_path, trials)

    again = restored(tmp_path)
    assert states(again) == ["complete"] * 6 + ["running", "complete", "running"]
    for one, other in zip(again.study.trials, search.study.trials, strict=True):
        assert {**one.configuration, "constant": 7} == {**other.configuration, "constant": 7}
        assert (one.value, one.rungs) == (other.value, other.rungs)
    assert again.suggest("t9") == search.suggest("t9")
    # Ray goes on with what it knows, and the end of it counts.
    ended(again, "t8", trials["t8"][1])
    assert states(again)[8] == "complete"


def test_a_trial_whose_failure_was_missed_has_failed(tmp_path: Path) -> None:
    search, trials = begun(3, 2)
    stored(tmp_path, {**trials, "t3": ("ERROR", trials["t3"][1], {})}, search)
    assert states(restored(tmp_path)) == ["complete"] * 3 + ["failed", "running"]


def test_a_trial_whose_failure_was_missed_has_failed_whatever_it_reported(tmp_path: Path) -> None:
    """Ray hands on no result of a trial that failed; what it has stored of it must not count."""
    search, trials = begun(3, 3)
    best = {"loss": -99.0, "training_iteration": 4, "time_total_s": 2.0}
    for place, name in enumerate(("t3", "t4")):  # of t3 the search has heard before
        trials[name] = ("ERROR", trials[name][1], best)
        if place == 0:
            search.on_trial_result(name, best)
    unheard = ("ERROR", trials["t5"][1], best)
    del search._numbers["t5"], search._running["t5"]
    stored(tmp_path, {**trials, "t5": unheard}, search)
    again = restored(tmp_path)
    assert states(again) == ["complete"] * 3 + ["failed"] * 2 + ["running", "failed"]
    assert again.study.best.value is not None and again.study.best.value > -99.0


def test_a_restored_failure_stays_one_until_the_trial_runs_again(tmp_path: Path) -> None:
    search, trials = begun(3, 2)
    best = {"loss": -99.0, "training_iteration": 4, "time_total_s": 2.0}
    search.on_trial_result("t3", best)
    search.on_trial_complete("t3", None, error=True)
    stored(tmp_path, {**trials, "t3": ("ERROR", trials["t3"][1], best)}, search)
    again = restored(tmp_path)
    assert states(again) == ["complete"] * 3 + ["failed", "running"]
    # Tuner.restore(restart_errored=True): it runs again, ends well, and the end was missed.
    later = ended(None, "t3", trials["t3"][1], 5.0)
    stored(tmp_path, {**trials, "t3": later})
    again = restored(tmp_path)
    assert states(again) == ["complete"] * 4 + ["running"]
    assert again.study.trials[3].value == 5.0


def test_what_ray_has_forgotten_is_suggested_once_more(tmp_path: Path) -> None:
    search, trials = begun(5, 2)
    forgotten = trials.pop("t6")
    stored(tmp_path, trials, search)
    again = restored(tmp_path)
    assert again.suggest("t7") == forgotten[1]
    assert len(again.study.trials) == 7
    new = again.suggest("t8")
    assert len(again.study.trials) == 8 and new != forgotten[1]
    ended(again, "t7", forgotten[1])
    assert states(again) == ["complete"] * 5 + ["running", "complete", "running"]
    assert again.explain("t7") == search.explain("t6")
    with pytest.raises(ValueError, match="trial_id"):
        again.explain("t6")


def test_a_search_that_knows_more_than_ray_keeps_it(tmp_path: Path) -> None:
    """Ray runs again what it does not know to have ended; its end counts once."""
    search, trials = begun(5, 1)
    trials["t4"] = ("RUNNING", trials["t4"][1], {})
    stored(tmp_path, trials, search)
    again = restored(tmp_path)
    assert again.study.trials == search.study.trials
    ended(again, "t4", trials["t4"][1], 99.0)
    assert again.study.trials == search.study.trials


def test_trials_of_a_repeater_are_no_news(tmp_path: Path) -> None:
    """It hands on the mean of several trials under the name of the first."""
    search, trials = begun(2, 1)
    status, config, result = ended(None, "t3", trials["t2"][1])
    trials["t3"] = (status, {**config, TRIAL_INDEX: 1}, result)
    stored(tmp_path, trials, search)
    assert restored(tmp_path).study.trials == search.study.trials


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"trial_data": [["{}", "{}"]]}', "\0"])
def test_a_torn_file_of_ray_changes_nothing(tmp_path: Path, content: str) -> None:
    search, _ = begun(2, 1)
    search.save_to_dir(str(tmp_path), session_str="1")
    (tmp_path / "experiment_state-1.json").write_text(content)
    assert restored(tmp_path).study.trials == search.study.trials
