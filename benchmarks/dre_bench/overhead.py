"""Measure what a suggestion costs apart from its fit, and how that and memory grow with a study.

    python -m dre_bench.overhead

prints, all in one run and on one thread, milliseconds of the processor for a suggestion in studies
of different lengths, and then the totals of a whole study on SQLite, each sampler in a process of
its own. "no model" suggests start-up points only: what is left is reading, converting and encoding
the trials, finding duplicates and claiming. "2 steps" has two members fitted for two steps: that,
and the search for candidates. The storage lies in `TMPDIR`, whose disk decides how long a trial
takes with any sampler.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import FittingSettings, Preset, ScorerSettings
from dre_plugins.recommend.settings import Settings

_TWO_STEPS = FittingSettings(n_steps=2, learning_rate=0.02)
HARDLY_FITTED = Preset(
    scorer=ScorerSettings(n_members=2, hidden=(8,)),
    from_random=_TWO_STEPS,
    from_prior=_TWO_STEPS,
    universal_turns=False,
)
SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "dre, no model": lambda: DRESampler(seed=0, n_startup_trials=sys.maxsize),
    "tpe": lambda: TPESampler(seed=0),
    "dre, 2 steps": lambda: DRESampler(seed=0, settings=Settings(preset=HARDLY_FITTED)),
    "random": lambda: RandomSampler(seed=0),
    "dre": lambda: DRESampler(seed=0),
}
APART_FROM_FITS = [name for name in SAMPLERS if name != "dre"]
# Memory is counted from here on: imports and the first fit come before.
N_WARM = 100


def numeric(trial: optuna.Trial) -> float:
    """Return a sphere of ten parameters."""
    return sum(trial.suggest_float(f"x{i}", -1.0, 1.0) ** 2 for i in range(10))


def conditional(trial: optuna.Trial) -> float:
    """Return the value of one of three families with two or three parameters of their own."""
    family = trial.suggest_categorical("family", ["svm", "forest", "net"])
    value = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    if family == "svm":
        value += trial.suggest_float("C", 1e-3, 1e3, log=True)
        if trial.suggest_categorical("kernel", ["rbf", "linear"]) == "rbf":
            value += trial.suggest_float("gamma", 0.0, 1.0)
    elif family == "forest":
        value += trial.suggest_int("depth", 1, 30) + trial.suggest_int("leaf", 1, 100, log=True)
    else:
        value += trial.suggest_int("layers", 1, 5) + trial.suggest_float("dropout", 0.0, 0.5)
        value += trial.suggest_categorical("width", [16, 32, 64])
    return value


SPACES = {function.__name__: function for function in (numeric, conditional)}


@isolated(n_threads=1)
def suggestion_seconds(sampler: str, space: str, past: optuna.Study, repeats: int) -> float:
    """Return the median of the processor's seconds from `ask` to `tell`, in memory."""
    objective = SPACES[space]
    study = optuna.create_study(sampler=SAMPLERS[sampler]())
    study.add_trials(past.get_trials(deepcopy=False))
    seconds = []
    for _ in range(repeats + 1):  # the first one pays for imports and converts all trials
        start = time.process_time()
        trial = study.ask()
        study.tell(trial, objective(trial))
        seconds.append(time.process_time() - start)
    return float(np.median(seconds[1:]))


@isolated(n_threads=1)
def study_totals(sampler: str, n_trials: int) -> tuple[float, float, float]:
    """Return seconds, the processor's seconds and MiB that a study on SQLite takes."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'study.db'}"
        study = optuna.create_study(storage=url, sampler=SAMPLERS[sampler]())
        start, processor, memory = time.perf_counter(), time.process_time(), 0.0
        for number in range(n_trials):
            if number == min(N_WARM, n_trials - 1):
                memory = resident()
            trial = study.ask()
            study.tell(trial, numeric(trial))
        grown = resident() - memory
        return time.perf_counter() - start, time.process_time() - processor, grown


def resident() -> float:
    """Return the MiB of memory that this process holds (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_bench.overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, nargs="*", default=[100, 300, 1000, 3000])
    parser.add_argument("--spaces", nargs="*", choices=SPACES, default=[*SPACES])
    parser.add_argument("--samplers", nargs="*", choices=SAMPLERS, default=APART_FROM_FITS)
    parser.add_argument("--repeats", type=int, default=10, help="suggestions of each")
    parser.add_argument("--study", type=int, default=2000, help="trials of the study on SQLite")
    options = parser.parse_args(arguments)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = options.samplers
    print("space        trials", *(f"{name:>14}" for name in names), " (CPU ms a trial)")
    for space in options.spaces:
        for n_trials in options.trials:
            past = optuna.create_study(sampler=RandomSampler(seed=0))
            past.optimize(SPACES[space], n_trials=n_trials)
            found = [suggestion_seconds(name, space, past, options.repeats) for name in names]
            row = (f"{1000 * seconds:14.1f}" for seconds in found)
            print(f"{space:12} {n_trials:6}", *row, flush=True)
    if options.study:
        print(f"\n{options.study} trials on SQLite: seconds, CPU seconds, MiB grown")
        for name in names:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                seconds, processor, grown = process.submit(
                    study_totals, name, options.study
                ).result()
            print(f"{name:14} {seconds:9.1f} {processor:9.1f} {grown:7.1f}", flush=True)


if __name__ == "__main__":
    main()
