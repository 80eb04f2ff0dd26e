"""When to end a study: when the next trials are expected to gain too little.

The universal prior gives the expected improvement of the best candidate. In recorded studies, the
gain of the next k trials grew with the square root of that and nearly in proportion to k
(lab/2026-11-24-stopping.md).
"""

import logging
import math
from dataclasses import dataclass

import numpy as np

from dre_plugins.checks import is_integer, is_real, require
from dre_plugins.recommend.lists import largest_of
from dre_plugins.recommend.trials import Observed, number_of
from dre_plugins.space.rules import Rule
from dre_plugins.study.kept_trials import KeptTrials

# Default of `min_gain`, as a share of what a study has gained so far. It ends 18 of 92 recorded
# studies of 60 or 100 trials; 3 of these would still have gained .05 of regret
# (lab/2026-11-24-stopping.md).
MIN_SHARE = 0.02
# The median of this many first trials is where a study began.
N_FIRST = 10
# Fitted to recorded studies: the factor for ten trials, and the exponent of their number.
GAIN_OF_TEN = 0.5
MAX_AHEAD = 1_000_000
BY_NUMBER = 0.9
# Values that differ by no more than this share are equal, as in the posterior.
ROUNDING = 4.0 * np.finfo(np.float64).eps


@dataclass(frozen=True, slots=True)
class ExpectedGain:
    """Hold the gain that is expected of the next trials, in the unit of the metric.

    Args:
        gain: Expected improvement of the next trials on the best one.
        gained: Difference between the best trial and the median of the first ten.
    """

    gain: float
    gained: float


def expected_gain(rule: Rule, observed: Observed, *, n_ahead: int = 10) -> ExpectedGain | None:
    """Return the expected gain of the next trials; None before ten complete, feasible trials.

    gain = ½ √(EI · gained) (k / 10)^0.9, with EI the largest expected improvement of a candidate.
    Under constraints, or where a region fails, it is too large: it takes all candidates as valid.

    `rule` says which configurations may be tried. What is `observed` has one objective; larger is
    better. `n_ahead` is the number k of next trials, at least 1.
    """
    all_values = np.array([trial.value for trial in observed.valid_trials], dtype=np.float64)
    values = all_values[np.isfinite(all_values)]
    if len(values) < N_FIRST or not rule.space.n_parameters:
        return None
    from dre_plugins.recommend.posterior import best_improvement  # torch: only when it is needed

    with np.errstate(under="ignore"):
        # Divided by the largest first, as differences of 1e308 overflow.
        size = largest_of(values)
        gained = size * float(values.max() / size - np.median(values[:N_FIRST] / size))
    improvement = best_improvement(rule, observed)
    share = GAIN_OF_TEN * (n_ahead / 10) ** BY_NUMBER
    # Not the root of the product: that of two values of 1e-200 is none.
    return ExpectedGain(share * math.sqrt(improvement) * math.sqrt(gained), gained)


def check_n_ahead(n_ahead: int) -> None:
    """Raise a ValueError unless the gain of so many next trials can be told."""
    is_number = is_integer(n_ahead) and 1 <= n_ahead <= MAX_AHEAD
    require(is_number, "n_ahead", n_ahead, f"an integer from 1 to {MAX_AHEAD}")


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Decide when a study ends; a ValueError says that an argument is out of range."""

    n_ahead: int = 10  # number of next trials whose gain is considered, at least 1
    # smallest expected gain for which the study continues, in the unit of the metric, above 0;
    # None: 2 % of the difference between the best trial and the median of the first ten
    min_gain: float | None = None
    min_n_trials: int = 20  # complete, feasible trials before which the study never ends

    def __post_init__(self) -> None:
        check_n_ahead(self.n_ahead)
        is_gain = self.min_gain is None or (
            is_real(self.min_gain) and 0.0 < number_of(self.min_gain) < math.inf
        )
        require(is_gain, "min_gain", self.min_gain, "a finite number above 0, or None")
        is_number = is_integer(self.min_n_trials) and self.min_n_trials >= N_FIRST
        require(is_number, "min_n_trials", self.min_n_trials, f"an integer from {N_FIRST}")

    def is_met(
        self, rule: Rule, observed: Observed, *, n_objectives: int, logger: logging.Logger
    ) -> bool:
        """Say whether a study of one objective is to end, and log why it is; see `expected_gain`.

        Equal values tell no scale of gains; if all are, the study ends. If the model fails it goes
        on, with a warning.
        """
        require(n_objectives == 1, "the number of objectives", n_objectives, "1")
        if len(observed.valid) < self.min_n_trials:
            return False
        values = np.array([trial.value for trial in observed.valid_trials], dtype=np.float64)
        with np.errstate(over="ignore"):  # differences of 1e308
            are_equal = np.allclose(values, values[0], rtol=ROUNDING, atol=0.0)
        if are_equal:
            text = "The study ends after %d complete trials, as all have the same value."
            logger.info(text, len(values))
            return True
        try:
            expected = expected_gain(rule, observed, n_ahead=self.n_ahead)
        except RuntimeError as error:  # numerics or memory: no reason to end a study
            logger.warning("The gain of further trials cannot be told: %s", error)
            return False
        if expected is None:
            return False
        limit = MIN_SHARE * expected.gained if self.min_gain is None else self.min_gain
        if expected.gain < limit:
            logger.info(
                "The study ends after %d complete trials: the next %d are expected to gain %.3g, "
                "less than %.3g.",
                *(len(observed.valid), self.n_ahead, expected.gain, limit),
            )
        return expected.gain < limit


class StudyStopping:
    """Ask a rule about a study, once for each trial that ends."""

    def __init__(self, rule: StoppingRule, logger: logging.Logger) -> None:
        self._rule = rule
        self._logger = logger
        self._n_ended = 0
        self._is_met = False

    def is_met(self, study: KeptTrials) -> bool:
        """Say whether a study is to end; a ValueError: it has several objectives."""
        n_ended = study.n_ended
        if n_ended > self._n_ended and not self._is_met:
            self._n_ended = n_ended
            self._is_met = self._rule.is_met(
                study.rule,
                study.observed(),
                n_objectives=len(study.directions),
                logger=self._logger,
            )
        return self._is_met
