"""Pictures of what a study has learnt, with Matplotlib; all take studies of Optuna and `AskTell`.

Whatever sampler made a study, a ranking ensemble is fitted to it as `DRESampler` would. What is
drawn of single suggestions is read from their explanations. As in
`optuna.visualization.matplotlib`, each function makes a figure and returns its axes.

    plot_predicted_ranks: predicted ranks and their standard errors over one or two parameters.
    plot_acquisition: what a suggestion is chosen by, over one or two parameters.
    plot_members: what each member of the ensemble predicts, over one parameter.
    plot_rank_importances: how much predicted ranks depend on each parameter.
    plot_prior_trust: the weight of the prior, and where trials came from.
    plot_calibration: true against predicted ranks.
    plot_alignment: which parameters a prior knows.
    plot_transfer_gain: best values with and without a prior.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

try:
    import matplotlib as _  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dre_plugins.plots needs Matplotlib: pip install 'dre-plugins[optuna,plots]'"
    ) from error

if TYPE_CHECKING:
    from dre_plugins.plots.alignments import plot_alignment
    from dre_plugins.plots.calibration import plot_calibration
    from dre_plugins.plots.importances import plot_rank_importances
    from dre_plugins.plots.slices import plot_acquisition, plot_members, plot_predicted_ranks
    from dre_plugins.plots.transfer_gain import plot_transfer_gain
    from dre_plugins.plots.trust import plot_prior_trust

__all__ = [
    "plot_acquisition",
    "plot_alignment",
    "plot_calibration",
    "plot_members",
    "plot_predicted_ranks",
    "plot_prior_trust",
    "plot_rank_importances",
    "plot_transfer_gain",
]

_HOMES = {
    "plot_acquisition": "slices",
    "plot_alignment": "alignments",
    "plot_calibration": "calibration",
    "plot_members": "slices",
    "plot_predicted_ranks": "slices",
    "plot_prior_trust": "trust",
    "plot_rank_importances": "importances",
    "plot_transfer_gain": "transfer_gain",
}


def __getattr__(name: str) -> object:
    # On first use: figures of benchmarks share the colours, and need neither Optuna nor torch.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
