"""What a `DRESampler` knows only while its process lives, and no copy of it takes along."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.space.base import match_key
from dre_plugins.space.search_space import SearchSpace

# What infer_relative_search_space read is good for the sample_relative that follows at once (one
# read per trial, R21). Optuna 4 may ask for the parameters much later: then it is read anew.
READ_LIFETIME = 0.05
# Spaces up to this size are checked for conflicts even if no other trial was running.
CROWDED_SPACE = 10_000


class ThisProcess:
    """Remember the trials begun here, what was read just now, what the prior had in mind."""

    def __init__(self) -> None:
        self._open: set[tuple[str, int]] = set()
        self._read: tuple[str, int, float, list[FrozenTrial]] | None = None
        self._plan: tuple[str, int, Mapping[str, Any]] = ("", -1, {})

    def __reduce__(self) -> tuple[type[ThisProcess], tuple[()]]:
        """Begin anew in another process."""
        return ThisProcess, ()

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial has begun here."""
        self._read = None
        self._open.add((study.study_name, trial.number))

    def end(self, study: Study, trial: FrozenTrial) -> None:
        """Say that a trial of this process has ended."""
        self._read = None
        self._open.discard((study.study_name, trial.number))

    # ---- trials

    def read(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Read the study's trials, for `trials` to have them for a moment."""
        trials = study.get_trials(deepcopy=False)
        self._read = (study.study_name, trial.number, time.monotonic(), trials)
        return trials

    def trials(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Return the study's trials: as they were read for this trial, if that was just now."""
        read, self._read = self._read, None
        if read is not None:
            study_name, number, read_at, trials = read
            is_recent = time.monotonic() - read_at < READ_LIFETIME
            if (study_name, number) == (study.study_name, trial.number) and is_recent:
                return trials
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
                one.state is OptunaState.RUNNING and one.number != trial.number for one in trials
            )
        )

    # ---- what the prior had in mind

    def plan(self, study: Study, trial: FrozenTrial, configuration: Mapping[str, Any]) -> None:
        """Keep what the prior suggested for a trial that asks for its parameters one by one."""
        self._plan = (study.study_name, trial.number, configuration)

    def planned(self, study: Study, trial: FrozenTrial) -> Mapping[str, Any]:
        """Return what the prior suggested for this trial, as long as the trial follows it.

        Such a trial is one suggestion: asking the prior anew for each of 14 parameters took .2 s.
        """
        study_name, number, configuration = self._plan
        is_same = (study_name, number) == (study.study_name, trial.number)
        follows = all(
            name in configuration and match_key(configuration[name]) == match_key(value)
            for name, value in trial.params.items()
            if not trial.distributions[name].single()
        )
        return configuration if is_same and follows else {}
