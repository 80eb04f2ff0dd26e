"""The attributes of trials that a `DRESampler` writes and reads, and its messages.

An explanation is a single attribute, because each attribute is a write to the storage. It is a
user attribute, because optuna-dashboard and `Study.trials_dataframe` show those.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any, TypeAlias

from optuna.logging import get_logger
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_plugins.checks import is_real, require
from dre_plugins.recommend.explanation import ANNOUNCEMENTS, Explanation
from dre_plugins.recommend.interruptions import is_from_signal_handler
from dre_plugins.recommend.trials import Trial, number_of
from dre_plugins.space.ranges import is_finite

ConstraintsFunc: TypeAlias = Callable[[FrozenTrial], Sequence[float]]

EXPLANATION_KEY = "dre:explanation"
CONSTRAINTS_KEY = "constraints"  # where Optuna's own samplers keep them
ENQUEUED_KEY = "fixed_params"  # where Optuna keeps the values of an enqueued trial

SUCCEEDED = (TrialState.COMPLETE, TrialState.PRUNED)  # have ended without a failure
UNKNOWN = (math.nan,)  # violations of a trial that may violate some constraint

_WORDS = ("source", "past_studies")
_FIGURES = tuple(field.name for field in fields(Explanation) if field.name not in _WORDS)

# A child of Optuna's logger, whose handler and level (`optuna.logging.set_verbosity`) it shares.
logger = get_logger("optuna.dre_plugins")


def explanation_of(trial: FrozenTrial) -> Explanation:
    """Return the explanation of a trial, of source "unknown" if it has none."""
    stored = trial.user_attrs.get(EXPLANATION_KEY)
    if isinstance(stored, Mapping) and isinstance(stored.get("source"), str):
        figures = {name: stored[name] for name in _FIGURES if is_finite(stored.get(name))}
        past = stored.get("past_studies")
        return Explanation(
            stored["source"], **figures, past_studies=past if isinstance(past, str) else None
        )
    return Explanation("enqueued" if ENQUEUED_KEY in trial.system_attrs else "unknown")


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Return how far a trial violates each constraint, by name; at most 0 where it is met.

    A value that is no number becomes NaN, which means unknown.
    """
    try:
        violations = getattr(trial, "constraints", None)  # since Optuna 5
        if violations is None:
            violations = named(trial.system_attrs.get(CONSTRAINTS_KEY) or ())
    except TypeError:  # another program may have put anything there
        return {}
    return {name: number_of(violation) for name, violation in violations.items()}


def named(violations: Sequence[float]) -> dict[str, float]:
    """Return violations by name, which for those of a function is the position."""
    return {str(place): violation for place, violation in enumerate(violations)}


def storage_of(study: Study) -> BaseStorage:
    """Return the storage of a study, for which there is no public way."""
    return study._storage


def stored_trials(study: Study) -> list[FrozenTrial]:
    """Return all trials of a study, ordered by number; MLflow's storage has the newest first.

    Under Hyperband, Optuna shows a sampler those of the present bracket only. Trials that ended at
    different steps can be compared here, so those of other brackets are as good as any.
    """
    storage = storage_of(study)
    study_id = storage.get_study_id_from_name(study.study_name)
    trials = storage.get_all_trials(study_id, deepcopy=False)
    return sorted(trials, key=attrgetter("number"))


def id_of(trial: FrozenTrial) -> int:
    """Return the number of a trial in its storage, for which there is no public way."""
    return trial._trial_id


def set_attribute(
    study: Study, trial: FrozenTrial, key: str, value: Any, *, is_users: bool = False
) -> str:
    """Write an attribute of a user, which tools show, or of the system; return why not, or "".

    This is a private API, which Optuna's own samplers use, too: there is no public way. If a
    storage refuses it, for example because the trial has just ended, the trial must go on.
    """
    try:
        storage = storage_of(study)
        write = storage.set_trial_user_attr if is_users else storage.set_trial_system_attr
        write(id_of(trial), key, value)
    except Exception as error:  # each kind of storage has its own, as the lock of a journal
        if is_from_signal_handler(error):
            raise
        return f"{type(error).__name__}: {error}"
    return ""


