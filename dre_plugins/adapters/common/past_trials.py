"""Trials of past experiments that are read as named reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.transfer.sources.cells import number

Key = TypeVar("Key")


@dataclass(frozen=True)
class PastTrial:
    """Hold one trial of an experiment, and its reports in their order."""

    configuration: Mapping[str, Any]
    reports: Sequence[Mapping[str, Any]]
    has_ended: bool  # by itself: it does not run any more, and nothing has stopped it
    has_failed: bool

    def by_step(self, resource: str | None) -> dict[float, Mapping[str, Any]]:
        """Return the reports by step: what they state of a resource, such as epochs.

        A report without a number there is one step after the report before. Where a trial began
        again at an earlier step, its reports of that and of later steps no longer count.
        """
        reports: dict[float, Mapping[str, Any]] = {}
        for report in self.reports:
            step = number(report.get(resource or ""))
            step = step if isfinite(step) else next(reversed(reports), 0.0) + 1.0
            while reports and next(reversed(reports)) >= step:
                reports.popitem()
            reports[step] = report
        return reports


def trials_of(
    past: Mapping[Key, PastTrial], metric: str, sign: float, resource: str | None, limits: Limits
) -> dict[Key, Trial]:
    """Return the trials of one experiment, with values times a sign.

    The last report that has the metric counts. A trial that has not ended by itself is complete if
    none got further, and otherwise pruned.
    """
    by_step = {key: trial.by_step(resource) for key, trial in past.items()}
    furthest = max((step for reports in by_step.values() for step in reports), default=0.0)
    trials = {}
    for key, reports in by_step.items():
        rungs = {s: sign * number(r[metric]) for s, r in reports.items() if metric in r}
        last_step, last = next(reversed(reports.items()), (0.0, {}))
        state, value = TrialState.PRUNED, None
        if past[key].has_failed:
            state = TrialState.FAILED
        elif past[key].has_ended or last_step == furthest:
            state, value = TrialState.COMPLETE, next(reversed(rungs.values()), None)
        violations = limits.violations(last)
        trials[key] = Trial(past[key].configuration, state, value, rungs, constraints=violations)
    return trials
