"""`DRESearcher` alone: which trial is which, what it learns, and what goes wrong."""

import gc
import logging
import math
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dill
import pytest
from syne_tune import config_space as cs
from syne_tune_loop import searcher_of, states
from syne_tune_rows import SPACE

from dre_plugins import AskTell, Memory
from dre_plugins.adapters.syne_tune import DRESearcher, history
from dre_plugins.memory import records
from dre_plugins.recommend import Trial, TrialState

GRID = {"a": cs.choice(["x", "y", "z"]), "b": cs.randint(0, 5), "epochs": 9}  # 18 configurations


def loss(config: dict[str, Any]) -> float:
    distance = (math.log10(config["lr"]) + 2) ** 2 + abs(config["layers"] - 3)
    return distance + (config["act"] == "tanh")


def run(searcher: DRESearcher, n: int, value: Callable[[dict[str, Any]], float] = loss) -> list:
    """Run trials one after the other and return their configurations."""
    configs = []
    for trial_id in range(len(searcher.trials), len(searcher.trials) + n):
        config = searcher.suggest()
        searcher.on_trial_complete(trial_id, config, value(config))
        configs.append(config)
    return configs


# ---- suggestions


@pytest.mark.parametrize("n_startup_trials", [0, 4, 99])
def test_pending_configurations_are_all_different_and_a_space_can_be_used_up(
    n_startup_trials: int,
) -> None:
    searcher = searcher_of(GRID, n_startup_trials=n_startup_trials)
    searcher.on_trial_complete(-1, searcher.suggest(), 1.0)
    configs = [searcher.suggest() for _ in range(17)]
    assert len({(config["a"], config["b"]) for config in configs}) == 17
    assert searcher.suggest() is None and searcher.suggest() is None
    for trial_id, config in enumerate(configs):
        searcher.on_trial_complete(trial_id, config, float(trial_id))
    assert searcher.suggest() is None
    assert states(searcher) == ["complete"] * 18


def test_points_come_first_in_order_also_partial_ones(caplog: pytest.LogCaptureFixture) -> None:
    points = [
        {"lr": 0.1, "layers": 2, "act": "tanh"},
        {"layers": 5},
        {"lr": 30.0},
        {"lr": 40.0, "layers": 3, "act": "relu", "epochs": 9},
    ]
    with caplog.at_level(logging.WARNING):
        searcher = searcher_of(points_to_evaluate=points)
        configs = run(searcher, 8)
    for point, config in zip(points, configs, strict=False):
        assert config.keys() == SPACE.keys() and config.items() >= point.items()
        assert config["epochs"] == 9
    assert [config["lr"] <= 1 for config in configs] == [True, True, False, False, *[True] * 4]
    assert len([record for record in caplog.records if "lr=30.0" in record.getMessage()]) == 1
    assert searcher.stats["enqueued"] == 4
    assert points[1] == {"layers": 5}


# ---- which trial is which


def test_a_trial_is_recognised_by_its_configuration_whatever_the_order() -> None:
    searcher = searcher_of(n_startup_trials=99)
    configs = [searcher.suggest() for _ in range(6)]
    for trial_id, place in enumerate([5, 3, 1, 0, 2, 4]):
        if trial_id % 2:
            searcher.on_trial_add(trial_id, configs[place])
        searcher.on_trial_result(trial_id, configs[place], float(place))
        searcher.on_trial_complete(trial_id, configs[place], float(place))
    assert [trial.value for trial in searcher.trials] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_several_trials_of_the_same_configuration_are_told_apart() -> None:
    point = {"lr": 0.1, "layers": 2, "act": "tanh"}
    searcher = searcher_of(points_to_evaluate=[point] * 3)
    configs = [searcher.suggest() for _ in range(3)]
    searcher.on_trial_add(0, configs[0])
    searcher.on_trial_add(1, configs[1])
    searcher.on_trial_complete(1, configs[1], 1.0)
    searcher.on_trial_error(0)
    searcher.on_trial_complete(2, configs[2], 2.0)
    assert states(searcher) == ["failed", "complete", "complete"]
    assert [trial.value for trial in searcher.trials] == [None, 1.0, 2.0]


def test_trials_that_were_never_suggested_count_as_evaluated() -> None:
    searcher = searcher_of(GRID)
    config = {"a": "x", "b": 3, "epochs": 9}
    searcher.on_trial_result(7, config, 3.0)
    searcher.on_trial_complete(7, config, 2.0)
    searcher.on_trial_complete(8, {"a": "y", "b": 77}, 1.0)  # out of range, constant left out
    assert [trial.value for trial in searcher.trials] == [2.0, 1.0]
    rest = []
    while (suggested := searcher.suggest()) is not None:
        rest.append((suggested["a"], suggested["b"]))
    assert len(rest) == len({*rest}) == 17 and ("x", 3) not in rest


