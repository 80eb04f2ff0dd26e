"""What the tests of Syne Tune share: settings, every domain, a space, past evaluations."""

from typing import Any

import numpy as np
import pandas as pd
from presets import FAST, TINY
from syne_tune import config_space as cs
from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
    TransferLearningTaskEvaluations,
)

from dre_plugins.recommend.settings import Settings

SETTINGS: dict[str, Any] = {"settings": Settings(preset=TINY), "n_startup_trials": 4}
OPTIONS: dict[str, Any] = {"random_seed": 0, **SETTINGS}
# Past studies suggest from the start.
KNOWING: dict[str, Any] = {"random_seed": 0, "settings": FAST}
SPACE = {
    "lr": cs.loguniform(1e-4, 1.0),
    "layers": cs.randint(1, 6),
    "act": cs.choice(["relu", "tanh"]),
    "epochs": 9,
}

# Finite domains with all their values.

FINITE: list[tuple[Any, list[Any]]] = [
    (cs.randint(1, 4), [1, 2, 3, 4]),
    (cs.randint(-3, -3), [-3]),
    (cs.lograndint(1, 5), [1, 2, 3, 4, 5]),
    (cs.uniform(1, 1), [1.0]),
    (cs.quniform(3 * 0.1, 0.5, 0.1), [0.3, 0.4, 0.5]),  # from 0.30000000000000004
    (cs.choice(["b", "a", "c"]), ["b", "a", "c"]),
    (cs.choice(["only"]), ["only"]),
    (cs.choice(["a", "b", "a"]), ["a", "b"]),
    (cs.choice([2, 1, 2]), [2, 1]),
    (cs.choice([16, 32, 64]), [16, 32, 64]),
    (cs.choice([0.5, 0.25]), [0.5, 0.25]),
    (cs.choice([True, False]), [True, False]),
    (cs.choice([(1, 2), (2, 1)]), [(1, 2), (2, 1)]),
    (cs.choice([[1, 2], [2, 1], []]), [[1, 2], [2, 1], []]),
    (cs.choice([{"depth": 1}, {"depth": 2}]), [{"depth": 1}, {"depth": 2}]),
    (cs.ordinal(["small", "large"]), ["small", "large"]),
    (cs.ordinal([4, 1, 2], kind="equal"), [4, 1, 2]),
    (cs.ordinal([1, 2, 8], kind="nn"), [1, 2, 8]),
    (cs.ordinal([0.1, 0.2, 0.5], kind="nn-log"), [0.1, 0.2, 0.5]),
    (cs.logordinal([16, 64, 512]), [16, 64, 512]),
    (cs.finrange(0.0, 1.0, 5), [0.0, 0.25, 0.5, 0.75, 1.0]),
    (cs.finrange(1, 9, 3, cast_int=True), [1, 5, 9]),
    (cs.finrange(3.0, 3.0, 1), [3.0]),
    (cs.logfinrange(1e-3, 1e-1, 3), cs.logfinrange(1e-3, 1e-1, 3).values),
    (cs.logfinrange(1, 10, 12, cast_int=True), [1, 2, 3, 4, 5, 7, 8, 10]),
    # A scheduler casts the 2 among its values to 3.
    (cs.logfinrange(1, 40, 9, cast_int=True), [1, 3, 4, 6, 10, 16, 25, 40]),
    (cs.quniform(0, 1, 0.25), [0.0, 0.25, 0.5, 0.75, 1.0]),
    (cs.qloguniform(0.5, 2.0, 0.5), [0.5, 1.0, 1.5, 2.0]),
    (cs.qrandint(4, 12, 4), [4, 8, 12]),
    (cs.qrandint(3, 13, 4), [4, 8, 12]),
    (cs.qlograndint(4, 16, 4), [4, 8, 12, 16]),
]
INFINITE: list[Any] = [
    cs.uniform(-1.5, 2),
    cs.loguniform(1e-6, 1e-1),
    cs.reverseloguniform(0.9, 0.999),
    cs.reverseloguniform(0, 0.5),
    cs.randint(0, 10**6),
    cs.lograndint(1, 10**9),
]


def evaluations(
    space: dict[str, Any] = SPACE, metric: str = "loss", n: int = 20
) -> TransferLearningTaskEvaluations:
    """Return evaluations with an optimum at lr = 0.01 and many layers."""
    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        [
            {k: d.sample(random_state=rng) if isinstance(d, cs.Domain) else d for k, d in items}
            for items in [space.items()] * n
        ]
    )
    values = (np.log10(table["lr"]) + 2) ** 2 - table["layers"]
    return TransferLearningTaskEvaluations(
        space, table, [metric], values.to_numpy().reshape(-1, 1, 1, 1)
    )
