"""Pictures of what a study has learnt, with Matplotlib; all take studies of Optuna and `AskTell`.

A ranking ensemble is fitted to the study as `DRESampler` would, whatever its sampler is. As in
`optuna.visualization.matplotlib`, each function makes a figure and returns its axes.

    plot_predicted_ranks: predicted ranks and their standard errors over one or two parameters.
    plot_acquisition: the acquisition function, over one or two parameters.
    plot_members: what each member of the ensemble predicts, over one parameter.
    plot_rank_importances: how much predicted ranks depend on each parameter.
    plot_calibration: true against predicted ranks.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dre_plugins.plots needs Matplotlib: pip install 'dre-plugins[optuna,plots]'"
    ) from error

from dre_plugins.plots.calibration import plot_calibration
from dre_plugins.plots.importances import plot_rank_importances
from dre_plugins.plots.slices import plot_acquisition, plot_members, plot_predicted_ranks

__all__ = [
    "plot_acquisition",
    "plot_calibration",
    "plot_members",
    "plot_predicted_ranks",
    "plot_rank_importances",
]
