"""Trainables of the tests, and a driver to be killed: ray_tune_worker.py ADDRESS FOLDER."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import ray
from presets import TINY
from ray import tune

try:
    from ray.tune import RunConfig
except ImportError:  # before Ray 2.44
    from ray.train import RunConfig

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend.settings import Settings

SMALL_SPACE = {"x": tune.choice(["a", "b", "c"]), "y": tune.randint(0, 6)}  # of 18 points
MIXED_SPACE = {
    "kind": tune.choice(
        [{"name": "a", "depth": tune.randint(1, 13)}, {"name": "b", "share": tune.uniform(0, 1)}]
    ),
    "rate": tune.loguniform(1e-4, 1),
    "constant": 7,
}


def tiny_search(space: dict[str, Any] | None = None, **arguments: Any) -> DRESearch:
    """Return a search with a tiny surrogate; arguments override."""
    return DRESearch(
        space, **{"seed": 0, "n_startup_trials": 4, "settings": Settings(preset=TINY), **arguments}
    )


def mixed_value(config: dict[str, Any]) -> float:
    """Return a value on `MIXED_SPACE`, 0 at best."""
    value = (math.log10(config["rate"]) + 2) ** 2
    if config["kind"]["name"] == "a":
        return value + abs(config["kind"]["depth"] - 7)
    return value + 1 + config["kind"]["share"]


def mixed(config: dict[str, Any]) -> dict[str, float]:
    """Return it once."""
    return {"loss": mixed_value(config)}


class Steps(tune.Trainable):
    """Report a value that falls with every iteration, and go on after a pause."""

    def setup(self, config: dict[str, Any]) -> None:
        self.x, self.n = config["x"], 0

    def step(self) -> dict[str, float]:
        self.n += 1
        return {"loss": self.x + 1 / self.n}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        Path(checkpoint_dir, "n").write_text(json.dumps(self.n))

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        self.n = json.loads(Path(checkpoint_dir, "n").read_text())

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True


# ---- an experiment whose driver is killed

POINTS = [{"kind": {"name": "a", "depth": depth}, "rate": 0.01} for depth in range(1, 9)]


def patient(config: dict[str, Any]) -> dict[str, float]:
    """Return a value; from the sixth point on only after the driver was killed."""
    while config["kind"].get("depth", 0) > 5 and not Path(config["folder"], "killed").exists():
        time.sleep(0.1)
    return mixed(config)


class Killer(tune.Callback):
    """Kill the driver some time after five trials, when Ray has written all about them."""

    since = math.inf

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if sum(trial.status == "TERMINATED" for trial in trials) >= 5:
            self.since = min(self.since, time.monotonic())
        is_restored = Path(sys.argv[0]).name != Path(__file__).name
        if time.monotonic() - self.since > 1.0 and not is_restored:
            time.sleep(0.5)  # a copy of the state may be under way
            os.kill(os.getpid(), signal.SIGKILL)


def run_half(folder: str) -> None:
    """Begin to run ten trials, of which eight are given, two at a time."""
    tune.Tuner(
        patient,
        param_space={**MIXED_SPACE, "folder": folder},
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=10,
            search_alg=tiny_search(points_to_evaluate=POINTS),
            max_concurrent_trials=2,
            reuse_actors=True,
        ),
        run_config=RunConfig(storage_path=folder, name="study", verbose=0, callbacks=[Killer()]),
    ).fit()


if __name__ == "__main__":
    ray.init(address=sys.argv[1], log_to_driver=False)
    run_half(sys.argv[2])
