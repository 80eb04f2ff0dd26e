"""Evaluations of networks that are drawn from LCBench's surrogate.

    python -m dre_bench.learner_priors.networks --lcbench FOLDER

writes `benchmarks/data/networks.npz`: on each training task the same Sobol points and the same
steps of a search for what is best on average, and steps of a search of its own. Validation tasks
are not in it. `with_lcbench` adds these evaluations to those of networks of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats.qmc import Sobol

from dre_bench.lcbench import OUTPUTS, Lcbench
from dre_bench.learner_evaluations.parameters import to_row
from dre_bench.learner_evaluations.plan import POSITIONS, SEARCH, SOBOL
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, space_of
from dre_bench.learner_evaluations.tables import STATUSES, Table
from dre_bench.learner_evaluations.worker import OK
from dre_plugins.space import Float, Integer
from dre_plugins.space.candidates import mutate
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
SEED = 20261124
N_SOBOL, N_SHARED_STEPS, N_OWN_STEPS = 256, 4, 6
N_PARENTS, N_CHILDREN = 10, 16
SOURCE = (
    "LCBench (Zimmer, Lindauer and Hutter, 2021) by the surrogate of YAHPO Gym (Pfisterer et al., "
    "2022), networks on OpenML data sets after 52 epochs, benchmarks/data/networks.npz"
)


# ---- drawing


def draw(scenario: Lcbench, command: str) -> dict[str, Any]:
    """Return the arrays of the file: units `[N, P]` and outputs `[N, 2]` of each training task."""
    rng = np.random.default_rng(SEED)
    sobol = Sobol(SPACE.n_parameters, scramble=True, rng=rng).random(N_SOBOL)
    tasks = scenario.training

    def losses_on(task: int) -> Callable[[Array], Array]:
        return lambda units: 1.0 - _outputs(scenario, task, units)[:, 0] / 100.0

    def mean_rank(units: Array) -> Array:
        losses = [losses_on(task)(units) for task in tasks]
        ranks = [np.argsort(np.argsort(of_task)) for of_task in losses]
        return np.asarray(np.mean(ranks, axis=0))

    shared = _searched(sobol, mean_rank, N_SHARED_STEPS, rng)
    provenance = {
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "source": SOURCE,
        "licence": "Apache-2.0",
        "parameters": SPACE.names,
        "outputs": list(OUTPUTS),
        "n_shared": len(shared),
    }
    arrays: dict[str, Any] = {"provenance": np.array(json.dumps(provenance))}
    for task in tasks:
        units = _searched(shared, losses_on(task), N_OWN_STEPS, rng)
        arrays[f"{task}/units"] = units.astype(np.float32)
        arrays[f"{task}/outputs"] = _outputs(scenario, task, units).astype(np.float32)
    return arrays


def _searched(
    units: Array, losses: Callable[[Array], Array], n_steps: int, rng: np.random.Generator
) -> Array:
    """Return the units and the children of the best of them, after some steps of evolution."""
    for _ in range(n_steps):
        best = np.argsort(losses(units), kind="stable")[:N_PARENTS]
        units = np.concatenate([units, mutate(SPACE, units[best], N_CHILDREN, rng)])
    return SPACE.canonical(units)


def _outputs(scenario: Lcbench, task: int, units: Array) -> Array:
    configurations = [SPACE.to_configuration(row) for row in SPACE.canonical(units)]
    found = scenario.evaluate_many(task, configurations)
    return np.stack([found[name] for name in OUTPUTS], axis=1)


# ---- as evaluations of networks of PyTorch


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


def main() -> None:
    """Read the command line and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lcbench", type=Path, required=True, help="folder of the surrogate")
    parser.add_argument("--file", type=Path, default=FILE, help="the file of evaluations")
    chosen = parser.parse_args()
    command = " ".join(["python -m dre_bench.learner_priors.networks", *sys.argv[1:]])
    np.savez_compressed(chosen.file, **draw(Lcbench(chosen.lcbench), command))
    print(f"{chosen.file}: {chosen.file.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
