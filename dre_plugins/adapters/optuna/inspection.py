"""An Optuna study after the fact, in the recommender's terms: what pictures are drawn of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.optuna.conversion import (
    STATES,
    readable,
    space_of,
    trial_of,
    union_of_distributions,
)
from dre_plugins.adapters.optuna.explanation import explanation_of
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.histories import StudyHistory, best_values, chosen_objective

Study: TypeAlias = optuna.Study


def history_of(study: Study, objective: int | None = None) -> StudyHistory:
    """Return the trials of a study that have parameters, whatever sampler made them.

    Conditions of the search space are learnt from the trials. Trials with a value that their
    parameter cannot have are left out.

    Args:
        study: The study.
        objective: Which one, from 0; may be None if there is one only.

    Raises:
        ValueError: If the study has several objectives and none is chosen, or has no such one.
    """
    chosen = chosen_objective(len(study.directions), objective)
    every = study.get_trials(deepcopy=False)
    distributions = union_of_distributions(every)
    begun = [trial for trial in every if trial.state in STATES]
    begun, history = readable(begun, distributions, study.directions)
    space = space_of(distributions, begun, history)
    return StudyHistory.of(space, history, [trial.number for trial in begun], chosen)


def best_so_far(study: Study) -> NDArray[np.float64]:
    """Return the best feasible value after each trial that has ended `[N]`; larger is better.

    Before the first one it is −inf.

    Raises:
        ValueError: If the study has several objectives.
    """
    chosen_objective(len(study.directions), None)
    trials = study.get_trials(deepcopy=False)
    return best_values(
        [trial_of(trial, {}, study.directions) for trial in trials if trial.state.is_finished()]
    )


def explanations_of(study: Study) -> Mapping[int, Explanation]:
    """Return the explanation of every trial that has begun, by number."""
    trials: Sequence[optuna.trial.FrozenTrial] = study.get_trials(deepcopy=False)
    return {
        trial.number: explanation_of(trial)
        for trial in trials
        if trial.state is not OptunaState.WAITING
    }
