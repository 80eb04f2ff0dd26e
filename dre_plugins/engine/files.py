"""Files: read only if they are files, remembered by content, written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

Made = TypeVar("Made")

_OTHERS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Bytes of a file's name are at most 255; some are for what `beside` adds.
_LONGEST = 50


def regular(path: str | os.PathLike[str]) -> Path:
    """Return a path, unless opening it would wait for a writer, or reading it would never end.

    What is missing, or is a folder, is left to what opens it. An OSError says that the path leads
    to a named pipe, a socket or a device.
    """
    path = Path(path)
    kind = _OTHERS.get(_kind_of(path))
    if kind is not None:
        raise OSError(errno.EINVAL, f"It is {kind}, no file", str(path))
    return path


def beside(path: Path, suffix: str) -> Path:
    """Return a new name in the same folder, which no other thread or process has."""
    return path.with_name(f".{path.name[:_LONGEST]}.{uuid.uuid4().hex}{suffix}")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Name a file to write, which takes the place of the old one at the end of the block.

    If the block raises, nothing is left of it. An interruption, a full disk or a power cut leaves
    the old file whole. Of several writers at once, the last one counts; who reads meanwhile gets
    the old file or the new one. A symbolic link stays one, and a file keeps its permissions. An
    OSError says that the path leads to no file, or cannot be written.
    """
    path = regular(os.path.realpath(path))
    unfinished = beside(path, ".tmp")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # a disk over the network may say only now that it is full
        _keep_permissions(path, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _keep_permissions(old: Path, new: Path) -> None:
    try:
        before = old.stat()
    except FileNotFoundError:
        return  # those of a new file: what the umask leaves
    new.chmod(stat.S_IMODE(before.st_mode))
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only an administrator writes files of others
            os.chown(new, before.st_uid, before.st_gid)


def _kind_of(path: Path) -> int:
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError):  # ValueError: a name with a null character
        return 0


class ByContent(Generic[Made]):
    """Make something of the content of files, and remember it by the content's hash.

    A file that was written anew is read anew, also if its path, its size and its time are the
    same. What is read and what is hashed are the same bytes, even if the file is written
    meanwhile. `make` takes the name of a file, for messages, and its content; the last `n_kept`
    are remembered.
    """

    def __init__(self, make: Callable[[str, bytes], Made], n_kept: int) -> None:
        self._make = make
        self._n_kept = n_kept
        self._made: OrderedDict[str, Made] = OrderedDict()
        self._lock = Lock()

    def of(self, path: str | os.PathLike[str]) -> tuple[str, Made]:
        """Return the hash of a file's content and what is made of it; it may raise an OSError."""
        content = regular(path).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        made = self.get(digest)
        if made is None:
            made = self._make(os.fspath(path), content)
            self.keep(digest, made)
        return digest, made

    def keep(self, digest: str, made: Made) -> None:
        """Remember what stands for the content with this hash."""
        with self._lock:
            self._made[digest] = made
            while len(self._made) > self._n_kept:
                self._made.popitem(last=False)

    def get(self, digest: str) -> Made | None:
        """Return what was made of a content with this hash; None if it is not remembered."""
        with self._lock:
            if digest in self._made:
                self._made.move_to_end(digest)
            return self._made.get(digest)
