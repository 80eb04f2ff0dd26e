"""A ranking ensemble fitted to a study, for plots.

Use it within `engine.runtime.isolated`, which protects the user's torch settings. Notation: see
docs/architecture.md.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dre_plugins.checks import is_integer, require
from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend.lists import final_values
from dre_plugins.recommend.pareto import single_objective
from dre_plugins.recommend.prior import GivenPrior, checked
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings, Settings, checked_settings
from dre_plugins.recommend.trials import Trial, feasible
from dre_plugins.space.base import Array
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study.arguments import prior_from
from dre_plugins.study.ask_tell import AskTell

if TYPE_CHECKING:
    from dre_plugins.adapters.optuna import history

Study: TypeAlias = "AskTell | history.Study"

# Seed of the fits, so that a figure is the same each time.
SEED = 0
# Fewest trials that can be ranked.
MIN_TRIALS = 2


class Fitted:
    """Fit ensembles to one objective of a study, see `plot_predicted_ranks` for the arguments.

    Args:
        least: Smallest number of trials with a value.

    Attributes:
        space: The search space.
        units: Canonical coordinates of the trials `[N, P]`.
        values: Their values, larger is better, NaN where there is none `[N]`.
    """

    def __init__(
        self,
        study: Study,
        prior: GivenPrior,
        settings: Settings | None,
        objective: int | None,
        least: int = MIN_TRIALS,
    ) -> None:
        is_study = hasattr(study, "directions")
        require(is_study, "study", study, "a study of Optuna, or an AskTell")
        n_objectives = len(study.directions)
        chosen = _chosen_objective(n_objectives, objective)
        loaded = checked(prior_from(prior), n_objectives)
        if isinstance(loaded, tuple):
            loaded = loaded[chosen]
        self.space, begun = _begun_in(study)
        single = single_objective(begun, chosen)
        self._trials = [replace(trial, objectives=()) for trial in single if trial.configuration]
        self.values: Array = final_values(self._trials)
        n = int((~np.isnan(self.values)).sum()) if self.space.n_parameters else 0
        if n < least:
            raise ValueError(
                f"The picture needs {least} trials with a value; the study has {n} with "
                "parameters that vary."
            )
        self.units: Array = self.space.to_units([trial.configuration for trial in self._trials])
        if not isinstance(settings, RecommenderSettings):
            settings = checked_settings(settings).for_recommender()
        self._recommender = Recommender(self.space, settings, seed=SEED, prior=loaded)

    def ensemble(self, held_out: Collection[int] = ()) -> EnsembleProposer:
        """Return the ensemble as it would be fitted for the next suggestion.

        If trials are left out, those in places `held_out`, it ranks against all with a value.
        """
        history = [trial for place, trial in enumerate(self._trials) if place not in held_out]
        candidates = self.units[~np.isnan(self.values)] if held_out else None
        with isolated("cpu", self._recommender.settings.n_threads):
            return self._recommender.ensemble(
                history, index=len(self._trials), candidates=candidates
            )

    def incumbent(self, columns: Sequence[int], argument: str) -> Array:
        """Return the best trial that has some parameters, completed to a whole row `[P]`.

        Feasible trials are better than others. Values of inactive parameters are taken from the
        best trial that has them. A ValueError, which names the user's `argument`, says that no
        trial with a value has the parameters.
        """
        order = np.lexsort([-self.values, ~feasible(self._trials)])
        rows = self.units[order[~np.isnan(self.values[order])]]
        has_all = ~np.isnan(rows[:, columns]).any(axis=1)
        named = [self.space.names[column] for column in columns]
        require(bool(has_all.any()), argument, named, "parameters that one trial has together")
        row: Array = rows[np.argmax(has_all)].copy()
        for column in np.flatnonzero(np.isnan(row)):
            places = rows[~np.isnan(rows[:, column]), column]
            row[column] = places[0] if len(places) else 0.5
        return row


def _begun_in(study: Study) -> tuple[SearchSpace, list[Trial]]:
    """Return the search space of a study, and its trials that have begun."""
    if isinstance(study, AskTell):
        return study.space, study.history()
    from dre_plugins.adapters.optuna.history import begun_in  # an `AskTell` needs no Optuna

    space, _, trials = begun_in(study)
    return space, trials


def _chosen_objective(n_objectives: int, objective: int | None) -> int:
    """Return the number of the objective to plot; None is the only one."""
    if objective is None and n_objectives == 1:
        return 0
    if objective is None or not (is_integer(objective) and 0 <= objective < n_objectives):
        raise ValueError(
            f"objective must be a number from 0 to {n_objectives - 1}, as the study has "
            f"{n_objectives} objective{'s' if n_objectives > 1 else ''}, got {objective!r}."
        )
    return objective
