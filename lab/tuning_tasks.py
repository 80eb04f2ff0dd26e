"""Validation tasks whose trials can be stopped early: LCBench by epochs, YAHPO by rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from dre_bench.tasks import Configuration, Parameter, Scenario, YahpoScenario

DATA = Path("/work/shared/data/yahpo")
TRAIN_SIZES = (1 / 27, 1 / 9, 1 / 3, 1.0)
N_EPOCHS = 52
# Steps, values there, and what a trial has cost that ends there.
Curve = tuple[list[int], list[float], list[float]]


class Lcbench(Scenario):
    """LCBench: seven parameters of a network that is trained for up to 52 epochs."""

    name = "lcbench"
    metric = "val_accuracy"

    def __init__(self) -> None:
        folder = DATA / "lcbench"
        given = json.loads((folder / "config_space.json").read_text())["hyperparameters"]
        self.parameters = tuple(
            Parameter(
                entry["name"],
                "int" if entry["type"] == "uniform_int" else "float",
                entry["lower"],
                entry["upper"],
                entry["log"],
            )
            for entry in given
            if entry["name"] not in ("OpenML_task_id", "epoch")
        )
        (tasks,) = (entry for entry in given if entry["name"] == "OpenML_task_id")
        # The odd positions are an exam, and never evaluated.
        self.tasks = sorted(int(task) for task in tasks["choices"])[::2]
        self.validation = self.tasks[::4]
        self._codes = json.loads((folder / "encoding.json").read_text())["OpenML_task_id"]
        self._session = onnxruntime.InferenceSession(folder / "model.onnx")

    def evaluate_many(
        self,
        task: int,
        configurations: Sequence[Mapping[str, Any]],
        epochs: Sequence[int] | None = None,
    ) -> dict[str, np.ndarray]:
        """Evaluate configurations on one task, each at its epoch; None is the last one."""
        if task not in self.tasks:
            raise ValueError(f"{task} is no task that may be evaluated.")
        names = ("batch_size", "learning_rate", "momentum", "weight_decay", "num_layers")
        names = (*names, "max_units", "max_dropout")
        steps = [N_EPOCHS] * len(configurations) if epochs is None else epochs
        rows = [
            [step, *(configuration[name] for name in names)]
            for configuration, step in zip(configurations, steps, strict=True)
        ]
        inputs = {
            "x_cat": np.full((len(rows), 1), self._codes[str(task)], dtype=np.int32),
            "x_cont": np.asarray(rows, dtype=np.float32),
        }
        (outputs,) = self._session.run(None, inputs)
        return {self.metric: outputs[:, 1].astype(np.float64)}

    def curve(self, task: int, configuration: Configuration) -> Curve:
        """Return the accuracy after each epoch; an epoch costs 1."""
        steps = [*range(1, N_EPOCHS + 1)]
        values = self.evaluate_many(task, [configuration] * N_EPOCHS, steps)[self.metric]
        return steps, values.tolist(), [float(step) for step in steps]


class Yahpo(YahpoScenario):
    """XGBoost and decision trees on growing shares of the rows, each trained from its start."""

    def __init__(self, name: str) -> None:
        super().__init__(DATA / name)
        self.validation = self.splits["validation"]

    def curve(self, task: int, configuration: Configuration) -> Curve:
        """Return the accuracy at each size; a size costs its share of the rows."""
        values = [
            self.evaluate(task, configuration, trainsize=size)[self.metric] for size in TRAIN_SIZES
        ]
        return [1, 3, 9, 27], values, np.cumsum(TRAIN_SIZES).tolist()


def scenario_of(name: str) -> Lcbench | Yahpo:
    """Return "lcbench", "rbv2_xgboost" or "rbv2_rpart"."""
    return Lcbench() if name == "lcbench" else Yahpo(name)
