"""The access of one study to a memory: past studies to learn from, and its own record.

The past studies are chosen once and stored, so that they are the same for all workers of a study,
also after a restart, whatever was recorded meanwhile.
"""

import errno
import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from dre_plugins.files import make_folder, regular, sibling_path
from dre_plugins.memory.memory import Memory
from dre_plugins.memory.recorded_study import Header
from dre_plugins.memory.records import Recorder, digest_of, has_grown
from dre_plugins.memory.selection import newest_with, select, tasks_of, usable, words_of
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.past_tasks import PastTasks

# Errors of reading and writing in a folder that is full, gone, or written by others.
_FAILURES = (OSError, *DAMAGES)
# Errors of a full disk, of a used up quota, of a limit on the size of files, and of NFS that has
# become read only.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class StudyMemory:
    """Learn from past studies once, and record ended trials.

    No failure to read or write ends a study: the first one is warned of, all are counted. The
    counters `stats`, which may be replaced, are "memory_errors" and "past_studies" that were
    learnt from.
    """

    def __init__(
        self, memory: Memory, header: Header, *, stats: Counter[str], logger: logging.Logger
    ) -> None:
        self._memory = memory
        self._header = header
        self.stats = stats
        self._logger = logger
        self._recorder = Recorder(memory.records, header)

    def record(
        self,
        number: int,
        make: Callable[[], tuple[Trial, SearchSpace]],
        *,
        is_stopped: bool = False,
        source: str = "",
    ) -> None:
        """Record the trial and search space that `make` returns, see `Recorder.write`.

        If `make` raises, that counts as a failure to write.
        """
        with self._surviving("written"):
            self._recorder.write(number, *make(), is_stopped=is_stopped, source=source)

    def unrecorded(self, numbers: Collection[int]) -> list[int]:
        """Return which numbers of ended trials no record has; none if that cannot be read."""
        missing: set[int] = set()
        if numbers:
            with self._surviving("read"):
                missing = {*numbers} - self._recorder.numbers()
        return sorted(missing)

    @contextmanager
    def _surviving(self, failed: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            count_failure(self._memory, failed, error, self.stats, self._logger)

    # ---- what is learnt from

    def past_tasks_for(self, space: SearchSpace | str) -> PastTasks | None:
        """Return the past studies that help, None if none does.

        `space` has the parameters of the study, or is the name of one of those that its first
        trial shows.
        """
        is_empty = isinstance(space, SearchSpace) and not space.n_parameters
        if len(self._header.directions) != 1 or is_empty:
            return None
        past: PastTasks | None = None
        with self._surviving("learnt from"):
            if not isinstance(space, str) or words_of([space]) & self._known_words:
                past = self._chosen_for(space)
        if past is not None and isinstance(space, SearchSpace) and not past.may_help(space):
            past = None  # for example of batch_size=32 alone, where the study has [16, 64]
        if past is None and isinstance(space, str):  # there may be some with another parameter
            self.stats.setdefault("past_studies", 0)
        else:
            self.stats["past_studies"] = 0 if past is None else len(past.tasks)
        return past

    @cached_property
    def _known_words(self) -> set[str]:
        """Return all forms of the names of past studies' parameters, see `words_of`.

        Read once, as a first trial may show many parameters that no past study has.
        """
        past = usable(self._memory.index(), without=self._header.study)
        distinct = {entry.digest: entry.domains for entry in past}
        return set().union(*map(words_of, distinct.values()))

    def _chosen_for(self, space: SearchSpace | str) -> PastTasks | None:
        """Return the past studies that were chosen first.

        The choice is stored by the study's identity and the names of its parameters, and the
        trials of the chosen studies by their content. If these were deleted, or the memory is full
        or read only, the choice is made anew.
        """
        if not self._memory.is_read_only:
            try:
                return self._stored_for(space)
            except OSError as error:
                if error.errno not in _UNWRITABLE:
                    raise
        chosen, _ = self._choose(space)
        return PastTasks(chosen.tasks) if len(chosen) else None

    def _stored_for(self, space: SearchSpace | str) -> PastTasks | None:
        """Return the past studies of the stored choice; if there is none yet, choose and store."""
        memory = self._memory
        names = [space] if isinstance(space, str) else sorted(space.names)
        key = hashlib.sha256(json.dumps(names).encode()).hexdigest()[:12]
        path = memory.choices / f"{self._header.study}-{key}.json"
        stored = _choice_in(path, memory)
        if stored is None:
            with suppress(PermissionError):  # of files that only their owners may delete
                memory.shrink()
            chosen, studies = self._choose(space)
            name = f"{digest_of(chosen.tasks)}.npz" if studies else None
            if name is not None:
                with write_once(memory.tasks / name) as unfinished:
                    chosen.save(unfinished)
            content = {"tasks": name, "studies": studies}
            with write_once(path) as unfinished:
                unfinished.write_text(json.dumps(content), encoding="utf-8")
            stored = _choice_in(path, memory)  # another worker may have written first
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

    def _choose(self, space: SearchSpace | str) -> tuple[MetaDataset, list[str]]:
        """Return past studies that help, named by title and date for explanations, and identities.

        A study with no other trials than the present one is a copy of it, or what it was copied
        from.
        """
        index, study, logger = self._memory.index(), self._header.study, self._logger
        if index.damaged:
            _warn_of_damage(self._memory.records, tuple(index.damaged), study, logger)
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


def count_failure(
    memory: Memory, failed: str, error: Exception, stats: Counter[str], logger: logging.Logger
) -> None:
    """Count that a memory cannot be read or written, as `failed` says; warn of the first time."""
    stats["memory_errors"] += 1
    if stats["memory_errors"] == 1:
        logger.warning(
            "The memory %s cannot be %s (%s: %s). The study goes on without; further failures are "
            "only counted.",
            memory.path,
            failed,
            type(error).__name__,
            error,
        )


@cache
def _warn_of_damage(
    folder: Path, names: Sequence[str], study: str, logger: logging.Logger
) -> None:
    """Warn a study once, which may choose several times as it shows new parameters."""
    text = "Records in %s are left out, as damaged, unreadable or of a newer version: %s."
    logger.warning(text, folder, ", ".join(names))


def _choice_in(path: Path, memory: Memory) -> dict[str, Any] | None:
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
