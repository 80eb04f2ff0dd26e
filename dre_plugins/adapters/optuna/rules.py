"""The argument `valid` in studies whose parameters appear one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.attributes import TrialReporter
from dre_plugins.adapters.optuna.claims import MAX_MOVES
from dre_plugins.adapters.optuna.conversion import given_to
from dre_plugins.adapters.optuna.state import ThisProcess
from dre_plugins.space import Domain
from dre_plugins.space.rules import Rule, Valid
from dre_plugins.space.search_space import SearchSpace

# Largest number of values of a parameter to try until the rule holds with the other parameters.
# Units a golden section apart fill [0, 1] evenly, however many there are.
MAX_DRAWS = 64
GOLDEN_SECTION = 0.6180339887498949


class StudyRules:
    """Apply the rule of a sampler to the parameters that a study has shown so far.

    A rule that reads a parameter which a trial lacks counts as met.
    """

    def __init__(
        self,
        valid: Valid | None,
        seed: int,
        stats: Counter[str],
        process: ThisProcess,
        reporter: TrialReporter,
    ) -> None:
        self._valid = valid
        self._seed = seed
        self._stats = stats
        self._process = process
        self._reporter = reporter
        self._rule = self._new(SearchSpace({}))

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Count a trial whose given values break the rule; it is run nevertheless.

        This must be done first, as Optuna does not call a sampler if all values are given.

        Raises:
            RuleError: If the rule raises.
        """
        if not self._is_broken_by(trial):
            return
        self._stats["invalid"] += 1
        self._reporter.log(
            study,
            "<given invalid>",
            f"A configuration that you gave (trial {trial.number}) breaks the rule `valid`; it is "
            "tried all the same. Further ones are only counted.",
        )

    def on(self, space: SearchSpace, trial: FrozenTrial) -> Rule:
        """Return the rule on a search space, or one that allows all if given values break it.

        It is cached as long as the space is the same.
        """
        if self._is_broken_by(trial):
            return Rule(space, None)
        if self._rule.space != space:
            self._rule = self._new(space)
        return self._rule

    def permits(self, study: Study, trial: FrozenTrial, name: str, value: Any) -> bool:
        """Return whether the rule allows a value beside the trial's others, given or suggested."""
        if self._valid is None:
            return True
        others = {**self._process.choice(study, trial).values, **given_to(trial), **trial.params}
        return self._rule.allows({**others, name: value})

    def values(
        self, study: Study, trial: FrozenTrial, name: str, domain: Domain, unit: float
    ) -> Iterator[Any]:
        """Yield valid values of a parameter, beginning with the one at a unit."""
        n_values = domain.n_values or 1
        for shift in range(min(n_values, MAX_MOVES) + 1):
            first = (unit + shift / n_values) % 1.0 if shift else unit
            steps = GOLDEN_SECTION * np.arange(1, MAX_DRAWS)
            units = [first, *((first + steps) % 1.0).tolist()]
            yield self._first(study, trial, name, map(domain.from_unit, units))

    def drawn(self, study: Study, trial: FrozenTrial, name: str, draw: Callable[[], Any]) -> Any:
        """Return the first of several draws of a parameter for which the rule holds."""
        return self._first(study, trial, name, (draw() for _ in range(MAX_DRAWS)))

    def _first(self, study: Study, trial: FrozenTrial, name: str, draws: Iterator[Any]) -> Any:
        first = next(draws)
        if self._is_broken_by(trial):
            return first
        for value in chain([first], draws):
            if self.permits(study, trial, name, value):
                return value
        self._stats["invalid"] += 1
        self._reporter.log(
            study,
            "<invalid>",
            f"Trial {trial.number} breaks the rule `valid`: no value of {name!r} was found that "
            "goes with the parameters before it, which were sampled one by one or given. From the "
            "second trial on, parameters are chosen jointly.",
        )
        return first

    def _is_broken_by(self, trial: FrozenTrial) -> bool:
        """Return whether a trial has broken the rule already, and was counted."""
        return not self._rule.allows(given_to(trial))

    def _new(self, space: SearchSpace) -> Rule:
        return Rule(space, self._valid, seed=self._seed, is_learnt=True)
