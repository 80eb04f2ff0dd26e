"""An Optuna study after the fact, in the recommender's terms: what pictures are drawn of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.optuna_conversion import (
    STATES,
    space_of,
    trial_of,
    union_of_distributions,
)
from dre_plugins.adapters.optuna_explanation import explanation_of
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.lists import final_value
from dre_plugins.recommend.pareto import objective_alone
from dre_plugins.recommend.trials import Trial, feasible
from dre_plugins.space.search_space import SearchSpace

Study: TypeAlias = optuna.Study


@dataclass(frozen=True)
class StudyHistory:
    """Hold the trials of a study that have begun, as trials of one objective.

    Args:
        space: The search space, with conditions learnt from the trials.
        trials: The trials; larger values are better.
        numbers: Their numbers in the study `[N]`.
    """

    space: SearchSpace
    trials: tuple[Trial, ...]
    numbers: NDArray[np.intp]


def history_of(study: Study, objective: int | None = None) -> StudyHistory:
    """Return the trials of a study that have parameters, whatever sampler made them.

    Args:
        study: The study.
        objective: Which one, from 0; may be None if there is one only.

    Raises:
        ValueError: If the study has several objectives and none is chosen, or has no such one.
    """
    chosen = chosen_objective(study, objective)
    every = study.get_trials(deepcopy=False)
    distributions = union_of_distributions(every)
    begun = [trial for trial in every if trial.state in STATES]
    history = [trial_of(trial, distributions, study.directions) for trial in begun]
    space = space_of(distributions, begun, history)
    alone = [replace(one, objectives=()) for one in objective_alone(history, chosen)]
    kept = [place for place, trial in enumerate(alone) if trial.configuration]
    return StudyHistory(
        space,
        tuple(alone[place] for place in kept),
        np.array([begun[place].number for place in kept], dtype=np.intp),
    )


def chosen_objective(study: Study, objective: int | None) -> int:
    """Return the number of an objective, see `history_of`."""
    n = len(study.directions)
    if objective is None and n == 1:
        return 0
    if objective is None or not 0 <= objective < n:
        raise ValueError(
            f"objective must be a number from 0 to {n - 1}, as the study has {n} "
            f"objective{'s' if n > 1 else ''}, got {objective!r}."
        )
    return objective


def best_so_far(study: Study) -> NDArray[np.float64]:
    """Return the best feasible value after each trial that has ended `[N]`; larger is better.

    Before the first one it is −inf.

    Raises:
        ValueError: If the study has several objectives.
    """
    chosen_objective(study, None)
    trials = study.get_trials(deepcopy=False)
    ended = [trial_of(one, {}, study.directions) for one in trials if one.state.is_finished()]
    values = [final_value(trial) for trial in ended]
    known = np.array([-np.inf if value is None else value for value in values], dtype=np.float64)
    return np.maximum.accumulate(np.where(feasible(ended), known, -np.inf))


def explanations_of(study: Study) -> Mapping[int, Explanation]:
    """Return the explanation of every trial that has begun, by number."""
    trials: Sequence[optuna.trial.FrozenTrial] = study.get_trials(deepcopy=False)
    return {
        trial.number: explanation_of(trial)
        for trial in trials
        if trial.state is not OptunaState.WAITING
    }
