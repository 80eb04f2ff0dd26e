"""What happened so far: the trials of a study, in the recommender's terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
        objectives: Final values of several objectives, larger is better; then `value` is None.
            A NaN among them means that the trial failed.
        constraints: How far each constraint is violated, by name; at most 0 where it is met. One
            that is absent or NaN is unknown.
    """

    configuration: Mapping[str, Any]
    state: TrialState
    value: float | None = None
    rungs: Mapping[float, float] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)


def number_of(value: Any) -> float:
    """Return a reported number as a float, which a trainable may report in any form.

    Integers beyond the floats are infinite; NaN for everything that is no number.
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        return math.nan  # RuntimeError: a tensor of several elements


def feasible(history: Sequence[Trial]) -> NDArray[np.bool_]:
    """Return which trials meet all constraints that they state `[N]`; NaN meets none."""
    return np.array(
        [all(value <= 0.0 for value in trial.constraints.values()) for trial in history],
        dtype=np.bool_,
    )
