"""When to end a study: when the next trials are expected to gain too little."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dre_plugins.engine.settings import require
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.expected_gain import N_FIRST, expected_gain
from dre_plugins.recommend.results import valid_positions
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import is_integer, is_real
from dre_plugins.space.search_space import SearchSpace

# Share of what a study has gained: the default limit of what is too little. Of 92 recorded studies
# of 60 or 100 trials it ends 18, and 3 of them would still have gained .05 of regret
# (lab/2026-11-24-stopping.md).
MIN_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Say when a study is to end.

    Args:
        n_ahead: How many further trials are thought of, at least 1.
        min_gain: The study ends when they are expected to gain less, in the unit of the metric,
            above 0. None: 2 % of what the best trial has gained on the median of the first ten.
        min_n_trials: Complete, feasible trials before which it goes on, at least 10.

    Raises:
        ValueError: If one of them is out of range.
    """

    n_ahead: int = 10
    min_gain: float | None = None
    min_n_trials: int = 20

    def __post_init__(self) -> None:
        is_number = is_integer(self.n_ahead) and self.n_ahead >= 1
        require(is_number, "n_ahead", self.n_ahead, "an integer from 1")
        is_gain = self.min_gain is None or (is_real(self.min_gain) and self.min_gain > 0)
        require(is_gain, "min_gain", self.min_gain, "a number above 0, or None")
        is_number = is_integer(self.min_n_trials) and self.min_n_trials >= N_FIRST
        require(is_number, "min_n_trials", self.min_n_trials, f"an integer from {N_FIRST}")

    def is_met(
        self,
        space: SearchSpace,
        history: Sequence[Trial],
        trials: Sequence[Trial] | None = None,
        *,
        n_objectives: int,
        logger: logging.Logger,
    ) -> bool:
        """Say whether a study is to end, and log why it is.

        If the model fails the study goes on, with a warning.

        Args:
            space: The search space.
            history: The trials as they count, see `trials.as_of_now`; larger values are better.
            trials: The same trials as they are, see `expected_gain`.
            n_objectives: Number of objectives.
            logger: Where messages go.

        Raises:
            ValueError: If there are several objectives.
        """
        require(n_objectives == 1, "the number of objectives", n_objectives, "1")
        valid = valid_positions(history, history if trials is None else trials)
        if len(valid) < self.min_n_trials:
            return False
        try:
            expected = expected_gain(space, history, trials, n_ahead=self.n_ahead)
        except RuntimeError as error:  # numerics or memory: no reason to end a study
            logger.warning("What further trials gain cannot be told: %s", error)
            return False
        if expected is None:
            return False
        limit = MIN_SHARE * expected.gained if self.min_gain is None else self.min_gain
        if expected.gain < limit:
            logger.info(
                "The study ends after %d complete trials: the next %d are expected to gain %.3g, "
                "less than %.3g.",
                *(len(valid), self.n_ahead, expected.gain, limit),
            )
        return expected.gain < limit


class StudyStopping:
    """Ask a rule about a study, once for each trial that ends.

    Args:
        rule: When the study is to end.
        logger: Where messages go.
    """

    def __init__(self, rule: StoppingRule, logger: logging.Logger) -> None:
        self._rule = rule
        self._logger = logger
        self._n_ended = 0
        self._is_met = False

    def is_met(self, study: AskTell) -> bool:
        """Say whether a study is to end.

        Raises:
            ValueError: If it has several objectives.
        """
        trials = study.trials
        n_ended = sum(trial.state is not TrialState.RUNNING for trial in trials)
        if n_ended > self._n_ended and not self._is_met:
            self._n_ended = n_ended
            self._is_met = self._rule.is_met(
                study.space,
                study.history()[: len(trials)],
                trials,
                n_objectives=len(study.directions),
                logger=self._logger,
            )
        return self._is_met
