"""Files that say which writer they are from, such as past tasks by their number of values."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from readers import SPACE, make_prior, training

from dre_plugins.transfer import training_state
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior


def past(length: int) -> MetaDataset:
    """Return two tasks of that many evaluations, all of which have their number as the value."""
    units = SPACE.canonical(np.random.default_rng(length).random((length, 3)))
    values = np.full(length, float(length))
    failed = np.zeros(length, dtype=np.bool_)
    return MetaDataset.of([Task(name, SPACE, units, values, failed) for name in "ab"])


def length_of(found: MetaDataset) -> int:
    """Return the number of evaluations, and check that all that was read is from one writer."""
    (length,) = {len(task) for task in found}
    assert [task.name for task in found] == ["a", "b"]
    assert all((task.values == length).all() for task in found)
    return length


# What is saved: the name of its file, how one of several writers saves it, and how it is read.
SAVED: dict[str, tuple[str, Callable[[Path, int], object], Callable[[Path], object]]] = {
    "prior": ("a.safetensors", make_prior, Prior.load),
    "training": (
        "a.safetensors",
        lambda path, writer: training_state.save(path, training(writer), {}),
        lambda path: training_state.load(path, training(), {}),
    ),
    "json": ("a.json", lambda path, writer: past(5 + writer).save(path), MetaDataset.load),
    "npz": ("a.npz", lambda path, writer: past(5 + writer).save(path), MetaDataset.load),
}
