"""Records: files with a study as lines of JSON.

Each process writes a file of its own, so a study may have several. The first line is a header;
search spaces and trials follow as the trials end. In a file values are in the user's sign, in a
`Trial` larger is better.
"""

import glob
import hashlib
import json
import math
import os
import re
import time
import uuid
import weakref
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

from dre_plugins.files import atomic_write, make_folder, regular
from dre_plugins.memory.recorded_study import Header, RecordedStudy, RecordedTrial
from dre_plugins.recommend.directions import Directions
from dre_plugins.recommend.trials import Trial, TrialState, values_of
from dre_plugins.space.base import match_key
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.serial import from_plain, to_plain
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.metadata import Task, unnumbered

FORMAT = "dre-plugins/memory"
VERSION = 1

# A line that begins like this is a trial; they are counted without being parsed.
TRIAL = re.compile(rb'\{"trial":(\d{1,9}),')
FAILED = b'"state":"failed",'  # follows in the line of a failed trial
SUFFIX = ".jsonl"
# Seconds between syncs: a power cut loses at most what was written since; a kill loses nothing.
SECONDS_BETWEEN_SYNCS = 60.0
# After a write that took longer than a second to fail, as on NFS whose server does not answer,
# nothing is written for this many times as long. Trials that end meanwhile are written after it.
REST = 10.0


class RecordError(ValueError):
    """A record that cannot be read: the message names the file."""


# ---- writing


def header_line(header: Header) -> bytes:
    """Return the first line of a record."""
    return _line({"format": FORMAT, "version": VERSION, **asdict(header)})


def space_line(space: SearchSpace) -> bytes:
    """Return the line of a search space, which the trials after it come from."""
    return _line({"space": space.to_dict()})


def trial_line(number: int, ended: RecordedTrial, header: Header) -> bytes:
    """Return the line of a trial."""
    trial = Directions.of(header.directions).in_users_sign(ended.trial)
    plain = {
        "trial": number,
        "state": trial.state.value,
        "values": [to_plain(float(value)) for value in values_of(trial)],
        "configuration": {name: to_plain(v) for name, v in trial.configuration.items()},
        "rungs": [[step, to_plain(float(v))] for step, v in sorted(trial.rungs.items())],
        "constraints": {name: to_plain(float(v)) for name, v in trial.constraints.items()},
        "ended": ended.time,
        "stopped": ended.is_stopped,
        "source": ended.source,
    }
    return _line(plain)


