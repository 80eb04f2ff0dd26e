"""The state of a `DRESampler` in one process, which copies do not inherit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState as OptunaState

from dre_plugins.adapters.optuna.attributes import storage_of, stored_trials
from dre_plugins.adapters.optuna.conversion import are_alike, are_stored_alike
from dre_plugins.adapters.optuna.prior import StudyPrior
from dre_plugins.space.base import match_key
from dre_plugins.space.search_space import SearchSpace

# Spaces up to this size are checked for conflicts even if no other trial was running.
SMALL_SPACE = 10_000


@dataclass(slots=True)
class RunningTrial:
    """Hold what was read and chosen for a trial that runs in this process."""

    # The study's trials, as they were read to choose; None: they must be read (again).
    trials: list[FrozenTrial] | None = None
    # Whether Optuna has asked for all known parameters at once.
    is_relative: bool = False
    # Values that the model chose, and their source.
    values: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    # The prior's suggestion for a trial that asks for parameters one by one; None: not made yet.
    prior_suggestion: Mapping[str, Any] | None = None
    # Whether the trial was counted as one that breaks the rule.
    is_invalid: bool = False
    # StudyPrior for the trial; None: not chosen yet.
    study_prior: StudyPrior | None = None

    def prior_values(self, trial: FrozenTrial) -> Mapping[str, Any]:
        """Return what the prior suggested, as long as the trial follows it.

        It is made once for a trial, as a new one for each of 14 parameters took .2 s.
        """
        suggested = self.prior_suggestion or {}
        follows = all(
            name in suggested and match_key(suggested[name]) == match_key(value)
            for name, value in trial.params.items()
            if not trial.distributions[name].single()
        )
        return suggested if follows else {}


class ThisProcess:
    """Hold the trials begun in this process, and what was chosen for them."""

    def __init__(self) -> None:
        # By storage, as another one may have a study of the same name.
        self._running: WeakKeyDictionary[BaseStorage, dict[tuple[str, int], RunningTrial]]
        self._running = WeakKeyDictionary()
        # Which kinds of parameters the objective of each study asks for, by their names.
        self._asked: defaultdict[str, dict[str, BaseDistribution]] = defaultdict(dict)
        self._began: WeakKeyDictionary[BaseStorage, dict[str, datetime]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[ThisProcess], tuple[()]]:
        """Begin anew in another process."""
        return ThisProcess, ()

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial has begun here."""
        self._running_in(study)[study.study_name, trial.number] = RunningTrial()
        if trial.number == 0:  # another study may have had the name
            self._began.pop(storage_of(study), None)

    def end(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial of this process has ended."""
        self._running_in(study).pop((study.study_name, trial.number), None)
        self._asked[study.study_name].update(self.as_asked(study, trial.distributions))

    def began_at(self, study: Study) -> datetime:
        """Return when a study began, which all its workers agree on: with its first trial.

        First by number: a trial is numbered after the ones before it are stored, but workers that
        begin together may store a trial that started earlier after one that started later.
        """
        began = self._began.setdefault(storage_of(study), {})
        if study.study_name not in began:
            starts = (trial.datetime_start for trial in stored_trials(study))
            began[study.study_name] = next(filter(None, starts), datetime.now())
        return began[study.study_name]

    def running(self, study: Study, trial: FrozenTrial) -> RunningTrial:
        """Return what is known of a trial that runs here, for more to be added."""
        return self._running_in(study).setdefault((study.study_name, trial.number), RunningTrial())

    def _running_in(self, study: Study) -> dict[tuple[str, int], RunningTrial]:
        return self._running.setdefault(storage_of(study), {})

    def read(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Return the study's trials, and keep them for the next call of `trials`."""
        self.running(study, trial).trials = trials = stored_trials(study)
        return trials

    def trials(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Return the study's trials: once those that `read` kept, later those that are stored."""
        running = self.running(study, trial)
        trials, running.trials = running.trials, None
        return stored_trials(study) if trials is None else trials

    def may_conflict(
        self, study: Study, space: SearchSpace, trial: FrozenTrial, trials: Sequence[FrozenTrial]
    ) -> bool:
        """Return whether another worker may have chosen the same configuration at this time.

        Threads of this process may have begun trials since the study was read.
        """
        is_small = space.n_configurations is not None and space.n_configurations <= SMALL_SPACE
        running = (other.number for other in trials if other.state is OptunaState.RUNNING)
        are_others = any(number != trial.number for number in running)
        return is_small or len(self._running_in(study)) > 1 or are_others

    def remember_asked(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        """Remember which kind of parameter the objective asks for under a name."""
        self._asked[study.study_name][name] = distribution

    def as_asked(
        self, study: Study, stored: Mapping[str, BaseDistribution]
    ) -> dict[str, BaseDistribution]:
        """Return distributions from a storage, with choices as the objective asks for them."""
        asked = {**stored, **self._asked[study.study_name]}
        return {n: asked[n] if are_stored_alike(asked[n], d) else d for n, d in stored.items()}

    def forget_asked(self, study: Study) -> bool:
        """Forget what the objective of a study has asked for; return whether that was anything."""
        return bool(self._asked.pop(study.study_name, None))

    def asked_of(
        self, study: Study, search_space: Mapping[str, BaseDistribution], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of parameters that are of the kind which the objective asks for.

        Optuna ends the study if `sample_relative` returns a parameter of another kind or with
        other choices than the objective asks for, and stored trials may have had either.
        """
        asked = self._asked[study.study_name]
        return {
            name: values[name]
            for name, distribution in search_space.items()
            if name in asked and are_alike(asked[name], distribution)
        }
