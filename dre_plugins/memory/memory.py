"""The memory: a folder of recorded studies, and of those that each study has learnt from."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from dre_plugins.checks import is_real, require
from dre_plugins.files import delete_abandoned, regular
from dre_plugins.memory.index import Entry, Index, read_index
from dre_plugins.transfer.archive import DAMAGES

VARIABLE = "DRE_MEMORY"
# Values that were meant to turn it on or off, and would name a folder here.
_SWITCHES = ("0", "1", "true", "false", "yes", "no", "on", "off")
# Number of files of past tasks that are kept, those that were used last; one takes up to 100 KB.
MAX_TASK_FILES = 200
_BYTES_PER_MEGABYTE = 10**6


@dataclass(frozen=True, slots=True)
class Memory:
    """Name the folder in which studies are recorded and from which they learn.

    A team may share a folder on a network drive. Nothing is sent anywhere else.

    Args:
        path: The folder; it need not exist.
        max_megabytes: Largest size of all records, above 0; None: no limit. When a study begins
            that learns from them, those that were written and used longest ago are deleted.

    Raises:
        ValueError: If the path is none, or the limit is not above 0.
    """

    path: Path
    max_megabytes: float | None = None

    def __post_init__(self) -> None:
        limit = self.max_megabytes
        is_limit = limit is None or (is_real(limit) and limit > 0)
        require(is_limit, "max_megabytes", limit, "a number above 0, or None")
        require(_is_path(self.path), "path", self.path, "the path of a folder")
        with _home_for("path", self.path):
            object.__setattr__(self, "path", Path(self.path).expanduser().absolute())

    @classmethod
    def of(cls, given: bool | str | os.PathLike[str] | Memory | None) -> Memory | None:
        """Return the memory that the argument `memory` of a sampler stands for; None: no memory.

        Args:
            given: A memory or the path of its folder; True: the folder that the environment
                variable DRE_MEMORY names, without it one in the user's data folder; None: the
                folder of DRE_MEMORY, without it no memory; False: no memory.

        Raises:
            ValueError: If it or DRE_MEMORY is none of these, or the user, as in a container, has
                no home.
        """
        if isinstance(given, Memory):
            return given
        if given is None or given is True:
            named = os.environ.get(VARIABLE, "")
            require(named.lower() not in _SWITCHES, VARIABLE, named, "the path of a folder")
            given = named or given
        if given is None or given is False:
            return None
        is_path = given is True or _is_path(given)
        require(is_path, "memory", given, "True, False, None, or the path of a folder")
        with _home_for("memory", given):
            if given is True:
                return cls(platformdirs.user_data_path("dre-plugins", appauthor=False) / "memory")
            return cls(Path(given).expanduser())

    @property
    def records(self) -> Path:
        """Return the folder of the records of studies."""
        return self.path / "studies"

    @property
    def tasks(self) -> Path:
        """Return the folder of past tasks: the trials that studies have learnt from."""
        return self.path / "tasks"

    @property
    def choices(self) -> Path:
        """Return the folder of the choices: which past studies each study learns from."""
        return self.path / "choices"

    @property
    def is_read_only(self) -> bool:
        """Say whether nothing can be written, as in a snapshot or the memory of a colleague."""
        folders = (self.tasks, self.choices)
        present = [folder if folder.is_dir() else self.path for folder in folders]
        return self.path.is_dir() and not all(os.access(folder, os.W_OK) for folder in present)

    def index(self) -> Index:
        """Return the index of the studies.

        Raises:
            OSError: The folder cannot be read.
        """
        return read_index(self.records, self.path / "index.json")

    def forget(self, entries: Collection[Entry]) -> None:
        """Delete studies, and all stored past tasks, as some may be theirs.

        Raises:
            OSError: A file cannot be deleted.
        """
        for entry in entries:
            self._delete(entry)
        if entries:
            _keep_newest(self.tasks, 0)

    def shrink(self) -> None:
        """Delete what is beyond the limits: the studies and past tasks that were used longest ago.

        What killed processes have left of files is deleted as well.

        Raises:
            OSError: The memory cannot be read, or a file not deleted.
        """
        for folder in (self.path, self.records, self.tasks, self.choices):
            delete_abandoned(folder)
        _keep_newest(self.tasks, MAX_TASK_FILES)
        if self.max_megabytes is None:
            return
        entries = self.index().entries
        excess = sum(entry.n_bytes for entry in entries) - self.max_megabytes * _BYTES_PER_MEGABYTE
        if excess <= 0:
            return
        last = {entry.header.study: entry.last for entry in entries}
        for path, studies in self._chosen():
            used = _last_used(path)
            last |= {study: max(last.get(study, 0.0), used) for study in studies}
        # Of those that one study has learnt from, the oldest first.
        for entry in sorted(entries, key=lambda entry: (last[entry.header.study], entry.last)):
            if excess <= 0:
                break
            self._delete(entry)
            excess -= entry.n_bytes

    def _delete(self, entry: Entry) -> None:
        choices = self.choices.glob(f"{glob.escape(entry.header.study)}-*.json")
        for path in (*entry.files, *choices):
            path.unlink(missing_ok=True)

    def source_studies(self) -> dict[str, list[str]]:
        """Return the identities of the studies that each study has learnt from, by its own."""
        sources_of: dict[str, dict[str, None]] = {}
        for path, sources in self._chosen():
            sources_of.setdefault(path.name.rsplit("-", 1)[0], {}).update(dict.fromkeys(sources))
        return {study: [*sources] for study, sources in sources_of.items()}

    def _chosen(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield the files of the choices, and the studies that each names.

        A damaged one is replaced when its study begins again; other processes may delete any, and
        a colleague's may be unreadable.
        """
        for path in sorted(self.choices.glob("*.json")):
            with suppress(OSError, *DAMAGES):
                studies = [*json.loads(regular(path).read_bytes())["studies"]]
                if all(isinstance(study, str) for study in studies):
                    yield path, studies


@contextmanager
def _home_for(argument: str, given: object) -> Iterator[None]:
    """Raise a ValueError that names an argument if the home directory that it needs is unknown."""
    try:
        yield
    except RuntimeError as error:  # neither the environment nor the list of users has it
        remedy = "the absolute path of a folder, as there is no home directory"
        raise ValueError(f"{argument} must be {remedy}, got {given!r}.") from error


def _is_path(given: object) -> bool:
    text = os.fsdecode(given) if isinstance(given, (str, os.PathLike)) else ""
    return bool(text) and "\0" not in text


def _keep_newest(folder: Path, count: int) -> None:
    """Delete all files of past tasks but those that were used last."""
    # Names that begin with a dot are of files that another process is writing.
    files = [path for path in folder.glob("*.npz") if not path.name.startswith(".")]
    files.sort(key=_last_used)
    for path in files[: max(len(files) - count, 0)]:
        path.unlink(missing_ok=True)


def _last_used(path: Path) -> float:
    """Return when a file was written or used last, 0 if another process has deleted it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
