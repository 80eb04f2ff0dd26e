"""Studies on several machines whose memory is on NFS, and workers of one study there.

    PYTHONPATH=. python lab/nfs.py studies FOLDER MACHINE COUNT [quick|learn] [PAUSE]
    PYTHONPATH=. python lab/nfs.py worker FOLDER MACHINE JOURNAL N_TRIALS [START]
    PYTHONPATH=. python lab/nfs.py watch FOLDER SECONDS
    PYTHONPATH=. python lab/nfs.py stir FOLDER SECONDS
    PYTHONPATH=. python lab/nfs.py check FOLDER LINES...

`studies` runs COUNT studies of 12 trials, of AskTell and of Optuna in turns, and prints a line of
JSON for each: its name, its ended trials, the longest call in seconds, counters and warnings.
"quick" studies only record; "learn" learns from earlier ones. PAUSE is the time of a trial in
seconds. `worker` runs trials of one Optuna study in a journal on NFS, with the memory FOLDER
unless it is "-", from the time START (seconds since 1970) on. `watch` says how long after the end
of a trial it was seen. `check` compares the lines that were printed with what the memory holds,
and counts lines of records that are no JSON. `stir` forgets studies and shrinks the memory, twice
a second.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from dre_plugins import AskTell, DRESampler, Memory
from dre_plugins.space import Float, Integer

N_TRIALS = 12
SPACE = {"rate": Float(1e-5, 1.0, "log"), "depth": Integer(1, 8), "drop": Float(0.0, 0.9)}
COUNTERS = ("memory_errors", "past_studies", "fallbacks")


class Warned(logging.Handler):
    """Keep the messages of warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage()[:300])


def loss(values: dict[str, Any], number: int) -> float:
    """Return a bowl whose optimum depends a little on the number of the study."""
    rate = abs(float(values["rate"]) + 1e-9)
    shift = number % 5 / 20
    return (rate**0.2 - 0.3 - shift) ** 2 + abs(values["depth"] - 5) / 8 + values["drop"] ** 2


class Clock:
    """Measure the longest of several calls."""

    def __init__(self) -> None:
        self.longest = 0.0

    def __call__(self, call: Callable[..., Any], *given: Any) -> Any:
        begin = time.monotonic()
        try:
            return call(*given)
        finally:
            self.longest = max(self.longest, time.monotonic() - begin)


def run_study(folder: str, name: str, number: int, *, is_quick: bool, pause: float) -> Any:
    """Run one study; return its ended trials, its longest call in seconds, and its counters."""
    clock, options = Clock(), {"prior": None, "n_startup_trials": N_TRIALS} if is_quick else {}
    if number % 2:
        study = clock(lambda: AskTell(SPACE, seed=number, memory=folder, name=name, **options))
        for _ in range(N_TRIALS):
            trial, values = clock(study.ask)
            time.sleep(pause)
            clock(study.tell, trial, loss(values, number))
        return len(study.trials), clock.longest, study.stats
    sampler = DRESampler(seed=number, memory=folder, **options)
    studied = optuna.create_study(study_name=name, sampler=sampler)
    clock(studied.optimize, lambda trial: evaluate(trial, number, pause), N_TRIALS)
    return len(studied.trials), clock.longest - N_TRIALS * pause, sampler.stats


def evaluate(trial: optuna.Trial, number: int, pause: float) -> float:
    """Return the value of a trial of Optuna after some time."""
    values = {
        "rate": trial.suggest_float("rate", 1e-5, 1.0, log=True),
        "depth": trial.suggest_int("depth", 1, 8),
        "drop": trial.suggest_float("drop", 0.0, 0.9),
    }
    time.sleep(pause)
    return loss(values, number)


def run_studies(folder: str, machine: str, count: int, kind: str, pause: float) -> None:
    """Run studies one after the other."""
    warned = Warned()
    logging.getLogger("dre_plugins").addHandler(warned)
    logging.getLogger("optuna").addHandler(warned)
    for number in range(count):
        name, begin = f"{machine}-{os.getpid()}-{number}", time.time()
        warned.texts.clear()
        is_quick = kind == "quick"
        ended, longest, stats = run_study(folder, name, number, is_quick=is_quick, pause=pause)
        row = {"name": name, "ended": ended, "longest": round(longest, 2)}
        row |= {counter: stats[counter] for counter in COUNTERS}
        row |= {"begin": round(begin, 2), "end": round(time.time(), 2), "warned": warned.texts}
        print(json.dumps(row), flush=True)


