"""Workers that are killed, at any moment or in the middle of a suggestion: nothing is lost.

Drivers of Ray Tune and Syne Tune are in `test_ray_restarts.py` and `test_syne_tune_restarts.py`.
"""

import random
import sqlite3
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("optuna")

import restart_worker as worker
from optuna.trial import TrialState
from processes import fork_server

from dre_plugins.adapters.optuna.attributes import explanation_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STORAGES = pytest.mark.parametrize("kind", ["sqlite:///", "journal:"])


def check(url: str, n_killed: int, before: dict[int, tuple[object, float]]) -> None:
    """Check that nothing was lost or doubled, and that suggestions went on."""
    study = worker.study_in(url)
    trials = study.trials
    assert [trial.number for trial in trials] == [*range(len(trials))]
    assert before.items() <= worker.complete(study).items()
    n_running = sum(trial.state is TrialState.RUNNING for trial in trials)
    assert n_running <= n_killed
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.RUNNING}
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    assert len({str(trial.params) for trial in complete}) == len(complete)
    assert "fallback" not in [explanation_of(trial).source for trial in trials]
    assert explanation_of(complete[-1]).source in ("model", "exploration")


@STORAGES
@pytest.mark.parametrize("n_kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_a_worker_that_is_killed_at_any_moment(tmp_path: Path, kind: str, n_kills: int) -> None:
    url, rng = f"{kind}{tmp_path / 'storage'}", random.Random(n_kills)
    study, before = worker.study_in(url), {}
    for kill in range(n_kills):
        worker.killed_in(study, (url, 10**6), rng.uniform(0.0, 1.0))
        after = worker.complete(study)
        assert before.items() < after.items(), kill
        before = after
    worker.work(url, len(before) + 10)
    check(url, n_kills, before)


@STORAGES
def test_a_worker_that_is_killed_in_the_middle_of_a_suggestion(tmp_path: Path, kind: str) -> None:
    url, context = f"{kind}{tmp_path / 'storage'}", fork_server()
    study = worker.study_in(url)
    study.optimize(worker.slow_objective, n_trials=6)
    before = worker.complete(study)
    first = context.Process(target=worker.work_and_die, args=(url, 10**6, 2))
    second = context.Process(target=worker.work, args=(url, 20))
    first.start()
    second.start()
    first.join(120)
    second.join(120)
    assert (first.exitcode, second.exitcode) == (-9, 0)
    assert len(worker.complete(study)) >= 20
    check(url, 1, before)


def test_a_database_that_is_locked_for_a_while(tmp_path: Path) -> None:
    """SQLite locks the whole file; Optuna waits for as long as it is told to."""
    url = f"sqlite:///{tmp_path / 'storage'}"
    study = worker.study_in(url)
    study.optimize(worker.slow_objective, n_trials=6)
    before = worker.complete(study)

    def lock() -> None:
        for _ in range(3):
            with sqlite3.connect(tmp_path / "storage", isolation_level=None) as connection:
                connection.execute("BEGIN EXCLUSIVE")
                time.sleep(0.7)
                connection.execute("ROLLBACK")
            time.sleep(0.1)

    thread = threading.Thread(target=lock)
    thread.start()
    worker.work(url, 15)
    thread.join()
    check(url, 0, before)