class TrialReporter:
    """Write explanations of trials, log each topic of a study once, and count in `stats`.

    Threads may share it; at worst a message appears twice.
    """

    def __init__(self, stats: Counter[str]) -> None:
        self.stats = stats
        self._logged: set[tuple[str, str]] = set()

    def log(self, study: Study, topic: str, text: str, level: int = logging.WARNING) -> None:
        """Log a text at WARNING or another level; nothing if it is empty."""
        key = (study.study_name, topic)
        if text and key not in self._logged:
            self._logged.add(key)
            logger.log(level, "%s", text)

    def warn_of_independent(self, study: Study, number: int, name: str) -> None:
        """Say that the model has not chosen a parameter of a trial."""
        self.log(
            study,
            name,
            f"Parameter {name!r} of trial {number} is sampled independently of the model: it is "
            "new, or the trial asks for a range that few others had. Silence this with "
            "warn_independent_sampling=False.",
        )

    def warn_of_cost(self, study: Study, trial: FrozenTrial, name: str | None) -> None:
        """Say that a trial has ended as complete without its cost."""
        self.log(
            study,
            "<cost>",
            f"The cost of trial {trial.number} is unknown: its user attribute {name!r} is "
            f"{trial.user_attrs.get(str(name))!r}, not a number above 0. Set it in the objective, "
            f"by trial.set_user_attr({name!r}, ...). Further ones are not mentioned.",
        )

    def explain(self, study: Study, trial: FrozenTrial, explanation: Explanation) -> None:
        """Announce the source of a suggestion, and write its explanation.

        An enqueued trial keeps the explanation that it began with.
        """
        source = explanation.source
        if source in ANNOUNCEMENTS:
            text = ANNOUNCEMENTS[source].format(trial.number)
            self.log(study, f"<{source}>", text, logging.INFO)
        if ENQUEUED_KEY not in trial.system_attrs:
            self.write(study, trial, explanation)

    def write(self, study: Study, trial: FrozenTrial, explanation: Explanation) -> None:
        """Write the explanation of a trial, numbers rounded and fields that are None left out."""
        entries = {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in asdict(explanation).items()
            if value is not None
        }
        problem = set_attribute(study, trial, EXPLANATION_KEY, entries, is_users=True)
        self.warn_if(problem, study, trial)

    def warn_if(
        self,
        problem: str,
        study: Study,
        trial: FrozenTrial,
        text: str = "The storage takes no attribute of trial {number} ({problem}): it has no "
        "explanation, or other workers may evaluate the same.",
    ) -> None:
        """Count and warn that an attribute was refused; do nothing if `problem` is empty."""
        if problem:
            self.stats["unwritten"] += 1
            about = text.format(number=trial.number, problem=problem)
            self.log(study, text, f"{about} Further failures are only counted.")


class StatedConstraints:
    """State the constraints of trials by a function; keep those that could not be written."""

    def __init__(self, function: ConstraintsFunc | None, reporter: TrialReporter) -> None:
        is_function = function is None or callable(function)
        require(is_function, "constraints_func", function, "a function of a trial, or None")
        self._function = function
        self._reporter = reporter
        self._unwritten: dict[tuple[str, int], dict[str, float]] = {}

    def evaluate(self, study: Study, trial: FrozenTrial) -> FrozenTrial:
        """Evaluate and write the constraints of a trial, and return the trial with them.

        A failure does not end the study; the constraints are unknown then, and not written, as
        Optuna's own samplers take no NaN.
        """
        if self._function is None:
            return trial
        stated = copy(trial)
        try:
            # Integers that no float can hold become infinite.
            violations = [number_of(v) if is_real(v) else float(v) for v in self._function(trial)]
        except Exception as error:
            if is_from_signal_handler(error):
                raise
            self._reporter.stats["constraint_errors"] += 1
            self._reporter.log(
                study,
                "<constraints>",
                f"constraints_func failed in trial {trial.number}, whose constraints count as "
                f"unknown ({type(error).__name__}: {error}). Further failures are only counted.",
            )
            stated.system_attrs = {CONSTRAINTS_KEY: UNKNOWN, **trial.system_attrs}
            return stated
        problem = set_attribute(study, trial, CONSTRAINTS_KEY, violations)
        if problem:
            self._unwritten[study.study_name, trial.number] = named(violations)
        text = (
            "The constraints of trial {number} cannot be stored ({problem}): this sampler "
            "remembers them, other processes and later ones do not know them."
        )
        self._reporter.warn_if(problem, study, trial, text)
        stated.system_attrs = {**trial.system_attrs, CONSTRAINTS_KEY: violations}
        return stated

    def with_constraints(
        self, study: Study, trials: Sequence[FrozenTrial], history: Sequence[Trial]
    ) -> list[Trial]:
        """Return a history with the constraints that this process could not write.

        Those of other trials without any are unknown: the function has failed, or another process
        could not write them.
        """
        if self._function is None:
            return [*history]
        complete = [*history]
        for place, trial in enumerate(trials):
            violations = self._unwritten.get((study.study_name, trial.number))
            # A list of none is stated as well.
            is_stated = CONSTRAINTS_KEY in trial.system_attrs or history[place].constraints
            if violations is None and trial.state in SUCCEEDED and not is_stated:
                violations = named(UNKNOWN)
            if violations is not None:
                complete[place] = replace(history[place], constraints=violations)
        return complete
