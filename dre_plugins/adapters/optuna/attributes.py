"""What a `DRESampler` writes beside trials, and what it tells its user."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from optuna.logging import get_logger
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.explanation import EXPLANATION_KEY, attribute_of
from dre_plugins.adapters.optuna.history import CONSTRAINTS_KEY
from dre_plugins.recommend.explanation import ANNOUNCEMENTS, Explanation
from dre_plugins.recommend.interruptions import is_from_signal_handler
from dre_plugins.recommend.trials import Trial, number_of
from dre_plugins.space.base import is_real

ConstraintsFunc: TypeAlias = Callable[[FrozenTrial], Sequence[float]]

# Below Optuna's own, whose handler and level (`optuna.logging.set_verbosity`) it shares.
logger = get_logger("optuna.dre_plugins")


def storage_of(study: Study) -> BaseStorage:
    """Return the storage of a study, for which there is no public way."""
    storage: BaseStorage = study._storage
    return storage


def set_attributes(
    study: Study, trial: FrozenTrial, attributes: Mapping[str, Any], *, are_users: bool = False
) -> str:
    """Write attributes of a trial, by a private API as Optuna's own samplers do.

    There is no public way. Other workers and users profit, but a storage that refuses (the trial
    has just ended, another kind of storage) must cost no trial.

    Args:
        attributes: Values that JSON can hold, by key.
        are_users: Whether they are user attributes, which tools show, or system attributes.

    Returns:
        Why they could not be written; empty if they were.
    """
    try:
        storage, trial_id = storage_of(study), trial._trial_id
        write = storage.set_trial_user_attr if are_users else storage.set_trial_system_attr
        for key, value in attributes.items():
            write(trial_id, key, value)
    except Exception as error:  # each kind of storage has its own, as the lock of a journal
        if is_from_signal_handler(error):
            raise
        return f"{type(error).__name__}: {error}"
    return ""


class Notes:
    """Write where the parameters of trials come from, and log each topic of a study once.

    Threads may share it: at worst a message appears twice.

    Args:
        stats: Counters to add to: "unwritten".
    """

    def __init__(self, stats: Counter[str]) -> None:
        self._stats = stats
        self._logged: set[tuple[str, str]] = set()

    def inform(self, study: Study, topic: str, text: str) -> None:
        """Log what happens; nothing if the text is empty."""
        self._log(logging.INFO, study, topic, text)

    def warn(self, study: Study, topic: str, text: str) -> None:
        """Log what the user should know of; nothing if the text is empty."""
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
        if text and key not in self._logged:
            self._logged.add(key)
            logger.log(level, "%s", text)

    def explain(self, study: Study, trial: FrozenTrial, explanation: Explanation) -> None:
        """Announce the source of a suggestion, and write its explanation.

        An enqueued trial keeps the explanation that it began with.
        """
        source = explanation.source
        if source in ANNOUNCEMENTS:
            self.inform(study, f"<{source}>", ANNOUNCEMENTS[source].format(trial.number))
        if "fixed_params" not in trial.system_attrs:
            self.write(study, trial, explanation)

    def write(self, study: Study, trial: FrozenTrial, explanation: Explanation) -> None:
        """Write the explanation of a trial as one user attribute."""
        attributes = {EXPLANATION_KEY: attribute_of(explanation)}
        self.warn_if(set_attributes(study, trial, attributes, are_users=True), study, trial)

    def warn_if(
        self,
        problem: str,
        study: Study,
        trial: FrozenTrial,
        text: str = "The storage takes no attribute of trial {number} ({problem}): it has no "
        "explanation, or other workers may evaluate the same.",
    ) -> None:
        """Count and say that an attribute was refused; nothing if `problem` is empty."""
        if problem:
            self._stats["unwritten"] += 1
            about = text.format(number=trial.number, problem=problem)
            self.warn(study, text, f"{about} Further failures are only counted.")


class StatedConstraints:
    """Write what a function says of ended trials, and remember what could not be written.

    Args:
        function: Returns how far each constraint is violated, at most 0 where it is met.
        stats: Counters to add to: "constraint_errors".
    """

    def __init__(
        self, function: ConstraintsFunc | None, stats: Counter[str], notes: Notes
    ) -> None:
        self._function = function
        self._stats = stats
        self._notes = notes
        self._unwritten: dict[tuple[str, int], dict[str, float]] = {}

    def state(self, study: Study, trial: FrozenTrial) -> None:
        """Evaluate and write the constraints of a trial; what fails must end no study."""
        if self._function is None:
            return
        try:
            violations = [_real(violation) for violation in self._function(trial)]
        except Exception as error:
            if is_from_signal_handler(error):
                raise
            self._stats["constraint_errors"] += 1
            self._notes.warn(
                study,
                "<constraints>",
                f"constraints_func failed in trial {trial.number}, whose constraints count as "
                f"unknown ({type(error).__name__}: {error}). Further failures are only counted.",
            )
            return
        problem = set_attributes(study, trial, {CONSTRAINTS_KEY: violations})
        if problem:
            named = {str(place): violation for place, violation in enumerate(violations)}
            self._unwritten[study.study_name, trial.number] = named
        text = (
            "The constraints of trial {number} cannot be stored ({problem}): this sampler "
            "remembers them, other processes and later ones do not know them."
        )
        self._notes.warn_if(problem, study, trial, text)

    def added(
        self, study: Study, trials: Sequence[FrozenTrial], history: Sequence[Trial]
    ) -> list[Trial]:
        """Return a history with the constraints that could not be written."""
        if not self._unwritten:
            return [*history]
        violated = [self._unwritten.get((study.study_name, trial.number)) for trial in trials]
        return [
            view if violations is None else replace(view, constraints=violations)
            for view, violations in zip(history, violated, strict=True)
        ]


def _real(violation: float) -> float:
    """Return a violation as a float: integers beyond the floats are infinite.

    Raises:
        TypeError, ValueError: If it is no number.
    """
    return number_of(violation) if is_real(violation) else float(violation)
