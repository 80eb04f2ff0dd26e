"""Past tasks whose values say how long they are, and hence which writer they are from."""

import numpy as np

from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task

SPACE = SearchSpace({"x": Float(0.0, 1.0), "n": Integer(1, 9), "kind": Categorical(["a", "b"])})


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
