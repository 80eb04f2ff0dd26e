"""Past tasks as a folder of arrays that are mapped, not read: for what does not fit into memory.

`header.json` holds names, search spaces and lengths, four `.npy` files of one axis each hold the
evaluations of one task after the other. Only what is looked at comes from disk.

A folder that is written anew gets its arrays in a folder inside, which the header names: replacing
the header, one file, replaces everything at once. So several processes may write at the same time,
the last one counts, and a crash leaves what was there before.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dre_plugins.engine.files import beside, regular, replacing
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES, MetadataError, damaged
from dre_plugins.transfer.spaces.plain import space_from_plain, space_to_plain

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import Task

SUFFIX = ".tasks"

_HEADER = "header.json"
# Entry of the header: the folder inside with the arrays; where it is absent they lie beside it.
_PLACE = "arrays"
# Seconds after which what somebody was writing counts as left behind.
_MAX_SILENCE = 3600.0
# What is stored of every evaluation; `rungs` one step after the other.
_ARRAYS: Final[Mapping[str, type]] = {
    "units": np.float64,
    "values": np.float64,
    "failed": np.bool_,
    "rungs": np.float64,
}


def write(path: Path, tasks: Iterable[Task], about: Mapping[str, Any]) -> int:
    """Write tasks one by one, so that they need not be in memory together.

    An older folder stays whole until the new one is. Several threads or processes may write at
    once: the last one counts.

    Args:
        path: A folder whose name ends in ".tasks"; it is replaced if it holds tasks.
        tasks: What to write, each with a name of its own.
        about: Further entries of the header, JSON-ready.

    Returns:
        How many tasks were written.

    Raises:
        ValueError: The path is something else, two tasks have the same name, units are none, or
            a category is of a type that no file holds.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not (path / _HEADER).is_file():
        raise ValueError(f"{str(path)!r} exists and holds no tasks; name another folder.")
    is_new = not path.exists()
    unfinished = beside(path, ".tmp") if is_new else path / uuid.uuid4().hex
    unfinished.mkdir()
    try:
        header = {**about, **_write_arrays(unfinished, tasks)}
        if is_new:
            _write_header(unfinished, header)
            is_new = _moved(unfinished, path)
            if not is_new:  # another process was faster
                unfinished = unfinished.rename(path / uuid.uuid4().hex)
        before = None if is_new else _place_in(path)
        if not is_new:
            _write_header(path, {**header, _PLACE: unfinished.name})
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    if before is not None:
        _remove_arrays(path, before)
    with suppress(OSError):
        _tidy(path)
    return len(header["tasks"])


def _write_header(folder: Path, header: Mapping[str, Any]) -> None:
    with replacing(folder / _HEADER) as unfinished:
        unfinished.write_text(json.dumps(header, allow_nan=False))


def _moved(unfinished: Path, path: Path) -> bool:
    """Give a folder its name, unless another process has made a folder of that name."""
    try:
        unfinished.rename(path)
    except OSError:
        if not (path / _HEADER).is_file():
            raise
        return False
    return True


def _place_in(path: Path) -> str | None:
    """Return what the header says of where the arrays are; None if it is no header."""
    try:
        place = _read_header(path).get(_PLACE, "")
    except (OSError, *DAMAGES):
        return None
    return place if place == "" or _is_place(place) else None


def _remove_arrays(path: Path, place: str) -> None:
    """Remove the arrays that a header named; who has mapped them keeps them."""
    if place == "":
        for name in _ARRAYS:
            with suppress(OSError):  # where a mapped file cannot be removed: see `_tidy`
                _file_of(path, name).unlink(missing_ok=True)
    else:
        shutil.rmtree(path / place, ignore_errors=True)


def _tidy(path: Path) -> None:
    """Remove what interrupted writers have left, if nobody has touched it for an hour.

    What is younger may be what another process is writing.
    """
    current = _place_in(path)
    left = [folder for folder in path.iterdir() if _is_place(folder.name)]
    left = [folder for folder in left if folder.name != current]
    name = re.escape(path.name)
    left += [
        folder
        for folder in path.parent.iterdir()
        if re.fullmatch(rf"{name}\.\d+\.(old|tmp)|\.{name}\.[0-9a-f]{{32}}\.tmp", folder.name)
    ]
    for folder in left:
        with suppress(OSError):
            changed = [part.stat().st_mtime for part in (folder, *folder.iterdir())]
            if folder.is_dir() and max(changed) < time.time() - _MAX_SILENCE:
                shutil.rmtree(folder, ignore_errors=True)


