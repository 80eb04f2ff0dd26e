"""Evaluations of networks on LCBench as those of a network of PyTorch, trained by SGD.

The prior of recognised networks learns from both. `networks` draws LCBench's from its surrogate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dre_bench.lcbench import OUTPUTS
from dre_bench.learner_evaluations.parameters import to_row
from dre_bench.learner_evaluations.plan import POSITIONS, SEARCH, SOBOL
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, space_of
from dre_bench.learner_evaluations.tables import STATUSES, Table
from dre_bench.learner_evaluations.worker import OK
from dre_plugins.space import Float, Integer
from dre_plugins.space.search_space import SearchSpace

Array = NDArray[np.float64]

FILE = Path(__file__).parents[2] / "data" / "networks.npz"
# The name of the learner among the evaluations, and the task that LCBench's tables stand for.
LEARNER, LCBENCH = "network", "lcbench"
# LCBench's ranges; small weight decays are told apart by their logarithm.
SPACE = SearchSpace(
    {
        "learning_rate": Float(1e-4, 0.1, "log"),
        "batch_size": Integer(16, 512, "log"),
        "weight_decay": Float(1e-5, 0.1, "log"),
        "momentum": Float(0.1, 0.99),
        "max_dropout": Float(0.0, 1.0),
        "num_layers": Integer(1, 5),
        "max_units": Integer(64, 1024, "log"),
    }
)
# How networks of PyTorch call these parameters, and what LCBench does not vary.
NAMES = {"max_dropout": "dropout", "num_layers": "n_layers", "max_units": "width"}
FIXED = {"optimizer": "sgd", "activation": "relu", "epochs": 52}
# The first rows of the file are Sobol points, the others are of a search.
N_SOBOL = 256
SOURCE = (
    "LCBench (Zimmer, Lindauer and Hutter, 2021) by the surrogate of YAHPO Gym (Pfisterer et al., "
    "2022): networks on {} OpenML data sets after 52 epochs, benchmarks/data/networks.npz"
)


def with_lcbench(
    datasets: list[str], tables: Mapping[tuple[str, str], Table], path: Path = FILE
) -> tuple[list[str], dict[tuple[str, str], Table]]:
    """Return names of data sets and tables with LCBench's, a task of its own."""
    with np.load(path) as arrays:
        tasks = sorted(
            (key.split("/")[0] for key in arrays.files if key.endswith("/units")), key=int
        )
        rows = [
            (len(datasets) + index, *row)
            for index, task in enumerate(tasks)
            for row in _rows(arrays[f"{task}/units"], arrays[f"{task}/outputs"])
        ]
    dataset, position, configurations, outputs = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    found = {name: outputs[:, [column]] for column, name in enumerate(OUTPUTS)}
    table = Table(
        space_of(LEARNER, CLASSIFICATION),
        configurations.astype(np.float32),
        dataset,
        position,
        np.full(len(rows), STATUSES.index(OK), dtype=np.uint8),
        {"accuracy": found["val_accuracy"] / 100.0, "log_loss": found["val_cross_entropy"]},
        np.full((len(rows), 2), np.nan, dtype=np.float32),
    )
    names = [f"{LCBENCH}/{task}" for task in tasks]
    return [*datasets, *names], {**tables, (LEARNER, LCBENCH): table}


def _rows(units: Array, outputs: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield positions of the plan, configurations and outputs within the space of PyTorch's."""
    space = space_of(LEARNER, CLASSIFICATION)
    places: dict[str, list[int]] = {
        kind: [place for place, (other, _) in enumerate(POSITIONS) if other == kind]
        for kind in (SOBOL, SEARCH)
    }
    for index, row in enumerate(SPACE.canonical(units.astype(np.float64))):
        found = SPACE.to_configuration(row)
        configuration = {NAMES.get(name, name): value for name, value in found.items()} | FIXED
        is_inside = all(
            parameter.low is None
            or parameter.low <= configuration[parameter.name] <= parameter.high
            for parameter in space
        )
        kind = places[SOBOL if index < N_SOBOL else SEARCH]
        if is_inside and kind:
            yield kind.pop(0), to_row(space, configuration), outputs[index]
