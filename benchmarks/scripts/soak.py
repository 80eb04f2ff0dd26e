"""Thousands of asks by threads and processes that share a study (`make soak`).

    export PYTHONPATH=tests/shared:tests/reliability
    python benchmarks/scripts/soak.py journal --preset start-up
    python benchmarks/scripts/soak.py postgresql --preset default --trials 500

Prints what each tenth of the study cost: seconds of an ask, and memory, open files and threads of
a process. Exits with 1 if a configuration was tried twice, a trial is missing, the surrogate
failed, or something grows that should not.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import optuna
from optuna.trial import Trial, TrialState
from optuna_worker import open_storage
from postgresql import Server, missing
from presets import TINY

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend.settings import Settings

N_PARTS = 10
# What may grow from the second tenth to the last, when all is loaded and all connections are open.
MAX_MORE_FILES, MAX_MORE_THREADS = 5, 2
# Seconds by which an ask may take longer for each trial. To read and encode them takes 4 µs of a
# core each (of TPESampler 8), and eight threads share however few cores there are.
MAX_SECONDS_A_TRIAL = 1e-4
# Of a surrogate, whose fits take up to 1.7 times as long with more trials (128 at most).
MAX_TIMES_LONGER = 2.0


class Sample(NamedTuple):
    """Resources and times of a process after a number of trials."""

    part: int
    seconds: tuple[float, ...]
    megabytes: float
    files: int
    threads: int


def objective(trial: Trial) -> float:
    """Return a value on a grid of some 10⁵ points with conditions, 0 at best."""
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    x = trial.suggest_float("x", 0, 1, step=0.01)
    y = trial.suggest_float("y", 0, 1, step=0.01)
    if kind == "a":
        return x + y + abs(trial.suggest_int("depth", 1, 12) - 7)
    return (x - 0.3) ** 2 + (y - 0.7) ** 2 + "abc".index(kind)


def sampler_of(name: str) -> optuna.samplers.BaseSampler:
    """Return a sampler by the name of its preset, or one without a surrogate to compare with."""
    if name == "random":
        return optuna.samplers.RandomSampler()
    if name == "start-up":
        return DRESampler(seed=7, n_startup_trials=10**9)
    return DRESampler(seed=7, settings=Settings(preset=TINY if name == "tiny" else name))


def work(url: str, preset: str, n_trials: int, n_threads: int, results: Any) -> None:
    """Run a share of the trials in threads; put samples and counters into a queue."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = sampler_of(preset)
    study = optuna.load_study(study_name="soak", storage=open_storage(url), sampler=sampler)
    lock, seconds, left = threading.Lock(), [], iter(range(n_trials))
    samples, errors = [], Counter[str]()

    def run() -> None:
        while True:
            with lock:
                if next(left, None) is None:
                    return
            start = time.perf_counter()
            try:
                trial = study.ask()
                value = objective(trial)
                taken = time.perf_counter() - start
                study.tell(trial, value)
            except Exception as error:  # of the storage: the trial is lost, and that is told
                with lock:
                    errors[f"{type(error).__name__}: {error}"[:80]] += 1
                continue
            with lock:
                seconds.append(taken)
                if len(seconds) * N_PARTS // n_trials > len(samples):
                    done = sum(len(sample.seconds) for sample in samples)
                    samples.append(Sample(len(samples), tuple(seconds[done:]), *resources()))

    threads = [threading.Thread(target=run) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((samples, Counter(getattr(sampler, "stats", {})), errors))


def resources() -> tuple[float, int, int]:
    """Return megabytes of memory, open files and threads of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    megabytes = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return megabytes, len(os.listdir("/proc/self/fd")), threading.active_count()


@contextlib.contextmanager
def storage(kind: str) -> Iterator[str]:
    """Provide the URL of an empty storage."""
    if kind == "journal":
        with tempfile.TemporaryDirectory(prefix="dre-soak-") as folder:
            yield f"journal:{folder}/journal"
    else:
        with Server() as server:
            yield server.url


def soak(url: str, options: argparse.Namespace) -> list[str]:
    """Run all workers, print the figures, and return what is wrong with them."""
    optuna.create_study(study_name="soak", storage=open_storage(url))
    context = get_context("spawn")
    results = context.Queue()
    share = options.trials // options.processes
    arguments = (url, options.preset, share, options.threads, results)
    start = time.monotonic()
    workers = [context.Process(target=work, args=arguments) for _ in range(options.processes)]
    for worker in workers:
        worker.start()
    outcomes = [results.get(timeout=options.limit) for _ in workers]
    for worker in workers:
        worker.join()
    minutes = (time.monotonic() - start) / 60
    stats = sum((found for _, found, _ in outcomes), Counter())
    errors = sum((found for _, _, found in outcomes), Counter())
    parts = [
        [samples[part] for samples, *_ in outcomes if part < len(samples)]
        for part in range(N_PARTS)
    ]
    parts = [part for part in parts if part]
    print("tenth  ask: median      95 %   MB  files  threads", flush=True)
    for part in parts:
        seconds = sorted(ask for sample in part for ask in sample.seconds)
        worst = seconds[int(0.95 * (len(seconds) - 1))]
        highest = (max(column) for column in zip(*(sample[2:] for sample in part), strict=True))
        print(
            "{:5d}  {:9.3f} s {:7.3f} s {:4.0f} {:6d} {:8d}".format(
                part[0].part + 1, median(seconds), worst, *highest
            )
        )
    trials = optuna.load_study(study_name="soak", storage=open_storage(url)).trials
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    n_twice = len(trials) - len({str(sorted(trial.params.items())) for trial in trials})
    print(
        f"{len(complete)} of {share * options.processes} trials in {minutes:.1f} minutes by "
        f"{options.processes} processes of {options.threads} threads; {n_twice} repeated; "
        f"{dict(stats)}"
    )
    for error, n in errors.items():
        print(f"{n} errors of the storage: {error}")
    n_complete, n_wanted = len(complete), share * options.processes
    return list(faults(parts, n_complete, n_complete - n_wanted, n_twice, stats))


def faults(
    parts: list[list[Sample]], n_complete: int, n_lost: int, n_twice: int, stats: Counter[str]
) -> Iterator[str]:
    early, late = parts[1], parts[-1]
    if n_lost:
        yield f"{n_lost} trials too many (or, below 0, too few)"
    if n_twice and stats:
        yield f"{n_twice} configurations were tried again"
    if stats["fallbacks"]:
        yield f"the surrogate failed {stats['fallbacks']} times"
    if (
        max(sample.files for sample in late)
        > max(sample.files for sample in early) + MAX_MORE_FILES
    ):
        yield "open files grow"
    if (
        max(sample.threads for sample in late)
        > max(sample.threads for sample in early) + MAX_MORE_THREADS
    ):
        yield "threads grow"
    before, after = (
        median(s for sample in part for s in sample.seconds) for part in (early, late)
    )
    times = MAX_TIMES_LONGER if stats["model"] else 1.0
    if after > times * before + MAX_SECONDS_A_TRIAL * n_complete:
        yield f"an ask takes {after:.3f} s in the end, {before:.3f} s in the beginning"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("storage", choices=["journal", "postgresql"])
    parser.add_argument("--preset", default="tiny", help="tiny, default, paper, start-up, random")
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2, help="of each process")
    parser.add_argument("--limit", type=float, default=3600, help="seconds")
    options = parser.parse_args()
    if options.storage == "postgresql" and (reason := missing()):
        print(f"Not run: {reason}")
        return 0
    with storage(options.storage) as url:
        found = soak(url, options)
    print("Faults: " + "; ".join(found) if found else "No fault.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
