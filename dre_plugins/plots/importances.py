"""How much predicted ranks depend on each parameter."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dre_plugins.engine.runtime import isolated
from dre_plugins.plots.fitted import SEED, Fitted, Study
from dre_plugins.plots.style import blue, ink, new_panels, plain
from dre_plugins.recommend.prior import GivenPrior
from dre_plugins.recommend.settings import Settings
from dre_plugins.space.base import Array
from dre_plugins.space.candidates import sobol

# Points spread over the space, as those that ranks are taken against.
N_POINTS = 512
N_REPEATS = 5


@isolated()
def plot_rank_importances(
    study: Study,
    *,
    prior: GivenPrior = None,
    settings: Settings | None = None,
    objective: int | None = None,
) -> Axes:
    """Plot how far predicted ranks move when a parameter is shuffled among spread points.

    A change of scale of the metric changes nothing here. Bars show the mean change as a share of
    the points that ranks are taken against; lines the standard deviation over five shuffles.

    Args:
        study: See `plot_predicted_ranks`, also for the other arguments.

    Raises:
        ValueError: If there are too few trials, or no such objective.
    """
    fitted = Fitted(study, prior, settings, objective)
    percent = 100 * rank_changes(fitted)
    order = np.argsort(percent.mean(0), kind="stable")
    names = [plain(fitted.space.names[column]) for column in order]
    mean, deviation = percent.mean(0)[order], percent.std(0)[order]
    (panel,) = new_panels(height=1.6 + 0.34 * len(names))
    style: dict[str, Any] = {"color": blue(), "height": 0.7, "ecolor": ink(), "capsize": 3}
    panel.barh(np.arange(len(names)), mean, xerr=deviation, tick_label=names, **style)
    text = "mean change of the predicted rank when shuffled\n(% of the reference points)"
    panel.set(title="Importances of parameters", xlabel=text, xlim=(0, None))
    panel.grid(axis="x", alpha=0.3)
    panel.set_axisbelow(True)
    return panel


def rank_changes(fitted: Fitted) -> Array:
    """Return mean changes of predicted ranks, as shares of the reference `[repeats, P]`."""
    rng = np.random.default_rng(SEED)
    space, ensemble = fitted.space, fitted.ensemble()
    # Complete rows: a shuffled parent may make its children active, which then need a value.
    points = sobol(space.n_parameters, N_POINTS, rng)
    ranks, _ = ensemble.predicted(space.canonical(points))
    changes = np.empty((N_REPEATS, space.n_parameters))
    for repeat in range(N_REPEATS):
        for column in range(space.n_parameters):
            shuffled = points.copy()
            shuffled[:, column] = rng.permutation(points[:, column])
            moved, _ = ensemble.predicted(space.canonical(shuffled))
            changes[repeat, column] = np.abs(moved - ranks).mean() / ensemble.n_reference
    return changes
