"""A team: several processes tune at once in one memory, and some are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time

import pytest
from remembered import files_of, tune

from dre_plugins import Memory
from dre_plugins.memory.records import read_study

N_WORKERS = 8
N_TRIALS = 300
SLOWEST = 90.0  # seconds for the first trials of all workers, which import torch


def _tune(path, worker):
    """Tune for long: start-up points only, so that writing is most of it."""
    tune(Memory(path), N_TRIALS, name=f"worker {worker}", seed=worker, n_startup_trials=10**6)


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killed_processes_damage_nothing_and_lose_no_trial_that_had_ended(tmp_path):
    memory = Memory(tmp_path / "memory")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_tune, args=(memory.path, n)) for n in range(N_WORKERS)]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + SLOWEST
    while len(files_of(memory)) < N_WORKERS and time.monotonic() < deadline:
        time.sleep(0.05)
    seen = {}
    order = random.Random(0).sample(range(N_WORKERS), N_WORKERS // 2)
    for killed in order:
        time.sleep(0.1)
        entries = {entry.header.name: entry for entry in memory.index().entries}
        seen[killed] = len(read_study(entries[f"worker {killed}"].files).trials)
        os.kill(workers[killed].pid, signal.SIGKILL)
    for worker in workers:
        worker.join(SLOWEST)
    studies = [read_study(entry.files) for entry in memory.index().entries]
    assert len(studies) == N_WORKERS and not memory.index().damaged
    for study in studies:
        worker = int(study.header.name.split()[1])
        n_ended = len(study.trials)
        assert sorted(study.trials) == list(range(n_ended))
        assert study.n_damaged <= (worker in seen)  # a line that was being written
        assert n_ended >= seen[worker] if worker in seen else n_ended == N_TRIALS
    assert tune(memory, 1).stats["past_studies"] == N_WORKERS
