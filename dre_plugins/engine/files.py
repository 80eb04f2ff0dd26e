"""Write files so that an interruption, a full disk or a power cut leaves the old one whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Name a file to write, which takes the place of the old one at the end of the block.

    If the block raises, nothing is left of it.

    Args:
        path: The file to be written or replaced.
    """
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # a disk over the network may say only now that it is full
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
