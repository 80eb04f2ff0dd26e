"""Append what ends in a study, or ended elsewhere, to a file that nobody else writes."""

from __future__ import annotations

import os
import time
import uuid
import weakref
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dre_plugins.memory.priors import digest_of
from dre_plugins.memory.recorded import Ended, Header
from dre_plugins.memory.records import header_line, space_line, trial_line
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import Task

SUFFIX = ".jsonl"
# A power cut loses at most what was written in so many seconds, and a killed process nothing.
SECONDS_BETWEEN_SYNCS = 60.0


class Recorder:
    """Write the record of one study in one process.

    The file is made with the first trial. It has a name of its own, is only ever appended to, and
    is not held open, so that a study may be copied to other processes, each of which begins a file
    of its own.

    Args:
        folder: Folder of all records.
        header: Which study it is.
    """

    def __init__(self, folder: Path, header: Header) -> None:
        self._folder = folder
        self._header = header
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._path: Path | None = None
        self._process = os.getpid()
        self._spaces: list[SearchSpace] = []
        self._synced = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_header": self._header}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin_anew()

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

        Args:
            number: Its number in the study.
            trial: The trial.
            space: The search space that it comes from.
            is_stopped: Whether something else ended it.
            source: Who suggested it, see `Ended`.

        Raises:
            OSError: The file cannot be written.
            ValueError: A value of the space is of a type that no file can hold.
            TypeError: A value of the trial is.
        """
        if self._process != os.getpid():  # after a fork
            self._begin_anew()
        ended = Ended(trial, time.time(), is_stopped, source)
        lines = b"" if space in self._spaces else space_line(space)
        lines += trial_line(number, ended, self._header)
        try:
            self._append(lines)
        except FileNotFoundError:  # the study was forgotten while it ran, or the folder is gone
            self._begin_anew()
            lines = space_line(space) + trial_line(number, ended, self._header)
            self._append(lines)
        except OSError:  # part of the line may be in the file
            self._begin_anew()
            raise
        if space not in self._spaces:
            self._spaces.append(space)

    def _append(self, lines: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)  # else Windows adds \r
        path = self._path
        if path is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{self._header.study}-{uuid.uuid4().hex[:12]}{SUFFIX}"
            lines = header_line(self._header) + lines
            flags |= os.O_CREAT | os.O_EXCL
        is_due = time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS
        descriptor = os.open(path, flags, 0o666)
        try:
            while lines:
                lines = lines[os.write(descriptor, lines) :]
            if is_due and self._path is not None:
                os.fsync(descriptor)
                self._synced = time.monotonic()
        finally:
            os.close(descriptor)
        if self._path is None:
            self._path, self._synced = path, time.monotonic()
            weakref.finalize(self, _sync, path, self._process)  # at the study's end


def _sync(path: Path, process: int) -> None:
    """Wait until a file is on the disk; a fork leaves that to the process that wrote it."""
    if process != os.getpid():
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # forgotten meanwhile
        return
    try:
        os.fsync(descriptor)
    except OSError:  # the study has ended, so that a full or missing disk cannot be reported
        pass
    finally:
        os.close(descriptor)


def import_task(folder: Path, task: Task, present: Collection[str]) -> bool:
    """Record a past task as a study, and say whether it was not there.

    Args:
        folder: Folder of all records.
        task: The task.
        present: Identities of the studies that are there.

    Raises:
        OSError: The folder cannot be written.
        ValueError: A value is of a type that no file can hold.
    """
    study = digest_of([task])[:16]
    if study in present:
        return False
    # Values of a `Task` are larger where they are better.
    header = Header(study=study, name=task.name, framework="import", directions=("maximize",))
    recorder = Recorder(folder, header)
    for number, trial in enumerate(task.trials()):
        recorder.write(number, trial, task.space)
    return True
