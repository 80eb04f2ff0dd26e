"""A ranking ensemble fitted to a study, to be looked into.

It is looked into within `isolated`, which leaves no trace in the user's torch. Notation: see
docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import require
from dre_plugins.plots.studies import Study, history_of
from dre_plugins.recommend.ensemble.fitted import FittedEnsemble
from dre_plugins.recommend.histories import StudyHistory, chosen_objective
from dre_plugins.recommend.lists import final_value
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import feasible
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.knowledge import GivenPrior, prior_from

Units: TypeAlias = NDArray[np.float64]

# A picture is the same each time that it is drawn.
SEED = 0
# With fewer there is nothing to rank.
MIN_TRIALS = 2


class Fitted:
    """Fit ensembles to one objective of a study.

    Args:
        study: The study, of Optuna and any sampler, or an `AskTell`.
        prior: What the ensemble starts from: see `DRESampler`.
        settings: Of the fit.
        objective: Which one, from 0; needed if there are several.
        least: Trials with a value that the study must have.

    Attributes:
        space: The search space.
        units: Canonical coordinates of the trials `[N, P]`.
        values: Their values, larger is better, NaN where there is none `[N]`.
        numbers: Their numbers in the study `[N]`.

    Raises:
        ValueError: If the study has too few trials, no parameters, or no such objective.
    """

    def __init__(
        self,
        study: Study,
        prior: GivenPrior,
        settings: RecommenderSettings | None,
        objective: int | None,
        least: int = MIN_TRIALS,
    ) -> None:
        history: StudyHistory = history_of(study, objective)
        loaded = prior_from(prior)
        if isinstance(loaded, tuple):
            loaded = loaded[chosen_objective(len(study.directions), objective)]
        self.space: SearchSpace = history.space
        self.numbers = history.numbers
        self._trials = history.trials
        finals = [final_value(trial) for trial in history.trials]
        self.values = np.array(
            [np.nan if final is None else final for final in finals], dtype=np.float64
        )
        n = int((~np.isnan(self.values)).sum())
        require(
            n >= least, "study", f"{n} trials with a value", f"of at least {least} such trials"
        )
        require(self.space.n_parameters > 0, "study", "none", "of trials with parameters")
        self.units: Units = self.space.to_units([trial.configuration for trial in self._trials])
        self._recommender = Recommender(self.space, settings, seed=SEED, prior=loaded)
        self._n_threads = self._recommender.settings.n_threads

    def ensemble(self) -> FittedEnsemble:
        """Return the ensemble that the next suggestion would be chosen by."""
        return self._fit(range(len(self._trials)), None)

    def blind_ensemble(self, hidden: Sequence[int]) -> FittedEnsemble:
        """Return an ensemble that does not know some trials and ranks against all of them.

        Args:
            hidden: Positions of trials that it is not told of.
        """
        kept = [place for place in range(len(self._trials)) if place not in set(hidden)]
        has_value = ~np.isnan(self.values)
        return self._fit(kept, self.units[has_value])

    def _fit(self, kept: Sequence[int], candidates: Units | None) -> FittedEnsemble:
        with isolated("cpu", self._n_threads):
            history = [self._trials[place] for place in kept]
            return self._recommender.ensemble(
                history, index=len(self._trials), candidates=candidates
            )

    def column(self, name: str) -> int:
        """Return the place of a parameter.

        Raises:
            ValueError: If there is none of that name.
        """
        names = self.space.names
        require(name in names, "params", name, f"among {list(names)}")
        return names.index(name)

    def best(self) -> NDArray[np.intp]:
        """Return positions of trials with a value, the best first, after all feasible ones."""
        met = feasible(self._trials)
        ordered = np.lexsort([-self.values, ~met])
        return ordered[~np.isnan(self.values[ordered])]

    def incumbent(self, columns: Sequence[int]) -> Units:
        """Return the best trial that has some parameters, completed to a whole row `[P]`.

        What it lacks, as it is inactive there, is taken from the best trial that has it.

        Raises:
            ValueError: If no trial with a value has all of these parameters.
        """
        rows = self.units[self.best()]
        has_all = ~np.isnan(rows[:, columns]).any(axis=1)
        named = [self.space.names[column] for column in columns]
        require(bool(has_all.any()), "params", named, "parameters that one trial has together")
        row: Units = rows[np.argmax(has_all)].copy()
        for column in np.flatnonzero(np.isnan(row)):
            places = rows[~np.isnan(rows[:, column]), column]
            row[column] = places[0] if len(places) else 0.5
        return row
