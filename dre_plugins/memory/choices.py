"""The past studies that a study learns from: chosen once, stored, the same for all its workers.

Priors may have been trained ahead, one for each group of studies whose search spaces overlap.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import math
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dre_plugins.engine.files import regular
from dre_plugins.memory.index import Entry, Index
from dre_plugins.memory.memory import STUDIES, Memory
from dre_plugins.memory.priors import digest_of, trained_prior, write_once
from dre_plugins.memory.records import read_study
from dre_plugins.memory.selection import MAX_STUDIES, newest_with, overlap, select, usable
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.spaces.merging import merged_space, unify_names

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# A prior trained ahead is used if at least this share of the chosen studies was in its training.
MIN_KNOWN = 0.8
# Up to this number, a study learns from all of them when it begins: no prior is trained ahead.
MIN_STUDIES_AHEAD = MAX_STUDIES
# Largest number of studies of a prior trained ahead, the newest: it bounds the time to read them.
MAX_STUDIES_AHEAD = 1000
# Errors of a full disk, of a used up quota, and of NFS that has become read only.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def prior_for(
    memory: Memory, study: str, space: SearchSpace | str, logger: logging.Logger
) -> Prior | None:
    """Return the prior that a study starts from, None if no past study helps.

    The choice is stored by the study's identity and the names of its parameters. All workers of a
    study, also after a restart, use the first choice, whatever was recorded meanwhile. If its
    prior was deleted, or the memory is full or read only, the choice is made anew. `space` has the
    parameters of the study, or is the name of the only one that it has shown so far.
    """
    if not memory.is_read_only:
        try:
            return _prior_for(memory, memory, study, space, logger)
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
    with TemporaryDirectory() as folder:
        return _prior_for(memory, Memory(Path(folder)), study, space, logger)


def _prior_for(
    memory: Memory, kept: Memory, study: str, space: SearchSpace | str, logger: logging.Logger
) -> Prior | None:
    """Return the prior of past studies of `memory`; it and the choice are stored in `kept`."""
    names = [space] if isinstance(space, str) else sorted(space.names)
    key = hashlib.sha256(json.dumps(names).encode()).hexdigest()[:12]
    path = kept.choices / f"{study}-{key}.json"
    chosen = _read(path, kept)
    if chosen is None:
        with suppress(PermissionError):  # of files that only the colleagues who own them delete
            kept.shrink()
        index = memory.index()
        likely = newest_with(index, space, without=study) if isinstance(space, str) else space
        entries = [] if likely is None else select(index, likely, without=study)
        file, used = _pretrained(memory, entries)
        if file is None:
            tasks, read = tasks_of(entries, logger)
            file = trained_prior(kept.priors, tasks, logger) if read else None
            used = [entry for entry in entries if entry in read] if file is not None else []
        elif kept is not memory:
            kept.priors.mkdir()
            shutil.copy(file, kept.priors)
        newest = sorted(used, key=lambda entry: -entry.header.began)
        content = {
            "prior": file and file.name,
            "studies": [entry.header.study for entry in used],
            "names": [entry.header.dated for entry in newest],
        }
        with write_once(path) as unfinished:
            unfinished.write_text(json.dumps(content), encoding="utf-8")
        chosen = _read(path, kept)  # another worker may have written first
    if chosen is None or chosen["prior"] is None:
        return None
    from dre_plugins.transfer.prior import Prior  # imports torch

    prior = kept.priors / Path(chosen["prior"]).name  # nothing outside the folder
    with suppress(PermissionError):  # a colleague's file
        os.utime(prior)  # priors that were used last are kept
    try:
        return replace(Prior.load(prior), past_studies=tuple(chosen.get("names", ())))
    except DAMAGES:
        prior.unlink()  # the next study trains it again
        raise


def _pretrained(memory: Memory, entries: Sequence[Entry]) -> tuple[Path | None, Sequence[Entry]]:
    """Return the prior trained ahead that knows most of the studies, and those it was trained on.

    It must know enough of them. Those that say nothing, which it could not use, count as known.
    """
    best: tuple[Path | None, Sequence[Entry]] = (None, [])
    n_wanted = max(1, math.ceil(MIN_KNOWN * len(entries)))
    for path in sorted(memory.priors.glob(f"*{STUDIES}")):
        try:
            studies = json.loads(regular(path).read_bytes())
            remembered = [entry for entry in entries if entry.header.study in studies]
            trained_on = [entry for entry in remembered if studies[entry.header.study]]
        except (FileNotFoundError, *DAMAGES):
            continue
        prior = path.with_suffix(".safetensors")
        if len(remembered) >= n_wanted and prior.is_file():
            best, n_wanted = (prior, trained_on), len(remembered) + 1
    return best


def tasks_of(entries: Sequence[Entry], logger: logging.Logger) -> tuple[MetaDataset, list[Entry]]:
    """Return studies as past tasks, and those it could use; `skipped` counts the others.

    They are sorted by what was tried in them, so that the same studies, run again with another
    memory, train the same prior.
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
            used.append((task, entry))
    used.sort(key=lambda pair: digest_of([replace(pair[0], name="")]))
    tasks = [task for task, _ in used]
    return MetaDataset.of(tasks, source="memory", skipped=+skipped), [entry for _, entry in used]


