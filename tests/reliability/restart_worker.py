"""Workers that tests kill at any moment, and how a study looks afterwards.

Processes are forked from a server that has imported everything, so that one starts in moments.
"""

import os
import signal
import time
from typing import Any

import optuna
from optuna.trial import Trial, TrialState
from optuna_worker import mixed_objective, open_storage, tiny_sampler
from processes import fork_server

from dre_plugins.engine.surrogate import DeepRankingEnsemble

optuna.logging.set_verbosity(optuna.logging.ERROR)


def slow_objective(trial: Trial) -> float:
    """Return a value after a moment, so that a kill finds trials that run."""
    value = mixed_objective(trial)
    time.sleep(0.01)
    return value


def work(url: str, n_complete: int, heartbeat: int | None = None) -> None:
    """Run trials until so many are complete, whatever the storage does meanwhile."""
    study = study_in(url, heartbeat)
    while not is_done(study, n_complete):
        try:
            study.optimize(slow_objective, n_trials=1)
        except (optuna.exceptions.StorageInternalError, *database_errors()):
            time.sleep(0.2)  # as a scheduler of jobs starts a worker again


def work_and_die(url: str, n_complete: int, at_fit: int) -> None:
    """Be killed in the middle of a suggestion, when the surrogate is fitted that many times."""
    fits, fit = iter(range(10**6)), DeepRankingEnsemble.fit

    def last(self: DeepRankingEnsemble, *arguments: Any, **keywords: Any) -> Any:
        if next(fits) == at_fit:
            os.kill(os.getpid(), signal.SIGKILL)
        return fit(self, *arguments, **keywords)

    DeepRankingEnsemble.fit = last  # type: ignore[method-assign]
    work(url, n_complete)


def study_in(url: str, heartbeat: int | None = None) -> optuna.Study:
    """Open the study of a storage, or begin it."""
    storage: Any = open_storage(url)
    if heartbeat is not None:
        storage = optuna.storages.RDBStorage(
            url, heartbeat_interval=heartbeat, grace_period=30 * heartbeat
        )
    return optuna.create_study(
        study_name="s",
        storage=storage,
        load_if_exists=True,
        sampler=tiny_sampler(seed=3, n_startup_trials=5),
    )


def is_done(study: optuna.Study, n_complete: int) -> bool:
    """Say whether so many trials are complete; no while the storage does not answer."""
    try:
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    except (optuna.exceptions.StorageInternalError, *database_errors()):
        return False
    return len(trials) >= n_complete


def database_errors() -> tuple[type[Exception], ...]:
    """Return what SQLAlchemy raises where Optuna does not translate it, and Optuna's own slip.

    `optimize` ends by `UnboundLocalError` if the storage is gone when it tells a value.
    """
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, UnboundLocalError)


def complete(study: optuna.Study) -> dict[int, tuple[Any, float]]:
    """Return parameters and value of each complete trial by number."""
    return {
        trial.number: (trial.params, trial.value or 0.0)
        for trial in study.get_trials(states=(TrialState.COMPLETE,))
    }


def killed_in(study: optuna.Study, arguments: Any, seconds: float) -> None:
    """Run a worker and kill it so many seconds after its first trial has ended."""
    worker, n_before = fork_server().Process(target=work, args=arguments), len(complete(study))
    worker.start()
    while len(complete(study)) == n_before:
        worker.join(0.1)
    worker.join(seconds)
    worker.kill()
    worker.join()
