"""Append-only files of evaluations: one for each learner and data set, a line of JSON each."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def path_of(folder: Path, learner: str, dataset: str) -> Path:
    """Give the file of a learner and a data set."""
    return folder / learner / f"{dataset.replace('/', '--')}.jsonl"


def read(path: Path) -> list[dict[str, Any]]:
    """Read all complete lines; a missing file has none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Append one record."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def drop_incomplete_line(path: Path) -> None:
    """Remove what a killed process left of its last line."""
    if path.exists():
        content = path.read_bytes()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            with path.open("r+b") as file:
                file.truncate(complete)


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Hold a file for this process; yield False if another process holds it.

    The operating system frees the claim of a process that ends in whatever way.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
