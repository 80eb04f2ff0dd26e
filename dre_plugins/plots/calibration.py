"""Whether predicted ranks are as uncertain as they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import rankdata

from dre_plugins.engine.runtime import isolated
from dre_plugins.plots.fitted import SEED, Array, Fitted, Study
from dre_plugins.plots.style import GREY, blue, legend_below, new_panel
from dre_plugins.recommend.coverage import INTERVALS, covered
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.transfer.knowledge import GivenPrior

N_FOLDS = 5
# Below, a fold has too little to learn from.
MIN_TRIALS = 10


@dataclass(frozen=True)
class Predictions:
    """Hold what was predicted of trials by ensembles that did not know them."""

    true: Array  # ranks among all trials of the study, 1 = best `[N]`
    mean: Array  # predicted ranks `[N]`
    spread: Array  # standard errors of these `[N]`

    def covered(self, probability: float) -> float:
        """Return the share of true ranks within the interval of a probability."""
        return covered((self.true - self.mean) / self.spread, probability)


@isolated()
def plot_calibration(
    study: Study,
    *,
    prior: GivenPrior = None,
    settings: RecommenderSettings | None = None,
    objective: int | None = None,
) -> Axes:
    """Plot true against predicted ranks of trials that the ensemble did not know.

    The true rank of a suggestion among all that might have been tried is never known, its rank
    among the trials of the study is. So each fifth of the trials is predicted by an ensemble that
    was fitted to the others. The title says how many true ranks lie in the predicted intervals.

    Args:
        study: A study with at least ten trials that have a value, of any sampler.
        prior: What the ensemble starts from, as of `DRESampler`.
        settings: Of the fits.
        objective: Which objective, from 0; needed if there are several.

    Raises:
        ValueError: If there are too few trials, or no such objective.
    """
    predictions = held_out_predictions(Fitted(study, prior, settings, objective, MIN_TRIALS))
    panel = new_panel(height=5.0)
    n = len(predictions.true)
    panel.axline((1, 1), slope=1, color=GREY, ls="--", lw=1.2, label="as predicted")
    panel.errorbar(
        predictions.true,
        predictions.mean,
        predictions.spread,
        fmt="o",
        ms=5,
        lw=1,
        alpha=0.8,
        color=blue(),
        label="trials, ± standard error",
    )
    wanted = " / ".join(f"{probability:.0%}" for probability in INTERVALS)
    covered = " / ".join(f"{predictions.covered(probability):.0%}" for probability in INTERVALS)
    panel.set_title(f"Calibration: intervals of {wanted}\nhold {covered} of the true ranks")
    panel.set(
        xlabel=f"true rank among {n} trials (1: best)",
        ylabel="predicted by the others",
        xlim=(0, n + 1),
        ylim=(0, n + 1),
    )
    panel.grid(alpha=0.3)
    legend_below(panel)
    return panel


def held_out_predictions(fitted: Fitted) -> Predictions:
    """Return what is predicted of each trial by an ensemble fitted without it."""
    rows = np.flatnonzero(~np.isnan(fitted.values))
    true = rankdata(-fitted.values[rows])
    mean, spread = np.empty(len(rows)), np.empty(len(rows))
    shuffled = np.random.default_rng(SEED).permutation(len(rows))
    for fold in np.array_split(shuffled, N_FOLDS):
        ensemble = fitted.blind_ensemble(rows[fold].tolist())
        mean[fold], spread[fold] = ensemble.predicted(fitted.units[rows[fold]])
    return Predictions(true, mean, spread)
