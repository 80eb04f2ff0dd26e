"""Run Ray Tune with a storage that takes a while for each file, as object stores do.

usage: ray_slow_storage.py FOLDER SECONDS_PER_FILE N_TRIALS [dre|optuna]
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pyarrow.fs
import ray
from fsspec.implementations.local import LocalFileSystem
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from dre_plugins import DRESearch


class SlowFileSystem(LocalFileSystem):  # type: ignore[misc]
    """A local file system that waits before it writes a file."""

    cachable = False
    seconds = 0.0

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if "w" in mode:
            time.sleep(self.seconds)
        return super()._open(path, mode=mode, **options)


def train(config: dict[str, Any]) -> dict[str, float]:
    """Take a moment, and return a value."""
    time.sleep(0.15)
    return {"loss": (config["x"] - 0.3) ** 2 + config["y"] / 10}


def main() -> None:
    """Run the experiment; Ray warns of each time that it could not copy its files."""
    folder, seconds, n_trials, name = [*sys.argv[1:], "dre"][:4]
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1"  # Ray saves ten times as often as usual
    copy_files = pyarrow.fs.copy_files
    # One file after the other, as Ray does with S3.
    pyarrow.fs.copy_files = lambda *a, **k: copy_files(*a, **{**k, "use_threads": False})
    storage = SlowFileSystem(auto_mkdir=True)
    storage.seconds = float(seconds)
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    search = OptunaSearch(seed=0) if name == "optuna" else DRESearch(seed=0)
    tune.Tuner(
        train,
        param_space={"x": tune.uniform(0, 1), "y": tune.randint(0, 6)},
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            search_alg=search,
            num_samples=int(n_trials),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            storage_path=folder,
            storage_filesystem=pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(storage)),
            verbose=0,
        ),
    ).fit()


if __name__ == "__main__":
    import ray_slow_storage  # by its name, as Ray pickles what is in `__main__` as a whole

    ray_slow_storage.main()