def _line(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class Recorder:
    """Write the record of one study in one process.

    The file is created with the first trial, under a unique name. It is only appended to and not
    kept open. In another process the study begins a file of its own. Recorders of one study and
    process share a file, as a worker of joblib gets another copy of a sampler with each trial.
    """

    def __init__(self, folder: Path, header: Header) -> None:
        self._folder = folder
        self._header = header
        self._rest_until = 0.0
        self._latest = 0.0  # time of the last trial
        self._begin_anew()

    def _begin_anew(self) -> None:
        key = os.getpid(), self._folder, self._header.study
        self._record = _records.setdefault(key, _Record(self._folder, self._header))
        self._stopped: dict[int, Trial | None] = {}  # as noted last, None if it was not stopped
        weakref.finalize(self, self._record.end)  # at the study's end

    def __reduce__(self) -> tuple[Any, ...]:
        return Recorder, (self._folder, self._header)

    def write(
        self,
        number: int,
        trial: Trial,
        space: SearchSpace,
        *,
        is_stopped: bool = False,
        source: str = "",
    ) -> None:
        """Append a trial that has ended, larger values are better.

        A stopped trial that is as it was last written is not written again. A ValueError or
        TypeError says that a value is of a type that no file can hold. An OSError says that the
        trial could not be written, or that this was not even tried, see `REST`; it is tried again
        with the next trial and at the study's end.
        """
        if self._record.process != os.getpid():  # after a fork
            self._begin_anew()
        with self._record.lock:
            if is_stopped and self._stopped.get(number) == trial:
                return
            self._latest = max(self._latest, time.time())  # a clock may be set back
            ended = RecordedTrial(trial, self._latest, is_stopped, source)
            self._record.add(number, ended, space)
            self._stopped[number] = trial if is_stopped else None
            begin = time.monotonic()
            if begin < self._rest_until:
                raise TimeoutError(f"{self._folder} did not answer for some time.")
            try:
                self._record.write()
            except OSError:
                end = time.monotonic()
                if end - begin > 1.0:
                    self._rest_until = end + REST * (end - begin)
                raise

    def numbers(self) -> set[int]:
        """Return the numbers of the trials in all records of the study, whoever wrote them."""
        paths = self._folder.glob(f"{glob.escape(self._header.study)}-*{SUFFIX}")
        lines = (line for path in paths for line in regular(path).read_bytes().splitlines())
        return {int(trial[1]) for line in lines if (trial := TRIAL.match(line))}


class _Record:
    """The file of a record, and the lines that are to be written to it."""

    def __init__(self, folder: Path, header: Header) -> None:
        self.process = os.getpid()
        self.lock = RLock()  # a garbage collection during `write` may end another searcher
        self._folder = folder
        self._header = header
        self._path: Path | None = None
        self._spaces: dict[bytes, None] = {}  # their lines, in order
        self._n_written = 0  # spaces in the file
        self._trials: list[bytes] = []  # not written yet
        self._synced = 0.0

    def add(self, number: int, ended: RecordedTrial, space: SearchSpace) -> None:
        """Note the lines of a trial and of its search space."""
        # The space first, as its error names the parameter.
        self._spaces.setdefault(space_line(space))
        self._trials.append(trial_line(number, ended, self._header))

    def write(self) -> None:
        """Append what is noted; after an exception, such as an OSError, it stays noted."""
        try:
            self._append()
        except FileNotFoundError:  # the study was deleted meanwhile, or the folder is gone
            self._path = None
            self._append()

    def _append(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)  # else Windows adds \r
        path, is_new, lines = self._path, self._path is None, b""
        if path is None:
            make_folder(self._folder)
            path = self._folder / f"{self._header.study}-{uuid.uuid4().hex[:12]}{SUFFIX}"
            lines, self._n_written = header_line(self._header), 0
            flags |= os.O_CREAT | os.O_EXCL
        lines += b"".join([*[*self._spaces][self._n_written :], *self._trials])
        is_due = time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS
        descriptor = os.open(path, flags, 0o666)
        try:
            try:
                while lines:
                    lines = lines[os.write(descriptor, lines) :]
                if is_due and not is_new:
                    os.fsync(descriptor)
                    self._synced = time.monotonic()
            finally:
                os.close(descriptor)
        except BaseException:
            self._path = None  # part of a line may be in the file: the next write begins another
            if is_new:
                path.unlink(missing_ok=True)  # it has no trial, and would count as damaged
            raise
        if is_new:
            self._path, self._synced = path, time.monotonic()
        self._n_written = len(self._spaces)
        self._trials.clear()

    def end(self) -> None:
        """Write what is noted, and wait until the file is on the disk.

        A fork leaves that to the process that began the record.
        """
        if self.process != os.getpid():
            return
        with self.lock, suppress(OSError):  # the study ended; trials not written were warned of
            if self._trials:
                self.write()
            if self._path is not None:
                with self._path.open("rb") as file:
                    os.fsync(file.fileno())


_records: dict[tuple[int, Path, str], _Record] = {}  # by process, folder and study


def identity_of(task: Task) -> str:
    """Return the identity of a study that is recorded from a past task."""
    return digest_of([replace(task, name=unnumbered(task.name))])[:16]


def has_grown(task: Task, earlier: Task) -> bool:
    """Return whether a past task is an earlier one with more trials, or with longer ones.

    Trials that were running may have failed since, but not all of them: that is another run.
    """
    if unnumbered(task.name) != unnumbered(earlier.name) or len(task) < len(earlier):
        return False
    trials, have_failed = iter(task.trials()), []
    for before in earlier.trials():
        trial = next((trial for trial in trials if _goes_on(before, trial)), None)
        if trial is None:
            return False
        have_failed.append(trial.state is not before.state and trial.state is TrialState.FAILED)
    return not all(have_failed)


def _goes_on(before: Trial, trial: Trial) -> bool:
    """Return whether a trial is an earlier one, which may have been running then."""
    ours, theirs = before.configuration, trial.configuration
    is_same = replace(before, configuration=theirs) == trial
    is_longer = before.rungs.items() < trial.rungs.items() or trial.state is TrialState.FAILED
    return (
        (is_same or (bool(before.rungs) and is_longer))
        and ours.keys() == theirs.keys()
        and all(_agree(value, theirs[name]) for name, value in ours.items())
    )


def _agree(before: Any, value: Any) -> bool:
    """Return whether two values are equal, floats up to the rounding of two search spaces."""
    if not (isinstance(before, float) and isinstance(value, float)):
        return bool(before == value)
    return math.isclose(before, value, rel_tol=1e-9, abs_tol=1e-12)


def import_task(folder: Path, task: Task, present: set[str]) -> bool:
    """Record a past task as a study unless its identity is `present`; say whether it is new."""
    study = identity_of(task)
    if study in present:
        return False
    present.add(study)
    # Values of a `Task` are larger where they are better.
    header = Header(study=study, name=task.name, framework="import", directions=("maximize",))
    lines = [header_line(header), space_line(task.space)]
    for number, trial in enumerate(task.trials()):
        lines.append(trial_line(number, RecordedTrial(trial, header.began), header))
    make_folder(folder)
    # As a whole, as a part of it would count as known when it is imported again.
    with atomic_write(folder / f"{study}-import{SUFFIX}") as unfinished:
        unfinished.write_bytes(b"".join(lines))
    return True


# ---- reading


def parsed(line: bytes) -> Any:
    """Return what a line of a record holds; a ValueError says that it is no strict JSON."""
    return json.loads(line, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def read_lines(path: Path) -> tuple[Header, list[bytes]]:
    """Return the header of a record and the lines after it.

    A RecordError says that the file is no record, or of a newer version.
    """
    first, *lines = regular(path).read_bytes().splitlines() or [b""]
    try:
        state = parsed(first)
        is_known = state.pop("format") == FORMAT and state.pop("version") <= VERSION
        header = Header.from_dict(state) if is_known else None
    except DAMAGES as error:
        raise RecordError(f"{path} is no record of a study: its first line is damaged.") from error
    if header is None:
        raise RecordError(
            f"{path} is no record of this version, which reads {VERSION}; update dre-plugins."
        )
    return header, lines


def read_study(paths: Sequence[Path]) -> RecordedStudy:
    """Return a study from its records; if a trial was recorded twice, the last record counts.

    Two configurations of one number are two trials: copies of a study in two storages went on, or
    a study that began again from an older state. The later one is numbered behind all others.
    Damaged lines, such as the last one of a killed process, are counted.
    """
    records = [read_lines(path) for path in sorted(paths)]
    spaces: dict[bytes, SearchSpace] = {}  # by line: ranges that move make one for each trial
    trials: dict[tuple[int, Hashable], RecordedTrial] = {}
    n_damaged = 0
    for header, line in ((header, line) for header, lines in records for line in lines):
        try:
            state = parsed(line)
            if "space" in state:
                spaces[line] = SearchSpace.from_dict(state["space"])
                continue
            ended = _trial_in(state, header)
            key = int(state["trial"]), match_key(ended.trial.configuration)
            if key not in trials or trials[key].time <= ended.time:
                trials[key] = ended
        except DAMAGES:
            n_damaged += 1
    if not spaces:
        raise RecordError(f"{paths[0]} has no search space.")
    header = min((header for header, _ in records), key=lambda header: header.began)
    further = count(1 + max((number for number, _ in trials), default=0))
    numbered: dict[int, RecordedTrial] = {}
    for (number, _), ended in sorted(trials.items(), key=lambda item: item[1].time):
        numbered[next(further) if number in numbered else number] = ended
    return RecordedStudy(header, tuple(spaces.values()), numbered, n_damaged)


def _trial_in(state: Mapping[str, Any], header: Header) -> RecordedTrial:
    values = [float(from_plain(value)) for value in state["values"]]
    is_one = len(header.directions) == 1
    rungs = {float(step): float(from_plain(value)) for step, value in state["rungs"]}
    trial = Trial(
        configuration={str(n): from_plain(value) for n, value in state["configuration"].items()},
        state=TrialState(state["state"]),
        value=values[0] if is_one and values else None,
        rungs={step: value for step, value in rungs.items() if math.isfinite(step)},
        objectives=() if is_one else tuple(values),
        constraints={n: float(from_plain(v)) for n, v in state["constraints"].items()},
    )
    return RecordedTrial(
        Directions.of(header.directions).in_users_sign(trial),
        float(state["ended"]),
        bool(state["stopped"]),
        str(state.get("source", "")),
    )


def digest_of(tasks: Sequence[Task]) -> str:
    """Return a hash of all that past tasks hold."""
    content = hashlib.sha256()
    for task in tasks:
        content.update(json.dumps([task.name, task.space.to_dict()]).encode())
        arrays = [task.units, task.values, task.failed]
        for step, reported in task.rungs.items():
            content.update(repr(step).encode())
            arrays.append(reported)
        for array in arrays:
            content.update(repr(array.shape).encode() + array.tobytes())
    return content.hexdigest()[:32]
