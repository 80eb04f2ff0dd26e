"""Writing attributes of Optuna's trials, and saying so where a storage refuses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.explanation import EXPLANATION_KEY, attribute_of
from dre_plugins.adapters.optuna.messages import Messages
from dre_plugins.recommend.explanation import ANNOUNCEMENTS, Explanation
from dre_plugins.recommend.interruptions import is_from_signal_handler


def storage_of(study: Study) -> BaseStorage:
    """Return the storage of a study, for which there is no public way."""
    storage: BaseStorage = study._storage
    return storage


def set_attributes(
    study: Study,
    trial: FrozenTrial,
    attributes: Mapping[str, Any],
    *,
    are_users: bool = False,
) -> str:
    """Write attributes of a trial, by a private API as Optuna's own samplers do.

    There is no public way. Other workers and users profit, but a storage that refuses (the trial
    has just ended, another kind of storage) must cost no trial.

    Args:
        study: The study.
        trial: The trial.
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


class ExplanationWriter:
    """Write where the parameters of trials come from, and announce each new source once.

    Args:
        stats: Counters to add to: "unwritten".
        messages: Where the first suggestion of a source is announced.
    """

    def __init__(self, stats: Counter[str], messages: Messages) -> None:
        self._stats = stats
        self._messages = messages

    def explain(self, study: Study, trial: FrozenTrial, explanation: Explanation) -> None:
        """Announce the source of a suggestion, and write its explanation.

        An enqueued trial keeps the explanation that it began with.
        """
        source = explanation.source
        if source in ANNOUNCEMENTS:
            text = ANNOUNCEMENTS[source].format(trial.number)
            self._messages.inform(study, f"<{source}>", text)
        if "fixed_params" not in trial.system_attrs:
            self.write(study, trial, explanation)

    def write(self, study: Study, trial: FrozenTrial, explanation: Explanation) -> None:
        """Write the explanation of a trial as one user attribute."""
        attributes = {EXPLANATION_KEY: attribute_of(explanation)}
        self.warn_if(set_attributes(study, trial, attributes, are_users=True), study, trial)

    def warn_if(self, problem: str, study: Study, trial: FrozenTrial) -> None:
        """Count and say that an attribute was refused; nothing if `problem` is empty."""
        if problem:
            self._stats["unwritten"] += 1
            self._messages.warn(
                study,
                "<unwritten>",
                f"The storage takes no attribute of trial {trial.number} ({problem}): it has no "
                "explanation, or other workers may evaluate the same. Further failures are only "
                "counted.",
            )
