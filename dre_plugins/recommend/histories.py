"""What pictures are drawn of: the trials of a study after the fact, as those of one objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.lists import final_value
from dre_plugins.recommend.pareto import single_objective
from dre_plugins.recommend.trials import Trial, feasible
from dre_plugins.space.search_space import SearchSpace


@dataclass(frozen=True)
class StudyHistory:
    """Hold the trials of a study that have begun, as trials of one objective.

    Args:
        space: The search space.
        trials: The trials; larger values are better.
        numbers: Their numbers in the study `[N]`.
    """

    space: SearchSpace
    trials: tuple[Trial, ...]
    numbers: NDArray[np.intp]

    @classmethod
    def of(
        cls, space: SearchSpace, trials: Sequence[Trial], numbers: Sequence[int], chosen: int
    ) -> StudyHistory:
        """Return the trials that have parameters.

        Args:
            space: The search space.
            trials: Trials of one objective or several, larger values are better.
            numbers: Their numbers in the study.
            chosen: Which objective, from 0.
        """
        single = [replace(trial, objectives=()) for trial in single_objective(trials, chosen)]
        kept = [place for place, trial in enumerate(single) if trial.configuration]
        return cls(
            space,
            tuple(single[place] for place in kept),
            np.array([numbers[place] for place in kept], dtype=np.intp),
        )


def chosen_objective(n_objectives: int, objective: int | None) -> int:
    """Return the number of an objective; None is the only one.

    Raises:
        ValueError: If there are several and none is chosen, or there is no such one.
    """
    if objective is None and n_objectives == 1:
        return 0
    if objective is None or not 0 <= objective < n_objectives:
        raise ValueError(
            f"objective must be a number from 0 to {n_objectives - 1}, as the study has "
            f"{n_objectives} objective{'s' if n_objectives > 1 else ''}, got {objective!r}."
        )
    return objective


def best_values(ended: Sequence[Trial]) -> NDArray[np.float64]:
    """Return the best feasible value after each of the trials `[N]`; before the first one −inf."""
    values = [final_value(trial) for trial in ended]
    finals = np.array([-np.inf if value is None else value for value in values], dtype=np.float64)
    return np.maximum.accumulate(np.where(feasible(ended), finals, -np.inf))
