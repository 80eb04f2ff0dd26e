"""LCBench: funnel-shaped networks on 34 data sets, by the surrogate of YAHPO Gym."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dre_bench.tasks import Configuration, Scenario, read_parameter, session

N_EPOCHS = 52
# Outputs of the network that are kept: the column of each.
OUTPUTS = {"val_accuracy": 1, "val_cross_entropy": 2}
_NOT_TUNED = ("OpenML_task_id", "epoch")
# The order of the network's inputs, which its files do not state.
_INPUTS = (
    "batch_size",
    "learning_rate",
    "momentum",
    "weight_decay",
    "num_layers",
    "max_units",
    "max_dropout",
)


class Lcbench(Scenario):
    """Seven parameters of a network that is trained for up to 52 epochs.

    Args:
        folder: Holds `config_space.json`, `encoding.json` and `model.onnx`.

    Attributes:
        training: Tasks that may be learnt from.
        validation: Tasks that settings are chosen on.
    """

    name = "lcbench"
    metric = "val_accuracy"

    def __init__(self, folder: Path) -> None:
        given = json.loads((folder / "config_space.json").read_text())["hyperparameters"]
        self.parameters = tuple(
            read_parameter(entry) for entry in given if entry["name"] not in _NOT_TUNED
        )
        (tasks,) = (entry for entry in given if entry["name"] == "OpenML_task_id")
        # Odd positions are reserved for a final test and are never evaluated.
        self.tasks = sorted(int(task) for task in tasks["choices"])[::2]
        self.validation = self.tasks[::4]
        self.training = [task for task in self.tasks if task not in self.validation]
        self._codes = json.loads((folder / "encoding.json").read_text())["OpenML_task_id"]
        self._session = session(folder / "model.onnx")

    def evaluate_many(
        self,
        task: int,
        configurations: Sequence[Mapping[str, object]],
        epochs: Sequence[int] | None = None,
    ) -> dict[str, np.ndarray]:
        """Evaluate configurations on one task, each at its epoch; None is the last one."""
        if task not in self.tasks:
            raise ValueError(f"{task} is no task that may be evaluated.")
        steps = [N_EPOCHS] * len(configurations) if epochs is None else epochs
        rows = [
            [step, *(configuration[name] for name in _INPUTS)]
            for configuration, step in zip(configurations, steps, strict=True)
        ]
        inputs = {
            "x_cat": np.full((len(rows), 1), self._codes[str(task)], dtype=np.int32),
            "x_cont": np.asarray(rows, dtype=np.float32),
        }
        (outputs,) = self._session.run(None, inputs)
        return {name: outputs[:, column].astype(np.float64) for name, column in OUTPUTS.items()}

    def curve(
        self, task: int, configuration: Configuration
    ) -> tuple[list[int], list[float], list[float]]:
        """Return the accuracy after each epoch, and what a trial has cost by then, 1 an epoch."""
        steps = [*range(1, N_EPOCHS + 1)]
        values = self.evaluate_many(task, [configuration] * N_EPOCHS, steps)[self.metric]
        return steps, values.tolist(), [float(step) for step in steps]
