"""The calibration of predicted ranks: whether their standard errors are right."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import norm, rankdata

from dre_plugins.engine.runtime import isolated
from dre_plugins.plots.fitted import SEED, Fitted, Study
from dre_plugins.plots.style import GREY, blue, legend_below, new_panels
from dre_plugins.recommend.prior import GivenPrior
from dre_plugins.recommend.settings import Settings
from dre_plugins.space.base import Array

N_FOLDS = 5
# Probabilities of the intervals whose coverage is reported.
INTERVALS = (0.5, 0.8, 0.9)
# Fewest trials: with fewer, a fold has too little to learn from.
MIN_TRIALS = 10


@isolated()
def plot_calibration(
    study: Study,
    *,
    prior: GivenPrior = None,
    settings: Settings | None = None,
    objective: int | None = None,
) -> Axes:
    """Plot true against predicted ranks of trials, by cross-validation.

    Each fifth of the trials is predicted by an ensemble that was fitted to the others. True ranks
    are those among the study's trials. The title says what share lies in the predicted intervals.

    Args:
        study: A study with at least ten trials that have a value, of any sampler; for the other
            arguments see `plot_predicted_ranks`.

    Raises:
        ValueError: If there are too few trials, or no such objective.
    """
    true, mean, spread = _held_out(Fitted(study, prior, settings, objective, MIN_TRIALS))
    (panel,) = new_panels(height=5.0)
    n = len(true)
    panel.axline((1, 1), slope=1, color=GREY, ls="--", lw=1.2, label="as predicted")
    style: dict[str, Any] = {"fmt": "o", "ms": 5, "lw": 1, "alpha": 0.8, "color": blue()}
    panel.errorbar(true, mean, spread, label="trials, ± standard error", **style)
    errors = (true - mean) / spread
    nominal = " / ".join(f"{probability:.0%}" for probability in INTERVALS)
    held = " / ".join(f"{covered(errors, probability):.0%}" for probability in INTERVALS)
    panel.set_title(f"Calibration: intervals of {nominal}\nhold {held} of the true ranks")
    panel.set(xlim=(0, n + 1), ylim=(0, n + 1))
    panel.set(xlabel=f"true rank among {n} trials (1: best)", ylabel="predicted by the others")
    panel.grid(alpha=0.3)
    legend_below(panel)
    return panel


def _held_out(fitted: Fitted) -> tuple[Array, Array, Array]:
    """Return true ranks, those predicted by ensembles without the trial, and standard errors."""
    rows = np.flatnonzero(~np.isnan(fitted.values))
    true = rankdata(-fitted.values[rows])
    mean, spread = np.empty(len(rows)), np.empty(len(rows))
    shuffled = np.random.default_rng(SEED).permutation(len(rows))
    for fold in np.array_split(shuffled, N_FOLDS):
        ensemble = fitted.ensemble({*rows[fold].tolist()})
        mean[fold], spread[fold] = ensemble.predicted(fitted.units[rows[fold]])
    return true, mean, spread


def covered(errors: Array, probability: float) -> float:
    """Return the share of errors `[N]`, in standard errors, that a normal interval holds."""
    return float((np.abs(errors) <= norm.ppf(0.5 + 0.5 * probability)).mean())
