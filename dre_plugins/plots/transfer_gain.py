"""What a prior has saved: best values of studies with and without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dre_plugins.engine.settings import require
from dre_plugins.plots.studies import Study, best_so_far, direction_of
from dre_plugins.plots.style import RED, blue, count_along, legend_below, new_panel

Array = NDArray[np.float64]

QUARTILES = (0.25, 0.75)


def plot_transfer_gain(with_prior: Sequence[Study], without: Sequence[Study]) -> Axes:
    """Plot the best value so far over trials, with and without a prior.

    All studies tune the same thing. 0 is the best value of all of them, 1 the median of the first
    values without a prior. Lines are means, bands quartiles over studies; before its first value
    a study counts as if it had that.

    Args:
        with_prior: Studies with a prior, one objective each.
        without: Studies without.

    Raises:
        ValueError: If either is empty, directions differ, or a study has no value or several
            objectives.
    """
    panel = new_panel()
    regrets = normalised_regrets(with_prior, without)
    for name, regret, colour, line in zip(
        ("with the prior", "without"), regrets, (blue(), RED), ("-", "--"), strict=True
    ):
        steps = np.arange(1, regret.shape[1] + 1)
        low, high = np.quantile(regret, QUARTILES, axis=0)
        count = f"{len(regret)} stud{'y' if len(regret) == 1 else 'ies'}"
        panel.fill_between(steps, low, high, color=colour, alpha=0.2, lw=0)
        panel.plot(steps, regret.mean(0), line, color=colour, label=f"{name} ({count})")
    panel.set(title="Transfer", xlabel="trials", ylim=(0, None))
    panel.set_ylabel("regret (0: best of all, 1: median first trial)")
    count_along(panel)
    panel.grid(alpha=0.3)
    legend_below(panel)
    return panel


def normalised_regrets(
    with_prior: Sequence[Study], without: Sequence[Study]
) -> tuple[Array, Array]:
    """Return the regret of the best value so far `[studies, trials]`, see `plot_transfer_gain`.

    As many trials as all studies of a kind have.
    """
    for name, studies in (("with_prior", with_prior), ("without", without)):
        require(len(studies) > 0, name, [*studies], "at least one study")
    directions = {direction_of(study) for study in (*with_prior, *without)}
    require(len(directions) == 1, "with_prior and without", directions, "of one direction")
    curves = [[_filled(study) for study in studies] for studies in (with_prior, without)]
    best = max(curve[-1] for kind in curves for curve in kind)
    first = float(np.median([curve[0] for curve in curves[1]]))
    scale = best - first if best > first else 1.0
    arrays = [np.array([curve[: min(map(len, kind))] for curve in kind]) for kind in curves]
    return (best - arrays[0]) / scale, (best - arrays[1]) / scale


def _filled(study: Study) -> Array:
    """Return the best value so far; before the first one, that one."""
    curve = best_so_far(study)
    finite = curve[np.isfinite(curve)]
    text = f"{len(curve)} trials that have ended, none with a finite value"
    require(len(finite) > 0, "study", text, "one with a value")
    return np.where(np.isfinite(curve), curve, finite[0])
