"""An index of the recorded studies and their parameters, so that not all must be read.

The index can be rebuilt from the records at any time. It is read, updated where the size or the
time of a record has changed, and replaced as a whole: a reader gets the old or the new one, and of
two writers the later one wins.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dre_plugins.engine.files import atomic_write, regular
from dre_plugins.memory.recorded_study import Header, is_time
from dre_plugins.memory.records import SUFFIX, TRIAL, RecordError, parsed, read_lines
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES

FORMAT = "dre-plugins/memory-index"
VERSION = 5


@dataclass(frozen=True)
class Entry:
    """Hold the index entry of a study, without its trials."""

    header: Header
    files: tuple[Path, ...]  # its records
    space: str  # digest of its parameters, see `Index.space`
    n_trials: int  # number of ended trials
    last: float  # time when the last one ended, in seconds since 1970
    n_bytes: int  # size of its records


class Index:
    """Hold size, time and `_summary` of each record in a folder, by its name."""

    def __init__(self, folder: Path, files: Mapping[str, list[Any]]) -> None:
        self._folder = folder
        self._files = files
        summaries = [summary for _, _, summary in files.values() if summary is not None]
        self._spaces = {summary["space"]: summary["domains"] for summary in summaries}

    @property
    def damaged(self) -> list[str]:
        """Return the names of the records that cannot be read; an empty one is being begun."""
        files = self._files.items()
        return [name for name, (size, _, summary) in files if summary is None and size]

    @cached_property
    def entries(self) -> list[Entry]:
        """Return the studies, the one that has changed last first."""
        parts: dict[str, list[tuple[Path, int, Any]]] = {}
        for name, (size, _, summary) in sorted(self._files.items()):
            if summary is not None:
                study = summary["header"]["study"]
                parts.setdefault(study, []).append((self._folder / name, size, summary))
        entries = [_entry(records) for records in parts.values()]
        return sorted(entries, key=lambda entry: (-entry.last, entry.header.study))

    def names(self, digest: str) -> list[str]:
        """Return the names of the parameters of a search space."""
        return list(self._spaces[digest])

    def space(self, digest: str) -> SearchSpace:
        """Return the parameters of a search space, without conditions."""
        domains = self._spaces[digest]
        return SearchSpace.from_dict({"domains": domains, "conditions": [], "optional": []})


def read_index(folder: Path, path: Path) -> Index:
    """Return an up-to-date index, and write it if it has changed and the folder can be written."""
    old = _read(path)
    files: dict[str, list[Any]] = {}
    for name, size, changed in sorted(_records(folder)):
        before = old.get(name)
        if before is not None and before[:2] == [size, changed]:
            files[name] = before
            continue
        try:
            files[name] = [size, changed, _summary(folder / name)]
        except OSError:  # no damage: the time None says that it must be read again
            files[name] = [size, None, None]
    if files != old:
        content = json.dumps(files, allow_nan=False, separators=(",", ":")).encode()
        # Without it, the records are only read again: on a full disk, or one that is read only.
        with suppress(OSError), atomic_write(path) as unfinished:
            unfinished.write_bytes(_head(content) + content)
    return Index(folder, files)


def _records(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of the records."""
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    found = entry.stat()
                    yield entry.name, found.st_size, found.st_mtime_ns


def _read(path: Path) -> dict[str, list[Any]]:
    """Return the files of an index; none if there is none, or it cannot be read."""
    try:
        head, line, content = regular(path).read_bytes().partition(b"\n")
        return dict(json.loads(content)) if head + line == _head(content) else {}
    except (OSError, *DAMAGES):  # on NFS, one that another machine replaces becomes stale
        return {}


def _head(content: bytes) -> bytes:
    """Return the first line of an index; by the digest, damage shows wherever it is."""
    digest = hashlib.sha256(content).hexdigest()
    return f'{{"format": "{FORMAT}", "version": {VERSION}, "digest": "{digest}"}}\n'.encode()


def _summary(path: Path) -> dict[str, Any] | None:
    """Return a summary of a record, None if it is damaged or has no search space."""
    try:
        header, lines = read_lines(path)
    except RecordError:
        return None
    spaces, rows, numbers = [], [], set()
    for line in lines:
        if trial := TRIAL.match(line):
            rows.append(line)
            numbers.add(int(trial[1]))
            continue
        with suppress(*DAMAGES):  # counted where the study is read
            space = parsed(line)["space"]
            SearchSpace.from_dict(space)  # one that cannot be rebuilt would stop every study
            spaces.append(space["domains"])
    if not spaces:
        return None
    domains = {name: domain for space in spaces for name, domain in space.items()}
    digest = hashlib.sha256(json.dumps(domains).encode()).hexdigest()[:16]
    return {
        "header": asdict(header),
        "domains": domains,
        "space": digest,
        "trials": sorted(numbers),
        "last": _last(rows, header),
    }


def _last(rows: list[bytes], header: Header) -> float:
    """Return when the last whole trial ended."""
    for row in reversed(rows):
        with suppress(*DAMAGES):
            if is_time(ended := parsed(row)["ended"]):
                return float(ended)
    return float(header.began)


def _entry(records: list[tuple[Path, int, Any]]) -> Entry:
    # A process whose trials had no parameters says nothing about those of the study.
    newest = max(records, key=lambda record: (bool(record[2]["domains"]), record[2]["last"]))[2]
    oldest = min(records, key=lambda record: record[2]["header"]["began"])[2]
    return Entry(
        header=Header.from_dict(oldest["header"]),
        files=tuple(path for path, _, _ in records),
        space=newest["space"],
        # A trial that was recorded again, as after a restart, counts once.
        n_trials=len(set().union(*(summary["trials"] for _, _, summary in records))),
        last=max(summary["last"] for _, _, summary in records),
        n_bytes=sum(size for _, size, _ in records),
    )
