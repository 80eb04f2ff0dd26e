"""What a `DRESampler` tells its user, through Optuna's logger: once per study and topic."""

from __future__ import annotations

import logging

from optuna.logging import get_logger
from optuna.study import Study

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

    def warn_of_independent(self, study: Study, number: int, name: str) -> None:
        """Say that the model has not chosen a parameter of a trial."""
        self.warn(
            study,
            name,
            f"Parameter {name!r} of trial {number} is sampled independently of the model: no "
            "earlier trial had it in this range. Later trials will model it. Silence this with "
            "warn_independent_sampling=False.",
        )

    def _log(self, level: int, study: Study, topic: str, text: str) -> None:
        key = (study.study_name, topic)
        if key not in self._logged:
            self._logged.add(key)
            get_logger(LOGGER_NAME).log(level, "%s", text)
