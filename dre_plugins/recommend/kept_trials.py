"""The trials of one study in memory, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from dre_plugins.engine.settings import require
from dre_plugins.recommend import results
from dre_plugins.recommend.directions import Directions
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.locking import Locked, locked
from dre_plugins.recommend.trials import Trial, TrialState, as_of_now


class KeptTrials(Locked):
    """Keep trials, and say which of them are best; what `AskTell` is without asking or telling.

    Args:
        directions: Which values are good.
    """

    def __init__(self, directions: Directions) -> None:
        super().__init__()
        self._directions = directions
        self._trials: list[Trial] = []
        self._explanations: dict[int, Explanation] = {}
        # Numbers of trials that something else has ended.
        self._stopped: set[int] = set()

    @property
    def directions(self) -> tuple[str, ...]:
        """Return "minimize" or "maximize" for each objective."""
        return self._directions.names

    @property
    @locked
    def trials(self) -> tuple[Trial, ...]:
        """All trials so far, in order, with the values that were told."""
        as_ended = results.as_ended(self.history(), self._trials)
        return tuple(map(self._directions.in_users_sign, as_ended))

    @property
    @locked
    def best(self) -> Trial:
        """The complete trial of the best value among those that meet all constraints.

        Raises:
            ValueError: If there is no such trial, or there are several objectives.
        """
        valid = results.valid_trials(self.history(), self._trials)
        return self._directions.in_users_sign(results.best(valid, len(self.directions)))

    @property
    @locked
    def best_trials(self) -> tuple[Trial, ...]:
        """The complete trials that meet all constraints and that no other one beats throughout."""
        valid = results.valid_trials(self.history(), self._trials)
        return tuple(map(self._directions.in_users_sign, results.best_trials(valid)))

    @locked
    def is_running(self, number: int) -> bool:
        """Say whether a trial was asked for and has not ended."""
        return 0 <= number < len(self._trials) and self._trials[number].state is TrialState.RUNNING

    @locked
    def explain(self, number: int) -> Explanation:
        """Say where a configuration came from and what was expected of it.

        Args:
            number: What `ask` returned; a trial that was added is of source "unknown".

        Raises:
            ValueError: If there is no such trial.
        """
        self._trial(number)
        return self._explanations.get(number, Explanation("unknown"))

    @locked
    def history(self) -> list[Trial]:
        """Return the trials as the recommender sees them: larger values are better.

        What has reported, and has not ended by itself, counts by what it reported.
        """
        return as_of_now(self._trials, self._stopped)

    def _trial(self, number: int) -> Trial:
        require(0 <= number < len(self._trials), "number", number, "a number that ask returned")
        return self._trials[number]


def complete(saved: Iterable[Trial] | Iterable[Explanation]) -> None:
    """Give what an older version saved the defaults of fields that it did not have."""
    for kept in saved:
        for field in fields(kept):
            if not hasattr(kept, field.name):
                object.__setattr__(kept, field.name, field.default)