def _read(path: Path, memory: Memory) -> dict[str, Any] | None:
    """Return the stored choice, None if there is none. A choice without its prior is deleted."""
    try:
        chosen: dict[str, Any] = json.loads(regular(path).read_bytes())
        prior = chosen["prior"]
        if prior is None or (memory.priors / Path(prior).name).is_file():
            return chosen
    except FileNotFoundError:
        return None
    except DAMAGES:
        pass
    path.unlink(missing_ok=True)
    return None


# ---- trained ahead


def groups_of(index: Index) -> list[tuple[SearchSpace, list[Entry]]]:
    """Return the union of the search spaces of each group, and its studies, the newest first.

    The largest group comes first. A space joins a group if it and the largest space of the group
    share at least half of the parameters of either, unless a parameter is a number in one of them
    and a word in another.
    """
    entries = usable(index)
    spaces = {digest: index.space(digest) for digest in {entry.space for entry in entries}}
    searched = [digest for digest in spaces if spaces[digest].n_parameters]
    order = sorted(searched, key=lambda digest: (-spaces[digest].n_parameters, digest))
    merged: list[tuple[SearchSpace, SearchSpace, set[str]]] = []
    for digest in order:
        space = spaces[digest]
        for place, (largest, union, digests) in enumerate(merged):
            if min(overlap(largest, space), overlap(space, largest)) > 0.0:
                with suppress(ValueError):  # the spaces have no union
                    wider = merged_space(unify_names([union, space]))
                    merged[place] = largest, wider, {*digests, digest}
                    break
        else:
            merged.append((space, space, {digest}))
    groups = [
        (union, [entry for entry in entries if entry.space in digests])
        for _, union, digests in merged
    ]
    return sorted(groups, key=lambda group: -len(group[1]))


def pretrain(memory: Memory, entries: Sequence[Entry], logger: logging.Logger) -> Path | None:
    """Return the file of a group's prior, trained if there is none; None if no prior helps."""
    entries = entries[:MAX_STUDIES_AHEAD]
    tasks, read = tasks_of(entries, logger)
    path = trained_prior(memory.priors, tasks, logger, is_pretraining=True)
    if path is not None and not path.with_suffix(STUDIES).exists():
        used = {entry.header.study for entry in read}
        studies = {entry.header.study: entry.header.study in used for entry in entries}
        with write_once(path.with_suffix(STUDIES)) as unfinished:
            unfinished.write_text(json.dumps(studies))
    return path
