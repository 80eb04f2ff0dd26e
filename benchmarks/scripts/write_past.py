"""Write a folder of made-up past tasks that may exceed memory, to measure meta-training.

python benchmarks/scripts/write_past.py N_TASKS N_EVALUATIONS past.tasks
"""

import sys

import numpy as np

from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task

n_tasks, n, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
space = SearchSpace({f"x{i:02}": Float(0.0, 1.0) for i in range(16)})


def tasks():
    rng = np.random.default_rng(0)
    for number in range(n_tasks):
        units = rng.random((n, 16))  # from configurations: space.to_units(...)
        values = -((units - rng.random(16)) ** 2).sum(axis=1)  # larger is better
        yield Task(f"task {number}", space, units, values, failed=np.zeros(n, dtype=bool))


MetaDataset.write(path, tasks(), source="a formula")