def run_worker(folder: str, machine: str, journal: str, n_trials: int, start: float) -> None:
    """Run trials of one study that all workers share."""
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401

    warned = Warned()
    logging.getLogger("dre_plugins").addHandler(warned)
    memory = False if folder == "-" else folder
    storage = JournalStorage(JournalFileBackend(journal))
    sampler = DRESampler(seed=0, memory=memory)
    study = optuna.create_study(
        study_name="shared", storage=storage, sampler=sampler, load_if_exists=True
    )
    clock, rows = Clock(), []
    time.sleep(max(start - time.time(), 0.0))
    for _ in range(n_trials):
        trial = clock(study.ask)
        begin = time.monotonic()
        value = clock(evaluate, trial, 0, 0.2)
        rows.append([trial.number, round(time.monotonic() - begin, 2)])
        clock(study.tell, trial, value)
    row = {"machine": machine, "trials": rows, "longest": round(clock.longest, 2)}
    row |= {counter: sampler.stats[counter] for counter in (*COUNTERS, "conflicts")}
    print(json.dumps(row | {"warned": warned.texts}), flush=True)


def watch(folder: str, seconds: float) -> None:
    """Print how long after the end of a study's last trial it is seen, and how many it has."""
    seen: dict[str, int] = {}
    begin = end = time.time()
    while end < begin + seconds:
        entries = Memory(Path(folder)).index().entries
        end = time.time()
        for entry in entries:
            name = entry.header.name
            if entry.last > begin and seen.get(name) != entry.n_trials:
                seen[name] = entry.n_trials
                delay = round(end - entry.last, 2)
                row = {"name": name, "trials": entry.n_trials, "delay": delay}
                print(json.dumps(row), flush=True)
        time.sleep(0.2)


def stir(folder: str, seconds: float) -> None:
    """Forget the older half of the studies, or shrink the memory, in turns."""
    counts: Counter[str] = Counter()
    end = time.time() + seconds
    while time.time() < end:
        turn, memory = counts.total() % 2, Memory(Path(folder), max_megabytes=0.05)
        try:
            if turn:
                memory.shrink()
            else:
                entries = memory.index().entries
                memory.forget(entries[len(entries) // 2 :])
            counts["shrunk" if turn else "forgotten"] += 1
        except OSError as error:
            counts[repr(error)] += 1
        time.sleep(0.5)
    print(json.dumps(counts))


def broken_lines(folder: Path) -> int:
    """Return the number of lines of records that are no JSON."""
    broken = 0
    for path in folder.glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            try:
                json.loads(line)
            except ValueError:
                broken += 1
    return broken


def check(folder: str, files: list[str]) -> None:
    """Compare the studies that were run with the memory."""
    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    index = Memory(Path(folder)).index()
    kept = Counter({entry.header.name: entry.n_trials for entry in index.entries})
    missing = {row["name"]: kept[row["name"]] for row in rows if kept[row["name"]] < row["ended"]}
    found = {"studies": len(rows), "ended": sum(row["ended"] for row in rows)}
    found |= {"kept studies": len(kept), "kept trials": kept.total(), "missing": missing}
    found |= {"damaged": index.damaged, "broken lines": broken_lines(Path(folder) / "studies")}
    found |= {"longest": max(row["longest"] for row in rows)}
    found |= {counter: sum(row[counter] for row in rows) for counter in COUNTERS}
    found |= {"warned": sorted({text for row in rows for text in row["warned"]})}
    print(json.dumps(found, indent=1))


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    command, folder, *given = sys.argv[1:]
    if command == "studies":
        machine, count, kind, *pause = given
        run_studies(folder, machine, int(count), kind, float(pause[0]) if pause else 0.0)
    elif command == "worker":
        machine, journal, n_trials, *start = given
        run_worker(folder, machine, journal, int(n_trials), float(start[0]) if start else 0.0)
    elif command in ("watch", "stir"):
        (watch if command == "watch" else stir)(folder, float(given[0]))
    else:
        check(folder, given)


if __name__ == "__main__":
    main()
