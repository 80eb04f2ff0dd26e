"""What happened so far: the trials of a study, in the recommender's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class TrialState(str, Enum):
    """Say what became of a trial."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trial:
    """Hold one evaluated, running or broken-off configuration.

    Args:
        configuration: Parameter values by name; inactive parameters are absent.
        state: What became of the trial.
        value: Final value, larger is better. `None` or NaN on a complete trial means that it
            failed; infinities are ranked like any other value.
        rungs: Intermediate values by step (resource), larger is better.
    """

    configuration: Mapping[str, Any]
    state: TrialState
    value: float | None = None
    rungs: Mapping[float, float] = field(default_factory=dict)
