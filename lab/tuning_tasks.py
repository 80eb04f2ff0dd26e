"""Validation tasks whose trials can be stopped early: LCBench by epochs, YAHPO by rows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from dre_bench.lcbench import Lcbench
from dre_bench.tasks import Configuration, YahpoScenario

DATA = Path("/work/shared/data/yahpo")
TRAIN_SIZES = (1 / 27, 1 / 9, 1 / 3, 1.0)
# Steps, values there, and what a trial has cost that ends there.
Curve = tuple[list[int], list[float], list[float]]


class Yahpo(YahpoScenario):
    """XGBoost and decision trees on growing shares of the rows, each trained from its start."""

    def __init__(self, name: str) -> None:
        super().__init__(DATA / name)
        self.validation = self.splits["validation"]
        self.training = self.splits["train"]

    def curve(self, task: int, configuration: Configuration) -> Curve:
        """Return the accuracy at each size; a size costs its share of the rows."""
        values = [
            self.evaluate(task, configuration, trainsize=size)[self.metric] for size in TRAIN_SIZES
        ]
        return [1, 3, 9, 27], values, np.cumsum(TRAIN_SIZES).tolist()


@cache
def scenario_of(name: str) -> Lcbench | Yahpo:
    """Return "lcbench", "rbv2_xgboost" or "rbv2_rpart"."""
    return Lcbench(DATA / name) if name == "lcbench" else Yahpo(name)