def test_what_cannot_belong_to_the_space_is_left_out_with_a_warning(caplog) -> None:
    searcher = searcher_of(GRID)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            searcher.on_trial_result(3, {"a": "w", "b": 1}, 3.0)
            searcher.on_trial_complete(3, {"a": "w", "b": 1}, 3.0)
        for number, value in ((4, "x"), (5, "y")):  # for one reason: one warning
            searcher.on_trial_complete(number, {"a": value}, 3.0)
    first, second = [record.getMessage() for record in caplog.records]
    assert "trial 3" in first and "'w'" in first and "'b'" in second
    assert searcher.trials == () and searcher.suggest() is not None


def test_a_trial_id_that_begins_anew_is_another_trial() -> None:
    searcher = searcher_of()
    first, second = searcher.suggest(), searcher.suggest()
    searcher.on_trial_complete(0, first, 1.0)
    searcher.on_trial_complete(0, second, 2.0)
    assert [trial.value for trial in searcher.trials] == [1.0, 2.0]


@pytest.mark.parametrize("hook", ["on_trial_error", "on_trial_stop"])
def test_unknown_and_ended_trials_are_ignored(hook: str, caplog: pytest.LogCaptureFixture) -> None:
    searcher = searcher_of()
    config = searcher.suggest()
    with caplog.at_level(logging.DEBUG, logger="syne_tune.dre_plugins"):
        getattr(searcher, hook)(5)
    assert states(searcher) == ["running"] and "Trial 5" in caplog.text
    searcher.on_trial_complete(0, config, 1.0)
    getattr(searcher, hook)(0)
    searcher.on_trial_result(0, config, 5.0)
    searcher.on_trial_complete(0, config, 5.0)
    assert searcher.trials == (Trial(config, TrialState.COMPLETE, 1.0),)


# ---- several at once


def test_a_searcher_may_begin_while_those_of_another_thread_report() -> None:
    class Other:
        study = None

    def report() -> None:
        for _ in range(100_000):
            others.append(Other())
            history._REPORTING[others[-1]] = -1

    others, thread = deque[Any](maxlen=5000), threading.Thread(target=report)
    thread.start()
    while thread.is_alive():
        searcher_of(GRID)


def study_of_garbage(folder: Path, **more: Any) -> AskTell:
    """Return a study of two reports whose searcher is in a cycle, which only a collection ends."""
    searcher: Any = searcher_of(memory=folder, **more)
    for trial_id in range(2):
        searcher.on_trial_result(trial_id, searcher.suggest(), 1.0)
    searcher.itself = searcher
    return searcher.study


def n_recorded(folder: Path) -> int:
    (entry,) = Memory(folder).index().entries
    return entry.n_trials


def test_a_searcher_may_be_collected_while_its_study_records_a_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study, line = study_of_garbage(tmp_path), records.trial_line
    monkeypatch.setattr(records, "trial_line", lambda *given: (gc.collect(), line(*given))[1])
    thread = threading.Thread(target=study.tell, args=(0, 1.0), daemon=True)
    thread.start()
    thread.join(timeout=30.0)
    assert not thread.is_alive()
    assert n_recorded(tmp_path) == 2  # the second one by its report


def test_a_collection_does_not_wait_for_a_study_whose_thread_waits_for_the_collecting_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held, is_in_study, at_exit = threading.Lock(), threading.Event(), []
    monkeypatch.setattr("atexit.register", lambda *given: at_exit.append(partial(*given)))

    def valid(_: object) -> bool:
        if held.locked():
            is_in_study.set()
            held.acquire()
            held.release()
        return True

    def collect() -> None:
        with held:
            asking.start()
            is_in_study.wait()
            gc.collect()

    study = study_of_garbage(tmp_path, valid=valid)
    asking, thread = (threading.Thread(target=f, daemon=True) for f in (study.ask, collect))
    thread.start()
    thread.join(timeout=30.0)
    assert not thread.is_alive()
    at_exit[-1]()
    assert n_recorded(tmp_path) == 2


# ---- results


