"""Priors of past studies, each trained once and kept by what it was trained on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import filelock

from dre_plugins._version import __version__
from dre_plugins.engine.files import beside
from dre_plugins.memory.agreement import have_order_in_common
from dre_plugins.recommend.explanation import some_of
from dre_plugins.transfer.metadata import MetaDataset, Task

# Suffix of a file that says that there is no prior.
REJECTED = ".rejected"
# Another process that trains the same prior is waited for this long.
SECONDS_TO_WAIT = 60.0


def digest_of(tasks: Sequence[Task]) -> str:
    """Return a hash of all that past tasks hold."""
    content = hashlib.sha256()
    for task in tasks:
        content.update(json.dumps([task.name, task.space.to_dict()]).encode())
        arrays = [task.units, task.values, task.failed]
        for step, reported in task.rungs.items():
            content.update(repr(step).encode())
            arrays.append(reported)
        for array in arrays:
            content.update(repr(array.shape).encode() + array.tobytes())
    return content.hexdigest()[:32]


def trained_prior(
    folder: Path, metadata: MetaDataset, logger: logging.Logger, *, is_ahead: bool = False
) -> Path | None:
    """Return the file of the prior of past studies, which is written if there is none.

    Studies that have no order in common have no prior. That is found out once, too.

    One process trains while the others wait for its file. A process that has waited too long
    trains as well: that takes seconds and changes nothing, as whoever comes second takes the file
    that is there. So all workers of a study have the same prior, bit for bit.

    Args:
        folder: Folder of the priors.
        metadata: The past studies.
        logger: Where to say that training takes some seconds.
        is_ahead: Whether there is time for a training of a minute, beside a bar.

    Raises:
        OSError: The folder cannot be written.
        ValueError: There is nothing to learn from.
        FittingError: The training diverged.
    """
    # Another version may learn something else from the same tasks.
    name = f"{digest_of(metadata.tasks)}-{__version__}{'-ahead' if is_ahead else ''}"
    path = folder / f"{name}.safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(path):
        rejected = path.with_suffix(REJECTED)
        if path.is_file() or rejected.is_file():
            return path if path.is_file() else None
        from dre_plugins.transfer.prior import Prior  # imports torch

        logger.info("Learning from %d past studies, which takes some seconds.", len(metadata))
        if not have_order_in_common(metadata):
            logger.info("They have no order in common, and are not used.")
            rejected.touch()
            return None
        prior = Prior.train(metadata, progress=True) if is_ahead else Prior.of_few(metadata)
        names = some_of([task.name for task in metadata])
        prior = replace(prior, card=replace(prior.card, name=f"of the past studies {names}"))
        with published(path) as unfinished:
            prior.save(unfinished)
    return path


@contextmanager
def published(path: Path) -> Iterator[Path]:
    """Name a file to write, which gets its name at the end unless one has it: the first counts.

    Raises:
        OSError: The folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = beside(path, path.suffix)
    try:
        yield unfinished
        with suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Let one process at a time train a prior, or several if there is no lock after a while."""
    lock = filelock.FileLock(path.with_suffix(".lock"))
    with suppress(filelock.Timeout, NotImplementedError):
        lock.acquire(timeout=SECONDS_TO_WAIT)
    try:
        yield
    finally:
        lock.release()
