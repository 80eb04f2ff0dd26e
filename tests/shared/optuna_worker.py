"""Problems of the tests, and what worker processes do with them."""

import math
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.trial import Trial
from presets import TINY

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend.settings import Settings

AS_ONE = pytest.mark.skipif(
    tuple(map(int, optuna.__version__.split(".")[:2])) < (4, 8),
    reason="before 4.8 Optuna asked a sampler for all of a trial when it began, or not at all",
)


STORAGES = ["memory:", "sqlite:///", "journal:"]


def open_storage(name: str) -> Any:
    """Return the storage of "sqlite:///file" or "journal:file", or one in memory."""
    if name.startswith("memory:"):
        return optuna.storages.InMemoryStorage()
    if name.startswith("journal:"):
        from optuna.storages.journal import JournalFileBackend

        return optuna.storages.JournalStorage(JournalFileBackend(name.removeprefix("journal:")))
    return name


def tiny_sampler(**arguments: Any) -> DRESampler:
    """Return a sampler with a tiny surrogate; arguments override."""
    return DRESampler(
        **{"seed": 0, "n_startup_trials": 4, "settings": Settings(preset=TINY), **arguments}
    )


def optimized(
    sampler: BaseSampler, objective: Callable[[Trial], Any], n_trials: int, **of_study: Any
) -> optuna.Study:
    """Return a new study after so many trials."""
    study = optuna.create_study(sampler=sampler, **of_study)
    study.optimize(objective, n_trials=n_trials)
    return study


def params_of(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def small_objective(trial: Trial) -> float:
    """Return a value on a space of 18 points."""
    x = trial.suggest_categorical("x", ["a", "b", "c"])
    y = trial.suggest_int("y", 0, 5)
    return y + "abc".index(x) / 3


def mixed_objective(trial: Trial) -> float:
    """Return a value on a conditional space of floats, integers and categories."""
    kind = trial.suggest_categorical("kind", ["a", "b"])
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    value = (math.log10(rate) + 2) ** 2
    if kind == "a":
        return value + abs(trial.suggest_int("depth", 1, 12) - 7)
    return value + 1 + trial.suggest_float("share", 0.0, 1.0)


def reported(trial: Trial, value: float, n_steps: int = 9) -> float:
    """Return a value after reports that fall to it, unless the pruner ends the trial."""
    for step in range(1, n_steps + 1):
        trial.report(value + 1 / step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def leave_pending(storage: str) -> dict[str, int]:
    """Leave four trials pending and return the statistics of the sampler."""
    sampler = tiny_sampler(seed=7, n_startup_trials=1)
    study = optuna.load_study(study_name="s", storage=open_storage(storage), sampler=sampler)
    for _ in range(4):
        small_objective(study.ask())
    return sampler.stats


def table_objective(trial: Trial) -> float:
    """Return a value on a space of 60 points."""
    return abs(trial.suggest_int("x", 0, 5) - 3.0) + trial.suggest_int("y", 0, 9)


def run_start_up(storage: str) -> None:
    """Run two trials of start-up points."""
    sampler = DRESampler(seed=7, n_startup_trials=100)
    study = optuna.load_study(study_name="s", storage=open_storage(storage), sampler=sampler)
    study.optimize(table_objective, n_trials=2)


def optimize(
    storage: str, n_trials: int, seed: int | None, n_threads: int = 1
) -> list[dict[str, Any]]:
    """Run trials of a study, new or resumed, and return all of its parameters."""
    study = optuna.create_study(
        study_name="s",
        storage=None if storage == "memory" else open_storage(storage),
        load_if_exists=True,
        sampler=DRESampler(
            seed=seed, n_startup_trials=5, settings=Settings(preset=TINY, n_threads=n_threads)
        ),
    )
    study.optimize(mixed_objective, n_trials=n_trials)
    return params_of(study)
