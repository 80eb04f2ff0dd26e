"""What a `DRESampler` tells its user, through Optuna's logger: once per study and topic."""

from __future__ import annotations

import logging

from optuna.logging import get_logger
from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.recommend.schedule import N_STARTUP_TRIALS

# Below Optuna's own, whose handler and level (`optuna.logging.set_verbosity`) it shares.
LOGGER_NAME = "optuna.dre_plugins"


class Messages:
    """Log each topic of a study once.

    Threads may share it: at worst a message appears twice.
    """

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def inform(self, study: Study, topic: str, text: str) -> None:
        """Log what happens."""
        self._log(logging.INFO, study, topic, text)

    def warn(self, study: Study, topic: str, text: str) -> None:
        """Log what the user should know of."""
        self._log(logging.WARNING, study, topic, text)

    def warn_of_independent(
        self, study: Study, trial: FrozenTrial, name: str, n_startup_trials: int | None
    ) -> None:
        """Say that the model has not chosen a parameter of a trial after the start-up trials."""
        if trial.number < (N_STARTUP_TRIALS if n_startup_trials is None else n_startup_trials):
            return
        self.warn(
            study,
            name,
            f"Parameter {name!r} of trial {trial.number} is sampled independently of the model: "
            "no earlier trial had it in this range. Later trials will model it. Silence this "
            "with warn_independent_sampling=False.",
        )

    def warn_of_unused_prior(self, study: Study, problem: str) -> None:
        """Say why a prior is not used, if there is a problem."""
        if problem:
            text = f"The prior is not used as long as this holds: {problem}"
            self.warn(study, "<unused prior>", text)

    def warn_of_unreadable(self, study: Study, problem: str) -> None:
        """Say why a trial of the storage cannot be read, if there is a problem."""
        if problem:
            text = f"{problem} Further trials of this kind are not mentioned."
            self.warn(study, "<unreadable>", text)

    def _log(self, level: int, study: Study, topic: str, text: str) -> None:
        key = (study.study_name, topic)
        if key not in self._logged:
            self._logged.add(key)
            get_logger(LOGGER_NAME).log(level, "%s", text)