def _is_place(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch("[0-9a-f]{32}", name) is not None


def _write_arrays(folder: Path, tasks: Iterable[Task]) -> dict[str, Any]:
    """Write the arrays, and return what the header says of them."""
    known: dict[str, int] = {}
    entries: dict[str, list[Any]] = {}
    last, place = None, 0
    with ExitStack() as stack:
        files = {n: stack.enter_context(_file_of(folder, n).open("wb")) for n in _ARRAYS}
        counts = dict.fromkeys(_ARRAYS, 0)
        for name, file in files.items():
            _write_length(file, name, 0)
        for task in tasks:
            if task.space is not last:  # tasks often share theirs
                last, place = task.space, known.setdefault(_text_of(task), len(known))
            if task.name in entries:
                raise ValueError(
                    f"Several tasks have the name {task.name!r}; MetaDataset.of numbers them."
                )
            fault = _fault(task.space, task.units, task.failed)
            if fault is not None:
                raise ValueError(
                    f"Task {task.name!r}, {fault}; give canonical units, see SearchSpace.to_units."
                )
            steps = list(task.rungs)
            entries[task.name] = [place, len(task), steps]
            blocks: dict[str, list[NDArray[Any]]] = {
                "units": [task.units],
                "values": [task.values],
                "failed": [task.failed],
                "rungs": [task.rungs[step] for step in steps],
            }
            for name, arrays in blocks.items():
                for array in arrays:
                    files[name].write(np.ascontiguousarray(array, dtype=_ARRAYS[name]).data)
                    counts[name] += array.size
            release(task)
        for name, file in files.items():
            _write_length(file, name, counts[name])
            file.flush()
            os.fsync(file.fileno())  # before a header names it
    return {
        "spaces": [json.loads(space) for space in known],
        "tasks": [[name, *entry] for name, entry in entries.items()],
    }


def _text_of(task: Task) -> str:
    """Return the search space of a task as JSON."""
    try:
        return json.dumps(space_to_plain(task.space), allow_nan=False)
    except ValueError as error:
        raise ValueError(f"Task {task.name!r}: {error}") from error


def _write_length(file: IO[bytes], name: str, length: int) -> None:
    """Write the header of an array; NumPy leaves room in it for any length."""
    file.seek(0)
    descr = npy.dtype_to_descr(np.dtype(_ARRAYS[name]))
    npy.write_array_header_1_0(file, {"shape": (length,), "fortran_order": False, "descr": descr})


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a folder.

    Raises:
        MetadataError: There is none, or it is damaged.
    """
    try:
        header = _read_header(path)
    except OSError as error:
        raise MetadataError(
            f"Cannot open {str(path)!r}: {error.strerror or error}; check the path."
        ) from error
    except DAMAGES as error:
        raise damaged(path / _HEADER, error) from error
    if not isinstance(header, dict):
        raise damaged(path / _HEADER, "it holds no object")
    place = header.get(_PLACE, "")
    if place != "" and not _is_place(place):
        raise damaged(path / _HEADER, f"{_PLACE} is {place!r}")
    return header


def _read_header(path: Path) -> Any:
    return json.loads(regular(path / _HEADER).read_bytes())


def read(path: Path, header: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what `Task` takes, of each task; arrays are mapped.

    All evaluations are looked at once, a task at a time, so that a training does not stumble
    over a damaged one hours later.

    Raises:
        MetadataError: An array is missing, or its type, length or content is wrong.
    """
    try:
        spaces = [space_from_plain(space) for space in header["spaces"]]
        known = [
            (str(name), spaces[space], int(n), [float(step) for step in steps])
            for name, space, n, steps in header["tasks"]
        ]
    except DAMAGES as error:
        raise damaged(path / _HEADER, error) from error
    lengths = {
        "units": sum(n * space.n_parameters for _, space, n, _ in known),
        "values": sum(n for _, _, n, _ in known),
        "failed": sum(n for _, _, n, _ in known),
        "rungs": sum(n * len(steps) for _, _, n, steps in known),
    }
    place = path / header.get(_PLACE, "")
    arrays = {name: _mapped(place, name, length) for name, length in lengths.items()}
    at = dict.fromkeys(_ARRAYS, 0)

    def following(name: str, length: int) -> NDArray[Any]:
        at[name] += length
        return arrays[name][at[name] - length : at[name]]

    for name, space, n, steps in known:
        units = following("units", n * space.n_parameters).reshape(n, space.n_parameters)
        failed = following("failed", n)
        fault = _fault(space, units, failed)
        if fault is not None:
            raise damaged(_file_of(place, "units"), f"task {name!r}, {fault}")
        yield {
            "name": name,
            "space": space,
            "units": units,
            "values": following("values", n),
            "failed": failed,
            "rungs": {step: following("rungs", n) for step in steps},
        }


def _mapped(path: Path, name: str, length: int) -> NDArray[Any]:
    file = _file_of(path, name)
    try:
        array = np.load(regular(file), mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise MetadataError(
            f"Cannot open {str(file)!r}: {error.strerror or error}; copy the folder again."
        ) from error
    except DAMAGES as error:
        raise damaged(file, error) from error
    dtype = np.dtype(_ARRAYS[name])
    if array.dtype != dtype or array.shape != (length,):
        raise damaged(
            file, f"{array.dtype} of shape {array.shape} where the header has {dtype} ({length},)"
        )
    return np.asarray(array)


def _fault(
    space: SearchSpace, units: NDArray[np.float64], failed: NDArray[np.bool_]
) -> str | None:
    """Say what is wrong with configurations, None if nothing is.

    A unit is in [-1, 2]. It is NaN only where a parameter can be inactive, or a trial has failed
    before it had one.
    """
    may_miss = {condition.child for condition in space.conditions} | space.optional
    is_legal = (units >= -1.0) & (units <= 2.0)
    missing = np.isnan(units)
    is_legal |= missing & (np.isin(space.names, list(may_miss)) | failed[:, None])
    if is_legal.all():
        return None
    row, column = np.argwhere(~is_legal)[0].tolist()
    return f"evaluation {row}: the unit of {space.names[column]!r} is {units[row, column]}"


def release(task: Task) -> None:
    """Take what was read of a mapped task out of memory; it is read again when it is needed.

    The system would do so by itself, but not before memory is short.
    """
    for array in (task.units, task.values, task.failed, *task.rungs.values()):
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


def _file_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"
