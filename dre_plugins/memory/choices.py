"""The past studies that a study learns from: chosen once, stored, the same for all its workers."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dre_plugins.engine.files import make_folder, regular, sibling_path
from dre_plugins.memory.index import Entry
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.records import digest_of, has_grown, read_study
from dre_plugins.memory.selection import newest_with, select
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.past_tasks import PastTasks

# Errors of a full disk, of a used up quota, of a limit on the size of files, and of NFS that has
# become read only.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def past_tasks_for(
    memory: Memory, study: str, space: SearchSpace | str, logger: logging.Logger
) -> PastTasks | None:
    """Return the past studies that a study learns from, None if none helps.

    The choice is stored by the study's identity and the names of its parameters, and the trials of
    the chosen studies by their content. All workers of a study, also after a restart, use the
    first choice, whatever was recorded meanwhile. If its trials were deleted, or the memory is
    full or read only, the choice is made anew. `space` has the parameters of the study, or is the
    name of one of those that its first trial shows.
    """
    if not memory.is_read_only:
        try:
            return _stored_choice(memory, study, space, logger)
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
    chosen, _ = _choose(memory, study, space, logger)
    return PastTasks(chosen.tasks) if len(chosen) else None


def _stored_choice(
    memory: Memory, study: str, space: SearchSpace | str, logger: logging.Logger
) -> PastTasks | None:
    """Return the past studies that were chosen first; if none were yet, choose and store them."""
    names = [space] if isinstance(space, str) else sorted(space.names)
    key = hashlib.sha256(json.dumps(names).encode()).hexdigest()[:12]
    path = memory.choices / f"{study}-{key}.json"
    stored = _read(path, memory)
    if stored is None:
        with suppress(PermissionError):  # of files that only the colleagues who own them delete
            memory.shrink()
        chosen, studies = _choose(memory, study, space, logger)
        name = f"{digest_of(chosen.tasks)}.npz" if studies else None
        if name is not None:
            with write_once(memory.tasks / name) as unfinished:
                chosen.save(unfinished)
        content = {"tasks": name, "studies": studies}
        with write_once(path) as unfinished:
            unfinished.write_text(json.dumps(content), encoding="utf-8")
        stored = _read(path, memory)  # another worker may have written first
    if stored is None or stored["tasks"] is None:
        return None
    file = memory.tasks / Path(stored["tasks"]).name  # nothing outside the folder
    with suppress(PermissionError):  # a colleague's file
        os.utime(file)  # those that were used last are kept
    try:
        return PastTasks(MetaDataset.load(file).tasks)
    except DAMAGES:
        file.unlink()  # the next study writes it again
        raise


def _choose(
    memory: Memory, study: str, space: SearchSpace | str, logger: logging.Logger
) -> tuple[MetaDataset, list[str]]:
    """Return past studies that help, named by title and date for explanations, and identities.

    A study with no other trials than the present one is a copy of it, or what it was copied from.
    """
    index = memory.index()
    if index.damaged:
        _warn_of_damage(memory.records, tuple(index.damaged), study, logger)
    likely = newest_with(index, space, without=study) if isinstance(space, str) else space
    entries = [] if likely is None else select(index, likely, without=study)
    metadata, used = tasks_of(entries, logger)
    present, _ = tasks_of([e for e in index.entries if e.header.study == study], logger)
    dated, studies = [], []
    for task, entry in zip(metadata, used, strict=True):
        if not any(has_grown(replace(own, name=task.name), task) for own in present):
            dated.append(replace(task, name=entry.header.dated))
            studies.append(entry.header.study)
    return MetaDataset.of(dated), studies


@cache
def _warn_of_damage(
    folder: Path, names: Sequence[str], study: str, logger: logging.Logger
) -> None:
    """Warn a study once, which may choose several times as it shows new parameters."""
    text = "Records in %s are left out, as damaged, unreadable or of a newer version: %s."
    logger.warning(text, folder, ", ".join(names))


def tasks_of(entries: Sequence[Entry], logger: logging.Logger) -> tuple[MetaDataset, list[Entry]]:
    """Return studies as past tasks, and those it could use; `skipped` counts the others.

    They are sorted by what was tried in them, so that the same studies, run again with another
    memory, lead to the same suggestions.
    """
    skipped: Counter[str] = Counter()
    used: list[tuple[Task, Entry]] = []
    for entry in entries:
        if len(entry.header.directions) != 1:
            skipped["study with several objectives"] += 1
            continue
        try:
            study = read_study(entry.files)
            task = study.task()
        except (OSError, *DAMAGES) as error:
            skipped["study that cannot be read"] += 1
            logger.warning("Study %r of the memory is left out: %s", entry.header.title, error)
            continue
        skipped["damaged line"] += study.n_damaged
        skipped["study without a complete, feasible trial"] += not task.n_complete
        skipped["study without parameters"] += bool(task.n_complete and not task.space.names)
        if task.n_complete and task.space.names:
            differ = bool(task.lists())
            skipped["study whose trials are all equal"] += not differ
            if differ:
                used.append((task, entry))
    used.sort(key=lambda pair: digest_of([replace(pair[0], name="")]))
    tasks = [task for task, _ in used]
    return MetaDataset.of(tasks, source="memory", skipped=+skipped), [entry for _, entry in used]


def _read(path: Path, memory: Memory) -> dict[str, Any] | None:
    """Return the stored choice, None if there is none. A choice without its trials is deleted."""
    try:
        chosen: dict[str, Any] = json.loads(regular(path).read_bytes())
        tasks = chosen["tasks"]
        if tasks is None or (memory.tasks / Path(tasks).name).is_file():
            return chosen
    except FileNotFoundError:
        return None
    except DAMAGES:
        pass
    path.unlink(missing_ok=True)
    return None


@contextmanager
def write_once(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write, which is renamed at the end unless the path exists by then.

    Where a file system has no hard links, the last of several writers at once wins.
    """
    make_folder(path.parent)
    unfinished = sibling_path(path, path.suffix)
    try:
        yield unfinished
        try:
            os.link(unfinished, path)
        except FileExistsError:
            pass
        except OSError:
            if not path.exists():
                os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
