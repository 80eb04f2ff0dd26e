"""Paired runs of a benchmark, in processes, appended to a JSONL file.

A run that is in the file already is not repeated, so an interrupted command is resumed by giving
it again; a run that failed is recorded with its error, harms no other, and is tried again next
time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import traceback
import warnings
import zlib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import dre_plugins
from dre_plugins.cli.console import tracked
from dre_plugins.files import regular

Record: TypeAlias = dict[str, Any]
Study: TypeAlias = "Callable[[Sources, Run], Record]"
"""Runs one study and returns what came out of it, to be recorded beside the run."""

DIED = "the worker process died"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
MAXIMISE = "maximise"
LIBRARIES = ("optuna", "ray", "syne-tune", "botorch", "torch")


@dataclass(frozen=True)
class Sources:
    """Where data lie.

    Attributes:
        data: Folder with a folder for each scenario of YAHPO Gym.
        hpob: Folder with the files of HPO-B.
        priors: Folder for the priors that are meta-trained on the way.
        environments: Folder of the environments of foreign rivals, see ``problems.foreign``.
    """

    data: Path | None = None
    hpob: Path | None = None
    priors: Path | None = None
    environments: Path | None = None


@dataclass(frozen=True, order=True)
class Run:
    """One study to run; what makes it a different study from others.

    Attributes:
        sampler: Sampler specification, such as ``"tpe"`` or ``"dre:acquisition=ei"``.
        scenario: Name of a scenario, see ``scenarios``, or of tables, see ``tables``.
        task: Number of the task, for YAHPO Gym OpenML's, or its name.
        seed: Number of the repetition.
        trials: Length of the study.
        problem: What is to be done there, see ``problems.catalogue``.
    """

    sampler: str
    scenario: str
    task: int | str
    seed: int
    trials: int
    problem: str = MAXIMISE

    @property
    def number(self) -> int:
        """Number of the task; those of a scenario have one."""
        return int(self.task)

    @property
    def sampler_seed(self) -> int:
        """Same for every sampler, different for every task: tasks must not share their luck."""
        return zlib.crc32(f"{self.scenario}/{self.task}/{self.seed}".encode())


def run_of(record: Record) -> Run:
    """The run that a record belongs to."""
    names = [field.name for field in fields(Run) if field.name in record]
    return Run(**{name: record[name] for name in names})


def unfinished(runs: Sequence[Run], out: Path) -> list[Run]:
    """Return the runs that a file does not have yet, or only as failed ones."""
    finished = {run_of(record) for record in read_records(out) if "error" not in record}
    return [run for run in runs if run not in finished]


def perform(study: Study, sources: Sources, run: Run) -> Record:
    """Run one study, whatever it raises.

    Returns:
        The fields of ``run``, what the study returns, ``versions``, and ``warnings``, each text
        once; or ``error``.
    """
    record: Record = {**asdict(run), "versions": _versions()}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record.update(study(sources, run))
        record["warnings"] = sorted({str(warning.message) for warning in caught})
    except Exception as error:  # whatever a sampler raises ends this run only, and is recorded
        record["error"] = "".join(traceback.format_exception(error))
    return record


def describe(record: Record) -> str:
    """Say in a line what came out of a run."""
    run = run_of(record)
    values = [value for value in record.get("values", ()) if isinstance(value, (int, float))]
    end = f"best {max(values):.4f}" if values else "done"
    if "error" in record:
        end = f"FAILED, {record['error'].strip().splitlines()[-1]}"
    name = f"{run.sampler} {run.scenario} task {run.task} seed {run.seed}"
    return f"{name if run.problem == MAXIMISE else f'{run.problem} {name}'}: {end}"


def execute(study: Study, sources: Sources, runs: Sequence[Run], *, out: Path, jobs: int) -> int:
    """Perform runs in parallel and append a line to ``out`` as each one ends.

    Args:
        study: Runs one study; a function of a module.
        sources: Where data lie.
        runs: The runs, in this order.
        out: A JSONL file.
        jobs: How many processes.

    Returns:
        The number of runs that failed.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    records = _performed(study, sources, runs, jobs)
    n_failed = 0
    # Closed at once, also if an interruption comes while a record is written: left to the
    # interpreter's end, all runs that have not begun would be performed first.
    with closing(records), open_for_append(out) as file:
        for record in tracked(records, "runs", len(runs)):
            file.write(json.dumps(record) + "\n")
            file.flush()
            n_failed += "error" in record
            print(describe(record), flush=True)
    return n_failed


def _performed(
    study: Study, sources: Sources, runs: Sequence[Run], jobs: int
) -> Generator[Record, None, None]:
    """Perform runs in processes of this machine; records come as runs end."""
    workers, pool = _Workers(study, sources), ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(workers.perform, run) for run in runs]):
            yield done.result()
    finally:  # an interruption must not wait for all that has not begun
        pool.shutdown(wait=False, cancel_futures=True)
        workers.close()


def read_records(path: Path) -> list[Record]:
    """Read the lines of a runs file; what is no record is left out, with one warning."""
    if not path.exists():
        return []
    records, damaged = [], []
    for line in regular(path).read_bytes().splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # such as a last line that was cut off
            record = None
        if isinstance(record, dict):
            records.append(record)
        else:
            damaged.append(line[:40].decode(errors="replace"))
    if damaged:
        text = f"{path}: skipped damaged lines ({len(damaged)}), such as {damaged[0]!r}…"
        warnings.warn(text, stacklevel=2)
    return records


def open_for_append(path: Path) -> Any:
    """Open ``path`` at the start of a line, also if the last one was cut off."""
    cut_off = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    file = path.open("a")
    if cut_off:
        file.write("\n")
    return file


class _Workers:
    """A single-process pool for each calling thread, replaced when its process dies.

    One shared pool would be broken as a whole by one crash, without telling which run it was.
    """

    def __init__(self, study: Study, sources: Sources) -> None:
        self._study = study
        self._sources = sources
        self._local = threading.local()
        self._pools: list[ProcessPoolExecutor] = []

    def perform(self, run: Run) -> Record:
        if not hasattr(self._local, "pool"):
            self._start()
        try:
            record: Record = self._local.pool.submit(
                perform, self._study, self._sources, run
            ).result()
        except BrokenProcessPool:
            self._start()
            record = {**asdict(run), "error": DIED}
        return record

    def close(self) -> None:
        for pool in self._pools:
            pool.shutdown()

    def _start(self) -> None:
        # Spawned, not forked: torch and onnxruntime do not survive a fork with threads.
        context = multiprocessing.get_context("spawn")
        self._local.pool = ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent)
        self._pools.append(self._local.pool)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however that was ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _versions() -> dict[str, str]:
    found = {"dre_plugins": dre_plugins.__version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
