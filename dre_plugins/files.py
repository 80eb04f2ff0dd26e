"""Read regular files only, and write them whole or not at all."""

import errno
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OTHERS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Bytes of a file's name are at most 255; some are for what `sibling_path` adds.
_LONGEST = 50
_SIBLING = re.compile(r"\..*\.[0-9a-f]{32}\.\w+")  # its names
# Seconds after which whoever wrote to such a file was killed.
_ABANDONED = 24 * 3600.0


def regular(path: str | os.PathLike[str]) -> Path:
    """Return a path unless it is a named pipe, a socket or a device, which raises an OSError.

    Opening those might wait for a writer, or reading them never end. A path that is missing or a
    folder is returned as well; the code that opens it raises.
    """
    path = Path(path)
    try:
        kind = _OTHERS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):  # ValueError: a name with a null character
        return path
    if kind is not None:
        raise OSError(errno.EINVAL, f"It is {kind}, no file", str(path))
    return path


def make_folder(path: Path) -> None:
    """Make a folder unless it exists, with the permissions of the one that it is in.

    Whoever may write to the folder that a team shares may write to folders in it, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir()
    except FileExistsError:
        return
    with suppress(OSError):  # some network drives have none to set
        path.chmod(stat.S_IMODE(path.parent.stat().st_mode))


def sibling_path(path: Path, suffix: str) -> Path:
    """Return a new name in the same folder, which no other thread or process has."""
    return path.with_name(f".{path.name[:_LONGEST]}.{uuid.uuid4().hex}{suffix}")


def delete_abandoned(folder: Path) -> None:
    """Delete files under a name of `sibling_path` that nobody has written to for a day."""
    for path in folder.glob(".*"):
        with suppress(OSError):  # another process was faster, or it is a colleague's file
            if _SIBLING.fullmatch(path.name) and time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file to write, which replaces the old file at the end of the block.

    If the block raises, the temporary file is deleted. An interruption, a full disk or a power cut
    leaves the old file whole. Of several writers, the last one wins; a reader gets the old file or
    the new one. A symbolic link stays one, and a file keeps its permissions. An OSError says that
    the path is no regular file, or cannot be written.
    """
    path = regular(os.path.realpath(path))
    unfinished = sibling_path(path, ".tmp")
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # a network disk may report only now that it is full
        _keep_permissions(path, unfinished)
        os.replace(unfinished, path)
    except OSError as error:
        if error.filename in (None, str(unfinished)):  # a full disk names no file
            error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def _keep_permissions(old: Path, new: Path) -> None:
    try:
        before = old.stat()
    except FileNotFoundError:
        return  # a new file has the permissions of the umask
    new.chmod(stat.S_IMODE(before.st_mode))
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only an administrator writes files of others
            os.chown(new, before.st_uid, before.st_gid)
