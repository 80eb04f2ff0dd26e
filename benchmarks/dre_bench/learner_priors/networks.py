"""The prior of neural networks, from evaluations that were drawn from LCBench's surrogate.

    python -m dre_bench.learner_priors.networks draw --lcbench FOLDER
    python -m dre_bench.learner_priors.networks train

`draw` writes `benchmarks/data/networks.npz`: on each training task the same Sobol points and the
same steps of a search for what is best on average, and steps of a search of its own. `train` makes
the prior of that file. Validation tasks are in neither.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats.qmc import Sobol

from dre_bench.lcbench import OUTPUTS, Lcbench
from dre_bench.learner_priors.favourites import N_MEMBERS, complementary
from dre_bench.learner_priors.regrets import WORST
from dre_bench.learner_priors.studies import Gain
from dre_plugins.space import Float, Integer
from dre_plugins.space.candidates import mutate
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import CATALOGUE

Array = NDArray[np.float64]

NAME = "network"
FILE = Path(__file__).parents[2] / "data" / "networks.npz"
FIGURES = Path(__file__).parents[2] / "data" / "networks.json"  # what `network_studies` wrote
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
# What a script has that does not tune a parameter.
DEFAULTS = {
    "batch_size": 128,
    "weight_decay": 1e-5,
    "momentum": 0.9,
    "max_dropout": 0.0,
    "num_layers": 2,
    "max_units": 256,
}
SIGNS = {"val_accuracy": 1.0, "val_cross_entropy": -1.0}
SEED = 20261124
N_SOBOL, N_SHARED_STEPS, N_OWN_STEPS = 256, 4, 6
N_PARENTS, N_CHILDREN = 10, 16
SOURCE = (
    "LCBench (Zimmer, Lindauer and Hutter, 2021) by the surrogate of YAHPO Gym (Pfisterer et al., "
    "2022): networks on {} OpenML data sets after 52 epochs, benchmarks/data/networks.npz"
)
SETTINGS = MetaTrainingSettings(n_steps=1500, validate_every=100, patience=5)
COMMAND = "python -m dre_bench.learner_priors.networks train"


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
        "source": SOURCE.format(len(tasks)),
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


# ---- training


def read(path: Path = FILE) -> tuple[MetaDataset, int]:
    """Return the past tasks, one for each data set and metric, and how many rows all share."""
    with np.load(path) as arrays:
        provenance: Mapping[str, Any] = json.loads(str(arrays["provenance"]))
        names = sorted(
            (key.split("/")[0] for key in arrays.files if key.endswith("/units")), key=int
        )
        tasks = [
            Task(
                f"{name} by {metric}",
                SPACE,
                SPACE.canonical(arrays[f"{name}/units"].astype(np.float64)),
                SIGNS[metric] * arrays[f"{name}/outputs"][:, column].astype(np.float64),
                np.zeros(len(arrays[f"{name}/outputs"]), dtype=np.bool_),
            )
            for name in names
            for column, metric in enumerate(provenance["outputs"])
        ]
    source, licence = str(provenance["source"]), str(provenance["licence"])
    return MetaDataset.of(tasks, source=source, licence=licence), int(provenance["n_shared"])


def train(path: Path = FILE) -> Prior:
    """Meta-train the prior, with a portfolio."""
    metadata, n_shared = read(path)
    held_out = {task.name for task in metadata.tasks[4::12] + metadata.tasks[5::12]}
    prior = Prior.train(
        metadata.subset({task.name for task in metadata} - held_out),
        validation=metadata.subset(held_out),
        name=NAME,
        description="Neural networks on tables, by validation accuracy or cross-entropy",
        defaults=DEFAULTS,
        space=SPACE,
        settings=SETTINGS,
        rebuild=COMMAND,
    )
    card = prior.card
    if FIGURES.exists():
        figures = Gain(**json.loads(FIGURES.read_text())).for_card()
        card = replace(card, validation={**card.validation, **figures})
    members = portfolio(metadata, n_shared)
    return replace(prior, card=card, favourites=members[:1], portfolio=members)


def portfolio(metadata: MetaDataset, n_shared: int) -> Array:
    """Return the rows that complement each other best among those that all tasks share `[F, P]`.

    Regret is the distance to the best value of a task, as a share of the distance from there to
    the median of the space-filling points.
    """
    regrets = []
    for task in metadata:
        best, median = task.values.max(), np.median(task.values[:N_SOBOL])
        regrets.append(((best - task.values[:n_shared]) / (best - median)).clip(0.0, WORST))
    places = complementary(np.stack(regrets), np.ones(len(regrets)), N_MEMBERS)
    return np.asarray(metadata.tasks[0].units[places])


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line; draw or train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("draw", "train"))
    parser.add_argument("--lcbench", type=Path, help="folder of the surrogate")
    parser.add_argument("--file", type=Path, default=FILE, help="the file of evaluations")
    parser.add_argument("--out", type=Path, default=CATALOGUE, help="folder of the prior")
    chosen = parser.parse_args(arguments)
    if chosen.what == "draw":
        if chosen.lcbench is None:
            parser.error("draw needs --lcbench")
        command = " ".join(["python -m dre_bench.learner_priors.networks", *sys.argv[1:]])
        np.savez_compressed(chosen.file, **draw(Lcbench(chosen.lcbench), command))
        print(f"{chosen.file}: {chosen.file.stat().st_size / 1024:.0f} KiB")
        return
    prior = train(chosen.file)
    path = chosen.out / f"{NAME}.safetensors"
    prior.save(path)
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB, validation {prior.card.validation}")
    print(SPACE.to_configuration(prior.favourites[0]))


if __name__ == "__main__":
    main()
