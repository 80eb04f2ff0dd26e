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
from pathlib import Path
from typing import Any, NamedTuple

from dre_plugins.files import atomic_write, regular
from dre_plugins.memory.recorded_study import Header, is_time
from dre_plugins.memory.records import FAILED, SUFFIX, TRIAL, RecordError, parsed, read_lines
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES

FORMAT = "dre-plugins/memory-index"
VERSION = 7


@dataclass(frozen=True)
class Entry:
    """Hold the index entry of a study, without its trials."""

    header: Header
    files: tuple[Path, ...]  # its records
    domains: Mapping[str, Any]  # its parameters by name, as `SearchSpace.to_dict` has them
    digest: str  # of the parameters, in whatever order
    n_trials: int  # number of ended trials
    have_failed: bool  # whether all of them have
    last: float  # time when the last one ended, in seconds since 1970
    n_bytes: int  # size of its records

    def space(self) -> SearchSpace:
        """Return the parameters as a search space without conditions."""
        return SearchSpace.from_dict({"domains": self.domains, "conditions": [], "optional": []})


@dataclass(frozen=True)
class Index:
    """Hold what is known of the records in a folder."""

    entries: list[Entry]  # the studies, the one that has changed last first
    damaged: list[str]  # names of the records that cannot be read; an empty one is being begun


class _IndexedRecord(NamedTuple):
    """Hold what the index knows of a record."""

    size: int  # in bytes
    changed: int | None  # time of the last change in nanoseconds; None: it must be read again
    summary: dict[str, Any] | None  # see `_summary`; None: it cannot be read


def read_index(folder: Path, path: Path) -> Index:
    """Return an up-to-date index, and write it if it has changed and the folder can be written."""
    old = _read(path)
    records: dict[str, _IndexedRecord] = {}
    for name, size, changed in sorted(_files(folder)):
        before = old.get(name)
        if before is not None and (before.size, before.changed) == (size, changed):
            records[name] = before
            continue
        try:
            records[name] = _IndexedRecord(size, changed, _summary(folder / name))
        except OSError:  # it may be readable later
            records[name] = _IndexedRecord(size, None, None)
    if records != old:
        content = json.dumps(records, allow_nan=False, separators=(",", ":")).encode()
        # Without it, the records are only read again: on a full disk, or one that is read only.
        with suppress(OSError), atomic_write(path) as unfinished:
            unfinished.write_bytes(_head(content) + content)
    studies: dict[str, dict[Path, tuple[int, dict[str, Any]]]] = {}
    for name, (size, _, summary) in records.items():
        if summary is not None:
            studies.setdefault(summary["header"]["study"], {})[folder / name] = size, summary
    entries = [_entry(of_study) for of_study in studies.values()]
    entries.sort(key=lambda entry: (-entry.last, entry.header.study))
    damaged = [name for name, record in records.items() if record.summary is None and record.size]
    return Index(entries, damaged)


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
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


def _read(path: Path) -> dict[str, _IndexedRecord]:
    """Return the records of an index; none if there is none, or it cannot be read."""
    try:
        head, line, content = regular(path).read_bytes().partition(b"\n")
        files = json.loads(content) if head + line == _head(content) else {}
        return {name: _IndexedRecord(*known) for name, known in files.items()}
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
    spaces, rows, numbers, have_failed = [], [], set(), True
    for line in lines:
        if trial := TRIAL.match(line):
            rows.append(line)
            numbers.add(int(trial[1]))
            have_failed &= line.startswith(FAILED, trial.end())
            continue
        with suppress(*DAMAGES):  # counted where the study is read
            space = parsed(line)["space"]
            SearchSpace.from_dict(space)  # one that cannot be rebuilt would stop every study
            spaces.append(space["domains"])
    if not spaces:
        return None
    domains = {name: domain for space in spaces for name, domain in space.items()}
    digest = hashlib.sha256(json.dumps(domains, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "header": asdict(header),
        "domains": domains,
        "space": digest,
        "trials": sorted(numbers),
        "have_failed": have_failed,
        "last": _last(rows, header),
    }


def _last(rows: list[bytes], header: Header) -> float:
    """Return when the last whole trial ended."""
    for row in reversed(rows):
        with suppress(*DAMAGES):
            if is_time(ended := parsed(row)["ended"]):
                return float(ended)
    return float(header.began)


def _entry(records: Mapping[Path, tuple[int, dict[str, Any]]]) -> Entry:
    """Return the entry of a study, from the size and the summary of each of its records."""
    summaries = [summary for _, summary in records.values()]
    # A process whose trials had no parameters says nothing about those of the study.
    newest = max(summaries, key=lambda summary: (bool(summary["domains"]), summary["last"]))
    oldest = min(summaries, key=lambda summary: summary["header"]["began"])
    return Entry(
        header=Header.from_dict(oldest["header"]),
        files=tuple(records),
        domains=newest["domains"],
        digest=newest["space"],
        # A trial that was recorded again, as after a restart, counts once.
        n_trials=len(set().union(*(summary["trials"] for summary in summaries))),
        have_failed=all(summary["have_failed"] for summary in summaries),
        last=max(summary["last"] for summary in summaries),
        n_bytes=sum(size for size, _ in records.values()),
    )
