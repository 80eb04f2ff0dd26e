"""Limits on reported metrics as constraints, for frameworks whose trials report by name."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dre_plugins.checks import is_real, require
from dre_plugins.recommend.trials import number_of


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold the lowest and the highest allowed value of metrics; infinite is no limit."""

    ranges: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Limits:
        """Return the limits that a user gives.

        `given` has, by metric, the highest allowed value, or a pair of the lowest and the highest,
        where None is no limit.
        """
        is_mapping = given is None or isinstance(given, Mapping)
        require(is_mapping, "constraints", given, "a dictionary of limits by metric")
        ranges = {}
        remedy = "a number, the highest value allowed, or a pair of the lowest and the highest"
        for metric, limit in (given or {}).items():
            pair = limit if isinstance(limit, (tuple, list)) else (None, limit)
            name = f"constraints[{metric!r}]"
            bounds = [bound for bound in pair if bound is not None]
            are_numbers = all(is_real(b) and not math.isnan(number_of(b)) for b in bounds)
            require(len(pair) == 2 and bool(bounds) and are_numbers, name, limit, remedy)
            low = -math.inf if pair[0] is None else number_of(pair[0])
            high = math.inf if pair[1] is None else number_of(pair[1])
            require(low <= high, name, limit, "a range that is not empty")
            ranges[str(metric)] = (low, high)
        return cls(ranges)

    def check(self, reported: Collection[str]) -> None:
        """Refuse limits on metrics that no trial has reported, by a ValueError."""
        for metric in self.ranges:
            remedy = f"on what trials reported, {sorted(reported)}"
            require(metric in reported, "constraints", metric, remedy)

    def count_unreported(self, reported: Collection[str], skipped: Counter[str]) -> None:
        """Count limits on metrics that a past experiment has not reported, which say nothing."""
        for metric in self.ranges:
            if metric not in reported:
                skipped[f"limit on {metric!r}, which an experiment does not report"] += 1

    def violations(self, result: Mapping[str, Any]) -> dict[str, float]:
        """Return how far a result exceeds each limit, at most 0 within; NaN without the metric."""
        return {
            metric: _violation(result.get(metric), low, high)
            for metric, (low, high) in self.ranges.items()
        }

    def violations_of(
        self, trial_id: object, result: Mapping[str, Any], warn_once: Callable[[str, str], None]
    ) -> dict[str, float]:
        """Return `violations` of the last report of a trial.

        If any is unknown, as its metric may be misspelt, `warn_once` gets a text and its topic.
        """
        violations = self.violations(result)
        unknown = [metric for metric, violation in violations.items() if math.isnan(violation)]
        if unknown:
            warn_once(
                f"Whether trial {trial_id} meets the constraints is unknown: its last report "
                f"lacks {unknown}, or has no number there.",
                "constraints",
            )
        return violations


def _violation(value: Any, low: float, high: float) -> float:
    number = number_of(value)
    if math.isnan(number):
        return math.nan
    if low <= number <= high and math.isinf(number):
        return -math.inf  # the difference of two infinities is no number
    return max(low - number, number - high)
