"""What a `DRESampler` knows only while its process lives, and no copy of it takes along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.optuna.conversion import are_alike
from dre_plugins.space.base import match_key
from dre_plugins.space.search_space import SearchSpace

# Spaces up to this size are checked for conflicts even if no other trial was running.
CROWDED_SPACE = 10_000


class ThisProcess:
    """Remember the trials begun here, what was read just now, what the prior had in mind."""

    def __init__(self) -> None:
        self._open: set[tuple[str, int]] = set()
        self._read: tuple[str, int, list[FrozenTrial]] | None = None
        self._asked: dict[tuple[str, str], BaseDistribution] = {}
        self._chosen: dict[tuple[str, int], tuple[Mapping[str, Any], str]] = {}
        self._plans: dict[tuple[str, int], Mapping[str, Any]] = {}

    def __reduce__(self) -> tuple[type[ThisProcess], tuple[()]]:
        """Begin anew in another process."""
        return ThisProcess, ()

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial has begun here."""
        self._forget(study, trial)
        self._open.add((study.study_name, trial.number))

    def end(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial of this process has ended."""
        self._forget(study, trial)
        self._open.discard((study.study_name, trial.number))
        for name, distribution in trial.distributions.items():
            self.ask(study, name, distribution)

    def _forget(self, study: Study, trial: FrozenTrial) -> None:
        self._read = None
        for kept in (self._chosen, self._plans):
            kept.pop((study.study_name, trial.number), None)

    # ---- trials

    def read(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Read the study's trials, for `trials` to have them once: one read for a trial."""
        trials = study.get_trials(deepcopy=False)
        self._read = (study.study_name, trial.number, trials)
        return trials

    def trials(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Return the study's trials: as they were read for this trial, if they were."""
        read, self._read = self._read, None
        if read is not None and read[:2] == (study.study_name, trial.number):
            return read[2]
        return study.get_trials(deepcopy=False)

    def may_conflict(
        self, space: SearchSpace, trial: FrozenTrial, trials: Sequence[FrozenTrial]
    ) -> bool:
        """Return whether another worker may have chosen the same just now.

        Threads may have begun trials since the study was read, which only this process knows.

        Args:
            space: The search space.
            trial: The trial that has chosen.
            trials: The study's trials as it saw them.
        """
        is_crowded = space.n_configurations is not None and space.n_configurations <= CROWDED_SPACE
        return (
            is_crowded
            or len(self._open) > 1
            or any(
                other.state is OptunaState.RUNNING and other.number != trial.number
                for other in trials
            )
        )

    # ---- what the objective asks for, and what was chosen for it

    def ask(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        """Remember which kind of parameter the objective asks for under a name."""
        self._asked[study.study_name, name] = distribution

    def is_asked(self, study: Study, name: str, distribution: BaseDistribution) -> bool:
        """Return whether the objective is known to ask for this kind of parameter.

        Optuna ends the study if `sample_relative` returns a parameter of another kind or with
        other choices than the objective asks for, and stored trials may have had either.
        """
        asked = self._asked.get((study.study_name, name))
        return asked is not None and are_alike(asked, distribution)

    def asked_of(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        values: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the values that the objective may ask for, in the order of the search space."""
        return {
            name: values[name]
            for name, distribution in search_space.items()
            if self.is_asked(study, name, distribution)
        }

    def choose(
        self, study: Study, trial: FrozenTrial, values: Mapping[str, Any], source: str
    ) -> None:
        """Keep the values that were chosen for a trial until it has ended, and their source."""
        self._chosen[study.study_name, trial.number] = values, source

    def chosen(self, study: Study, trial: FrozenTrial) -> Mapping[str, Any]:
        """Return the values that were chosen for a trial; empty if none were."""
        return self._chosen.get((study.study_name, trial.number), ({}, ""))[0]

    # ---- what the prior had in mind

    def plan(self, study: Study, trial: FrozenTrial, configuration: Mapping[str, Any]) -> None:
        """Keep what the prior suggested for a trial that asks for its parameters one by one."""
        self._plans[study.study_name, trial.number] = configuration

    def is_planned(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether the prior has suggested anything for a trial."""
        return (study.study_name, trial.number) in self._plans

    def source(self, study: Study, trial: FrozenTrial) -> str:
        """Return where the values that were chosen for a trial come from; empty if none were."""
        return self._chosen.get((study.study_name, trial.number), ({}, ""))[1]

    def planned(self, study: Study, trial: FrozenTrial) -> Mapping[str, Any]:
        """Return what the prior suggested for this trial, as long as the trial follows it.

        Such a trial is one suggestion: asking the prior anew for each of 14 parameters took .2 s.
        """
        configuration = self._plans.get((study.study_name, trial.number), {})
        follows = all(
            name in configuration and match_key(configuration[name]) == match_key(value)
            for name, value in trial.params.items()
            if not trial.distributions[name].single()
        )
        return configuration if follows else {}
