"""Tune without a framework: ask for a configuration, tell what it was worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dre_plugins.engine.settings import require
from dre_plugins.recommend.prior import PriorLike
from dre_plugins.recommend.recommender import Recommender, Suggestion
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.domains import Domain, ordered_choices
from dre_plugins.space.search_space import SearchSpace


class AskTell:
    """Keep the trials of one study in memory and suggest the next ones.

    Args:
        space: A `SearchSpace`, or a domain or a list of choices by parameter name; choices that
            are numbers in ascending order are treated as ordered.
        direction: "minimize" or "maximize".
        seed: Non-negative seed of everything random; None draws one.
        prior: What past tasks taught, such as a `dre_plugins.Prior`.
        settings: Options of `RecommenderSettings`, by name.

    Raises:
        ValueError: If an argument is invalid; the message names it.

    Example:
        >>> from dre_plugins.space import Float
        >>> study = AskTell({"x": Float(-1.0, 1.0)}, direction="minimize", seed=0)
        >>> number, configuration = study.ask()
        >>> study.tell(number, configuration["x"] ** 2)
        >>> study.best.configuration == configuration
        True
    """

    def __init__(
        self,
        space: SearchSpace | Mapping[str, Domain | Sequence[Any]],
        *,
        direction: str = "minimize",
        seed: int | None = None,
        prior: PriorLike | None = None,
        **settings: Any,
    ) -> None:
        require(
            direction in ("minimize", "maximize"),
            "direction",
            direction,
            "'minimize' or 'maximize'",
        )
        if not isinstance(space, SearchSpace):
            space = SearchSpace(
                {
                    name: domain if isinstance(domain, Domain) else ordered_choices(domain)
                    for name, domain in space.items()
                }
            )
        if seed is None:
            seed = int(np.random.default_rng().integers(2**32))
        self.stats: Counter[str] = Counter()
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._recommender = Recommender(
            space, RecommenderSettings(**settings), seed=seed, stats=self.stats, prior=prior
        )
        self._trials: list[Trial] = []

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials so far, in order, with the values that were told."""
        return tuple(self._told(trial) for trial in self._trials)

    @property
    def best(self) -> Trial:
        """The complete trial of the best value.

        Raises:
            ValueError: If no trial is complete.
        """
        complete = [trial for trial in self._trials if trial.state is TrialState.COMPLETE]
        require(bool(complete), "best", None, "asked for after a trial is complete")
        worst = -math.inf
        return self._told(max(complete, key=lambda one: worst if one.value is None else one.value))

    def ask(self) -> tuple[int, dict[str, Any]]:
        """Return the number and the configuration of a new trial."""
        number, suggestion = len(self._trials), self._suggest(1)[0]
        self._trials.append(Trial(suggestion.configuration, TrialState.RUNNING))
        return number, dict(suggestion.configuration)

    def ask_batch(self, count: int) -> list[tuple[int, dict[str, Any]]]:
        """Return several new trials, different from each other, for little more than one."""
        first, suggestions = len(self._trials), self._suggest(count)
        for suggestion in suggestions:
            self._trials.append(Trial(suggestion.configuration, TrialState.RUNNING))
        return [(first + i, dict(s.configuration)) for i, s in enumerate(suggestions)]

    def tell(self, number: int, value: float | None) -> None:
        """Report the value of a trial; None or NaN says that it failed.

        Raises:
            ValueError: If there is no such trial, it has been told before, or the value is no
                number.
        """
        require(0 <= number < len(self._trials), "number", number, "a number that ask returned")
        trial = self._trials[number]
        require(trial.state is TrialState.RUNNING, "number", number, "a trial not told before")
        self._trials[number] = self._ended(trial.configuration, value)

    def add(self, configuration: Mapping[str, Any], value: float | None) -> None:
        """Add a trial that was evaluated elsewhere.

        Raises:
            ValueError: If the configuration is not in the space, or the value no number.
        """
        self._recommender.space.check(configuration)
        self._trials.append(self._ended(dict(configuration), value))

    def _ended(self, configuration: Mapping[str, Any], value: float | None) -> Trial:
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        require(value is None or is_number, "value", value, "a number or None")
        if value is None or math.isnan(value):
            return Trial(configuration, TrialState.FAILED)
        return Trial(configuration, TrialState.COMPLETE, self._sign * float(value))

    def _told(self, trial: Trial) -> Trial:
        return trial if trial.value is None else replace(trial, value=self._sign * trial.value)

    def _suggest(self, count: int) -> list[Suggestion]:
        return self._recommender.suggest(self._trials, count, index=len(self._trials))
