"""A team: several processes tune three studies at once in one memory, and some are killed.

Colleagues may write to its folders, but not to each other's files.
"""

import random
import signal
import time
from unittest.mock import Mock

import optuna
import pytest
from optuna.trial import TrialState
from processes import fork_server
from remembered import files_of, objective, tune, write_studies

from dre_plugins import DRESampler, Memory
from dre_plugins.memory.records import read_study

N_WORKERS, N_STUDIES, N_PAST = 6, 3, 3
N_TRIALS = 20  # of each process
KILLED = (5, 0, 4)  # one of the two workers of each study
SLOWEST = 240.0  # seconds for the first trials of all workers on a busy machine


def _storage(folder):
    options = {"connect_args": {"timeout": SLOWEST}}
    return optuna.storages.RDBStorage(f"sqlite:///{folder / 'studies.db'}", options)


def _tune(folder, worker):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = DRESampler(seed=worker, memory=folder / "memory")
    study = optuna.load_study(
        study_name=f"study {worker % N_STUDIES}", storage=_storage(folder), sampler=sampler
    )
    study.optimize(objective, n_trials=1)
    while not (folder / "all have begun").exists():  # else it could end before it is killed
        time.sleep(0.01)
    study.optimize(objective, n_trials=N_TRIALS - 1)
    assert sampler.stats["memory_errors"] == 0
    assert sampler.stats["past_studies"] >= N_PAST  # another study may have begun before


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killed_processes_damage_nothing_and_lose_no_trial_that_had_ended(tmp_path):
    memory, storage = Memory(tmp_path / "memory"), _storage(tmp_path)
    write_studies(memory, "abc", n_trials=20)
    studies = [
        optuna.create_study(study_name=f"study {number}", storage=storage)
        for number in range(N_STUDIES)
    ]
    context = fork_server()
    workers = [context.Process(target=_tune, args=(tmp_path, n)) for n in range(N_WORKERS)]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + SLOWEST
    while len(files_of(memory)) < N_PAST + N_WORKERS and time.monotonic() < deadline:
        time.sleep(0.05)
    (tmp_path / "all have begun").touch()
    rng = random.Random(1)
    for worker in KILLED:
        time.sleep(rng.uniform(0.0, 0.5))
        assert workers[worker].is_alive()
        workers[worker].kill()
    for worker in workers:
        worker.join(SLOWEST)
    survivors = [n for n in range(N_WORKERS) if n not in KILLED]
    assert [workers[n].exitcode for n in survivors] == [0] * len(survivors)

    index = memory.index()
    assert len(index.entries) == N_PAST + N_STUDIES and not index.damaged
    entries = {entry.header.name: entry for entry in index.entries}
    for number, study in enumerate(studies):
        n_killed = sum(worker % N_STUDIES == number for worker in KILLED)
        ended = {trial.number: trial for trial in study.get_trials(states=[TrialState.COMPLETE])}
        recorded = read_study(entries[study.study_name].files)
        assert len(ended) >= N_TRIALS * sum(n % N_STUDIES == number for n in survivors)
        assert set(ended) <= set(recorded.trials)
        assert len(recorded.trials) <= len(ended) + n_killed  # one that was being told
        assert recorded.n_damaged <= n_killed  # a line that was being written
        for trial in ended.values():
            kept = recorded.trials[trial.number].trial
            assert (kept.configuration, kept.value) == (trial.params, -trial.value)
    assert tune(memory, 1).stats["past_studies"] == N_PAST + N_STUDIES


def test_what_a_colleague_has_made_stops_no_study(memory, monkeypatch):
    memory.path.mkdir()
    memory.path.chmod(0o2775)
    write_studies(memory, "a")
    tune(memory, 0)
    folders = memory.path, memory.records, memory.tasks, memory.choices
    assert {folder.stat().st_mode & 0o7777 for folder in folders} == {0o2775}
    monkeypatch.setattr("os.utime", Mock(side_effect=PermissionError))
    monkeypatch.setattr(Memory, "shrink", Mock(side_effect=PermissionError))
    assert tune(memory, 0).stats["past_studies"] == 1  # reads the same file
    write_studies(memory, "b")
    assert tune(memory, 0).stats["past_studies"] == 2