@pytest.mark.parametrize(
    ("values", "ends", "level"),
    [
        ([], [2.0], {}),
        ([2.0], [2.0, 2.0], {}),
        ([9.0, 5.0, 2.0], [2.0], {}),
        ([9.0, 2.0, 2.0], [2.0], {"resource_level": 3}),
        ([2.0], [None], {}),
    ],
    ids=["complete", "twice", "many", "levels", "no last value"],
)
def test_results_count_once_and_the_last_one_wins(
    values: list[float], ends: list[Any], level: dict[str, int]
) -> None:
    searcher = searcher_of()
    config = searcher.suggest()
    for value in values:
        searcher.on_trial_result(0, config, value, **level)
    for value in ends:
        searcher.on_trial_complete(0, config, value, **level)
    (trial,) = searcher.trials
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 2.0)


def test_steps_are_resource_levels_or_counts() -> None:
    searcher = searcher_of()
    configs = [searcher.suggest() for _ in range(3)]
    for value in (3.0, 2.0):
        searcher.on_trial_result(0, configs[0], value)
    for level, value in ((1, 3.0), (3, 2.0), (3, math.nan)):
        searcher.on_trial_result(1, configs[1], value, level)
    searcher.on_trial_result(2, configs[2], 1.0, math.nan)
    rungs = [dict(trial.rungs) for trial in searcher.trials]
    assert rungs[0] == {1.0: 3.0, 2.0: 2.0} and rungs[2] == {1.0: 1.0}
    assert rungs[1][1.0] == 3.0 and math.isnan(rungs[1][3.0])


def test_what_ends_a_trial_decides_how_it_counts() -> None:
    searcher = searcher_of()
    configs = [searcher.suggest() for _ in range(6)]
    for trial_id in (0, 1, 2):
        for level in range(1, 3 + trial_id):
            searcher.on_trial_result(trial_id, configs[trial_id], 1.0 / level, level)
    searcher.on_trial_stop(0)  # at level 2 of 4
    searcher.on_trial_stop(2)  # at level 4: nobody got further
    searcher.on_trial_error(1)
    searcher.on_trial_stop(3, configs[3])  # without a report, which ranks as a failure
    searcher.on_trial_complete(4, configs[4], math.nan, 1)
    searcher.on_trial_complete(5, configs[5], math.inf, 1)
    assert states(searcher) == ["pruned", "failed", "complete", "pruned", "failed", "complete"]
    assert searcher.suggest() is not None and searcher.stats["model"] == 1


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("fast", "failed"),
        (None, "pruned"),
        ([1.0], "failed"),
        (10**400, "complete"),  # infinite
        (math.nan, "failed"),
    ],
    ids=lambda case: repr(case)[:20],
)
def test_no_result_raises(value: Any, state: str) -> None:
    searcher = searcher_of()
    for trial_id in range(8):
        config = searcher.suggest()
        searcher.on_trial_result(trial_id, config, value)
        searcher.on_trial_complete(trial_id, config, value if trial_id % 2 else 1.0)
    assert states(searcher) == ["complete", state] * 4
    assert not any(trial.value or trial.rungs for trial in searcher.trials[1::2] if value is None)


# ---- after a crash


def test_what_was_running_is_suggested_once_more() -> None:
    searcher = searcher_of(points_to_evaluate=[{"layers": n} for n in range(1, 7)])
    configs = [searcher.suggest() for _ in range(5)]
    searcher.on_trial_complete(0, configs[0], 1.0)
    searcher.on_trial_add(1, configs[1])
    searcher.on_trial_result(2, configs[2], 2.0)
    restored = dill.loads(dill.dumps(searcher))
    restored.restart_running()
    restored.restart_running()  # once is enough
    assert states(restored) == ["complete", "running", "complete", "running", "running"]
    again = [restored.suggest() for _ in range(4)]
    assert again[:3] == [configs[1], configs[3], configs[4]]
    assert again[3]["layers"] == 6  # the point that was not used yet
    for trial_id, config in enumerate(again, start=5):
        restored.on_trial_complete(trial_id, config, float(trial_id))
    assert [trial.value for trial in restored.trials] == [1.0, 5.0, 2.0, 6.0, 7.0, 8.0]


def test_errors_that_are_heard_of_after_a_restore_are_failures() -> None:
    searcher = searcher_of()
    configs = [searcher.suggest() for _ in range(3)]
    searcher.on_trial_result(0, configs[0], -99.0)
    searcher.on_trial_add(1, configs[1])
    searcher.on_trial_add(2, configs[2])
    restored = dill.loads(dill.dumps(searcher))
    restored.restart_running()
    assert states(restored) == ["complete", "running", "running"]
    restored.on_trial_error(0, configs[0])
    restored.on_trial_error(1, configs[1])
    assert states(restored) == ["failed", "failed", "running"]
    assert restored.suggest() == configs[2]  # what has failed is not run again
    assert restored.suggest() not in configs
    assert states(restored) == ["failed", "failed", "running", "running"]
