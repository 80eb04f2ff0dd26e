"""Priors of past studies, each trained once and stored by a hash of its tasks."""

import errno
import hashlib
import json
import logging
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import filelock
import numpy as np

from dre_plugins._version import __version__
from dre_plugins.engine.files import make_folder, sibling_path
from dre_plugins.recommend.explanation import abbreviated
from dre_plugins.transfer.metadata import MetaDataset, Task, counted

# Suffix of a file that says that there is no prior.
REJECTED = ".rejected"
# Seconds to wait for another process that trains the same prior.
SECONDS_TO_WAIT = 60.0
# Errors of a network drive that has no locks.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)
# Smallest mean rank correlation (Kendall's tau) between a study and its prediction by the others.
# Twelve studies of 25 trials reach .42 to .71 on seven sets of related tasks, and at most .06 with
# permuted values. With eight studies, some related ones are no better than permuted ones
# (lab/2026-11-23-memory.md).
MIN_TO_COMPARE = 12
MIN_CORRELATION = 0.2


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
    folder: Path, metadata: MetaDataset, logger: logging.Logger, *, is_pretraining: bool = False
) -> Path | None:
    """Return the file of the prior of past studies, trained and written if there is none.

    Studies that do not predict each other have no prior; that is stored as well. Pre-training
    takes a minute and shows a progress bar.

    One process trains while the others wait for its file. A process that has waited too long
    trains as well, which takes seconds; the second one to finish uses the file that is there. So
    all workers of a study have the same prior, bit for bit.
    """
    # Another version may train another prior on the same tasks.
    name = f"{digest_of(metadata.tasks)}-{__version__}{'-ahead' if is_pretraining else ''}"
    path = folder / f"{name}.safetensors"
    make_folder(folder)
    if not _is_known(path):
        if not os.access(folder, os.W_OK):  # told before the training, not after it
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        with _training_lock(path):
            if not _is_known(path):  # no other process has trained it meanwhile
                _train(path, metadata, logger, is_pretraining=is_pretraining)
    return path if path.is_file() else None


def _is_known(path: Path) -> bool:
    """Return whether a prior is trained or rejected; on NFS, only a listing is up to date."""
    names = {path.name, path.with_suffix(REJECTED).name}
    return not names.isdisjoint(os.listdir(path.parent))


def _train(
    path: Path, metadata: MetaDataset, logger: logging.Logger, *, is_pretraining: bool
) -> None:
    from dre_plugins.transfer.prior import Prior  # imports torch

    studies = counted(len(metadata), "past study", "past studies")
    logger.info("Learning from %s, which takes some seconds.", studies)
    if not are_related(metadata):
        logger.info("They have no order in common, and are not used.")
        path.with_suffix(REJECTED).touch()
        return
    prior = Prior.train(metadata, progress=True) if is_pretraining else Prior.of_few(metadata)
    names = abbreviated(sorted(task.name for task in metadata))
    prior = replace(prior, card=replace(prior.card, name=f"of the past studies {names}"))
    with write_once(path) as unfinished:
        prior.save(unfinished)


def are_related(metadata: MetaDataset) -> bool:
    """Return whether one half of past studies predicts the order of the other half's trials.

    If not, parameters of the same name have a different meaning in each study, and a prior would
    mislead the next one; or no study has two trials that differ.
    """
    tasks = tuple(task for task in metadata if task.lists())
    if len(tasks) < MIN_TO_COMPARE:
        return bool(tasks)
    first, second = tasks[0::2], tasks[1::2]
    correlations = _correlations(first, second) + _correlations(second, first)
    return not correlations or float(np.mean(correlations)) >= MIN_CORRELATION


def _correlations(training: tuple[Task, ...], held_out: tuple[Task, ...]) -> list[float]:
    """Return the rank correlation of each study that has an order and a parameter in common."""
    from scipy.stats import kendalltau  # takes long to import

    from dre_plugins.transfer.prior import Prior  # imports torch

    prior = Prior.of_few(MetaDataset(training))
    correlations = []
    for task in held_out:
        try:
            expected = prior.scores(task.space, task.units)
        except ValueError:  # no parameter in common
            continue
        values = np.where(np.isnan(task.values), -np.inf, task.values)
        correlations.append(float(kendalltau(expected, values).statistic))
    return [correlation for correlation in correlations if not math.isnan(correlation)]


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


@contextmanager
def _training_lock(path: Path) -> Iterator[None]:
    """Let one process at a time train a prior; without a lock after a while, go on regardless.

    On NFS, the lock of a machine that was switched off lasts for minutes, or until it is on again.
    """
    lock = filelock.FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=SECONDS_TO_WAIT)
    except (filelock.Timeout, NotImplementedError, PermissionError):  # a colleague's file
        pass
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        yield
    finally:
        lock.release()
