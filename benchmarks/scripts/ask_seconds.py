"""Print processor milliseconds of an ask beside those of TPESampler, by number of trials.

python benchmarks/scripts/ask_seconds.py 500 4000
"""

import sys
import tempfile
import time

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend

from dre_plugins.adapters.optuna import DRESampler

SPACE = {
    "kind": optuna.distributions.CategoricalDistribution(["a", "b", "c"]),
    "x": optuna.distributions.FloatDistribution(0, 1),
    "y": optuna.distributions.FloatDistribution(0, 1),
}


def milliseconds(sampler, n_trials):
    """Return the median of an ask after that many trials."""
    rng, times = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        storage = optuna.storages.JournalStorage(JournalFileBackend(f"{folder}/journal"))
        study = optuna.create_study(storage=storage, sampler=sampler)
        for _ in range(n_trials):
            params = {"kind": "abc"[rng.integers(3)], "x": rng.random(), "y": rng.random()}
            study.add_trial(
                optuna.create_trial(params=params, distributions=SPACE, value=rng.random())
            )
        for _ in range(8):
            start = time.process_time()
            trial = study.ask(SPACE)
            times.append(1000 * (time.process_time() - start))
            study.tell(trial, 0.0)
    return float(np.median(times[2:]))


for n_trials in map(int, sys.argv[1:]):  # 500 4000
    start_up = DRESampler(seed=0, n_startup_trials=10**9)
    for sampler in (start_up, optuna.samplers.TPESampler(seed=0)):
        print(n_trials, type(sampler).__name__, milliseconds(sampler, n_trials))
