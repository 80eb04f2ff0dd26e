"""An Optuna study after the fact, in the recommender's terms: what pictures are drawn of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import optuna
from optuna.trial import TrialState as OptunaState

from dre_plugins.adapters.optuna.conversion import STATES, learnt_space, union_of_distributions
from dre_plugins.adapters.optuna.explanation import explanation_of
from dre_plugins.adapters.optuna.history import History, trial_of
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

Study: TypeAlias = optuna.Study


def begun_in(study: Study) -> tuple[SearchSpace, list[Trial], list[int]]:
    """Return the search space of a study, the trials that have begun, and their numbers.

    Conditions of the search space are learnt from the trials. Trials with a value that their
    parameter cannot have are left out.
    """
    every = study.get_trials(deepcopy=False)
    distributions = union_of_distributions(every)
    begun = [trial for trial in every if trial.state in STATES]
    begun, history, _ = History().readable(begun, distributions, study.directions)
    space, _ = learnt_space(distributions, begun, history)
    return space, history, [trial.number for trial in begun]


def begun_with_parameters(study: Study) -> tuple[SearchSpace, list[Trial], list[int]]:
    """Return what `begun_in` does, without trials that have asked for no parameter."""
    space, history, numbers = begun_in(study)
    rows = [row for row, trial in enumerate(history) if trial.configuration]
    return space, [history[row] for row in rows], [numbers[row] for row in rows]


def ended_in(study: Study) -> list[Trial]:
    """Return the values of the trials of a study that have ended, without their parameters."""
    trials = study.get_trials(deepcopy=False)
    return [trial_of(trial, {}, study.directions) for trial in trials if trial.state.is_finished()]


def explanations_of(study: Study) -> Mapping[int, Explanation]:
    """Return the explanation of every trial that has begun, by number."""
    trials = study.get_trials(deepcopy=False)
    begun = [trial for trial in trials if trial.state is not OptunaState.WAITING]
    return {trial.number: explanation_of(trial) for trial in begun}
