"""A driver of Ray Tune that tests kill at any moment, and what it has left on the disk.

Drivers are forked from a server that has imported everything and join a cluster that goes on, so
that one works within seconds.
"""

import logging
import os
import pickle
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import ray
import ray_tune_worker
from presets import FAST
from ray import cloudpickle, tune
from ray_tune_worker import MIXED_SPACE, mixed, tiny_search

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend import choices  # noqa: F401  # imported before drivers are forked

N_AT_ONCE = 2


def brief(config: dict[str, Any]) -> dict[str, float]:
    """Return a value after a moment, and write down when the trial began and ended."""
    with Path(config["folder"], "ledger").open("a", buffering=1) as ledger:
        trial_id = tune.get_context().get_trial_id()
        ledger.write(f"{time.time()} begin {trial_id}\n")
        time.sleep(0.2)
        ledger.write(f"{time.time()} end {trial_id}\n")
    return mixed(config)


def drive(address: str, folder: str, n_trials: int) -> None:
    """Begin an experiment or go on with it, to its end.

    Processors limit how many trials run at once. Ray's own `max_concurrent_trials` waits for ever
    after some kills (docs/reliability.md).
    """
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "0.5"  # seconds between two states on the disk
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    for module in (ray_tune_worker, sys.modules[__name__]):  # workers do not know these folders
        cloudpickle.register_pickle_by_value(module)
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    study = f"{folder}/study"
    if tune.Tuner.can_restore(study):
        tuner = tune.Tuner.restore(study, trainable=brief)
    else:
        tuner = tune.Tuner(
            brief,
            param_space={**MIXED_SPACE, "folder": folder},
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                num_samples=n_trials,
                search_alg=tiny_search(settings=FAST),
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=folder, name="study", verbose=0),
        )
    tuner.fit()


class Stored(NamedTuple):
    """What an experiment on the disk says: of trials that ended, and what the search knows.

    Ray counts the trials apart from what it knows of them; it has forgotten the difference.
    """

    losses: dict[str, float]
    search: DRESearch
    written: float
    n_forgotten: int


class Torn(Exception):
    """A file that Ray itself needs ends in the middle, or nothing was stored yet."""


def stored(study: Path) -> Stored:
    """Read what a driver has left.

    Raises:
        Torn: If Ray could not restore it.
    """
    kinds = ("tuner.pkl", "experiment_state-*.json", "search_gen_state-*.json")
    files = [file for kind in kinds for file in sorted(study.glob(kind))[-1:]]
    if len(files) < len(kinds) or not any(study.glob("searcher-state-*.pkl")):
        raise Torn("not all was stored once")
    for file in files:
        try:
            if file.name.startswith("experiment_state"):
                analysis = tune.ExperimentAnalysis(str(file.parent))
            else:
                counted = cloudpickle.loads(file.read_bytes())
        except (EOFError, OSError, pickle.UnpicklingError, ValueError) as error:
            raise Torn(f"{file.name}: {error}") from error
    search = DRESearch()
    search.restore_from_dir(str(study))
    losses = {
        trial.trial_id: trial.last_result["loss"]
        for trial in analysis.trials
        if trial.status == "TERMINATED"
    }
    n_forgotten = counted["counter"] - len(analysis.trials)
    return Stored(losses, search, files[1].stat().st_mtime, n_forgotten)


def put_back(study: Path, copy: Path, session: Path) -> None:
    """Go back to a copy of an experiment, also where drivers of this machine keep theirs."""
    shutil.rmtree(study, ignore_errors=True)
    if copy.exists():
        shutil.copytree(copy, study)
    for staging in session.glob("session_*/artifacts/*/study"):
        shutil.rmtree(staging, ignore_errors=True)
