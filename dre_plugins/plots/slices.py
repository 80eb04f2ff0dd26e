"""Plots of an ensemble over one or two parameters, the others as in the best trial.

Notation: `C` points of a slice; `G` points of an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dre_plugins.checks import require
from dre_plugins.engine.runtime import isolated
from dre_plugins.plots import style
from dre_plugins.plots.fitted import Fitted, Study
from dre_plugins.plots.parameters import ParameterAxis, axis_of
from dre_plugins.plots.style import GREY, RED, SHADES, blue, ink
from dre_plugins.recommend.prior import GivenPrior
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.settings import Settings
from dre_plugins.space.base import Array

N_POINTS = 201
N_POINTS_IN_PLANE = 41
TRIALS = "trials, as predicted"
BEST = "best trial"


@isolated()
def plot_predicted_ranks(
    study: Study,
    params: str | Sequence[str],
    *,
    prior: GivenPrior = None,
    settings: Settings | None = None,
    objective: int | None = None,
) -> NDArray[Any]:
    """Plot mean predicted ranks and their standard errors over one or two parameters.

    All other parameters are as in the best trial. A small rank is good.

    Args:
        study: A study with at least two trials that have a value, of any sampler.
        params: Names of one or two parameters.
        prior: Prior of the ensemble, as for `DRESampler`.
        settings: Expert settings, as for `DRESampler`.
        objective: Number of the objective, from 0; needed if there are several.

    Returns:
        Axes: one with a band over one parameter, two with shades over two.

    Raises:
        ValueError: If there is no such parameter or objective, or there are too few trials.
    """
    view = _Slice.of(Fitted(study, prior, settings, objective), params)
    mean, spread = view.ensemble.predicted(view.units)
    n = view.ensemble.n_reference
    if len(view.axes) == 1:
        (panel,) = style.new_panels()
        # There is no rank below 0 or beyond the last.
        low, high = np.maximum(mean - spread, 0.0), np.minimum(mean + spread, n + 0.5)
        _draw_line(panel, view.axes[0], mean, (low, high), label="mean ± standard error")
        _draw_trials_on_line(panel, view)
        panel.set(title="Predicted ranks", ylabel=f"rank among {n} points (1: best)")
        style.legend_below(panel)
        return np.array([panel])
    panels = style.new_panels(2, width=5.4)
    _draw_plane(panels[0], view, mean, f"mean rank among {n} points (1: best)", SHADES + "_r")
    _draw_plane(panels[1], view, spread, "standard error of the rank", "cividis")
    panels[0].set_title("Predicted ranks")
    panels[1].set_title("Their standard errors")
    style.legend_below(panels[0])
    return np.array(panels)


@isolated()
def plot_acquisition(
    study: Study,
    params: str | Sequence[str],
    *,
    prior: GivenPrior = None,
    settings: Settings | None = None,
    objective: int | None = None,
) -> Axes:
    """Plot the acquisition function over one or two parameters.

    Args:
        study: See `plot_predicted_ranks`, also for the other arguments.
        settings: Expert settings, as for `DRESampler`; the `acquisition` is drawn.

    Raises:
        ValueError: See `plot_predicted_ranks`.
    """
    view = _Slice.of(Fitted(study, prior, settings, objective), params)
    values = view.ensemble.acquisition_values(view.units)
    (panel,) = style.new_panels()
    panel.set_title("Acquisition")
    text = "acquisition (the largest is suggested)"
    if len(view.axes) == 2:
        _draw_plane(panel, view, values, text, SHADES)
        style.legend_below(panel)
        return panel
    _draw_line(panel, view.axes[0], values, None, label="acquisition")
    places = view.axes[0].places(view.fitted.units[:, view.axes[0].column])
    at_bottom: dict[str, Any] = {"transform": panel.get_xaxis_transform(), "clip_on": False}
    panel.plot(places, 0 * places, "|", ms=12, color=GREY, label="trials", **at_bottom)
    panel.axvline(_best_place(view, 0), color=RED, ls=":", label=BEST)
    panel.set_ylabel(text)
    style.legend_below(panel)
    return panel


@isolated()
def plot_members(
    study: Study,
    param: str,
    *,
    prior: GivenPrior = None,
    settings: Settings | None = None,
    objective: int | None = None,
) -> Axes:
    """Plot the rank that each member of the ensemble predicts, over one parameter.

    Where they disagree, the ensemble is uncertain.

    Args:
        study: See `plot_predicted_ranks`, also for the other arguments.
        param: Name of the parameter.

    Raises:
        ValueError: See `plot_predicted_ranks`.
    """
    require(isinstance(param, str), "param", param, "the name of one parameter")
    view = _Slice.of(Fitted(study, prior, settings, objective), param, "param")
    ranks = view.ensemble.ranks(view.units).numpy()
    axis, (panel,) = view.axes[0], style.new_panels()
    marks: dict[str, Any] = {"ls": "-"} if axis.is_curve else {"ls": "", "marker": "_", "ms": 14}
    for place, line in enumerate(ranks):
        label = None if place else f"{len(ranks)} members"
        panel.plot(axis.places(), line, lw=1.0, color=blue(), alpha=0.7, label=label, **marks)
    _draw_line(panel, axis, ranks.mean(0), None, label="mean", colour=ink())
    n = view.ensemble.n_reference
    panel.set(title="Ranks by member", ylabel=f"rank among {n} points (1: best)")
    style.legend_below(panel)
    return panel


@dataclass(frozen=True)
class _Slice:
    """Hold a fitted ensemble and the points at which it is plotted."""

    fitted: Fitted
    ensemble: EnsembleProposer
    axes: tuple[ParameterAxis, ...]  # one or two
    units: Array  # of the points `[C, P]`; of two axes `[G1 · G0]`, row by row
    incumbent: Array  # units of the best trial `[P]`

    @classmethod
    def of(cls, fitted: Fitted, params: str | Sequence[str], argument: str = "params") -> _Slice:
        """Return the slice over one or two parameters, which the user gave as an `argument`."""
        is_list = isinstance(params, Iterable) and not isinstance(params, str)
        names: list[Any] = [*params] if is_list else [params]
        are_names = all(isinstance(name, str) for name in names)
        is_one_or_two = are_names and len(names) in (1, 2) and len(set(names)) == len(names)
        require(is_one_or_two, argument, params, "the name of one parameter, or of two")
        n_points = N_POINTS if len(names) == 1 else N_POINTS_IN_PLANE
        axes = tuple(axis_of(fitted.space, name, n_points, argument) for name in names)
        incumbent = fitted.incumbent([axis.column for axis in axes], argument)
        grids = np.meshgrid(*(axis.units for axis in axes))
        units = np.tile(incumbent, (grids[0].size, 1))
        for axis, grid in zip(axes, grids, strict=True):
            units[:, axis.column] = grid.reshape(-1)
        return cls(fitted, fitted.ensemble(), axes, fitted.space.canonical(units), incumbent)


def _best_place(view: _Slice, which: int) -> float:
    axis = view.axes[which]
    return float(axis.places(view.incumbent[[axis.column]])[0])


def _draw_line(
    panel: Axes,
    axis: ParameterAxis,
    mean: Array,
    band: tuple[Array, Array] | None,
    *,
    label: str,
    colour: str | None = None,
) -> None:
    """Draw a curve with a band, or marks with bars where values stand side by side."""
    places, colour = axis.places(), colour or blue()
    if axis.is_curve:
        panel.plot(places, mean, color=colour, label=label)
        if band is not None:
            panel.fill_between(places, *band, color=colour, alpha=0.25, lw=0)
    else:
        bars = None if band is None else np.clip([mean - band[0], band[1] - mean], 0.0, None)
        panel.errorbar(places, mean, bars, fmt="o", capsize=4, color=colour, label=label)
        first, *_, last = axis.edges()
        panel.set_xlim(first, last)
    axis.label(panel, "x")
    panel.grid(alpha=0.3)


def _draw_trials_on_line(panel: Axes, view: _Slice) -> None:
    axis, units = view.axes[0], view.fitted.units
    places, (ranks, _) = axis.places(units[:, axis.column]), view.ensemble.predicted(units)
    panel.plot(places, ranks, "o", ms=4, alpha=0.7, color=GREY, label=TRIALS)
    rank, _ = view.ensemble.predicted(view.fitted.space.canonical(view.incumbent[None]))
    panel.plot(_best_place(view, 0), rank[0], "*", ms=14, color=RED, label=BEST)


def _draw_plane(panel: Axes, view: _Slice, values: Array, text: str, shades: str) -> None:
    first, second = view.axes
    square = values.reshape(len(second.units), len(first.units))
    across, upwards = first.edges(), second.edges()
    drawn = panel.pcolormesh(across, upwards, square, cmap=shades, rasterized=True)
    plt.colorbar(drawn, ax=panel, label=text)
    first.label(panel, "x")
    second.label(panel, "y")
    at = [axis.places(view.fitted.units[:, axis.column]) for axis in view.axes]
    panel.plot(*at, "o", ms=4.5, mfc="white", mec="black", mew=0.8, ls="", label="trials")
    best = _best_place(view, 0), _best_place(view, 1)
    panel.plot(*best, "*", ms=15, mfc=RED, mec="white", ls="", label=BEST)
    panel.set_xlim(across[0], across[-1])
    panel.set_ylim(upwards[0], upwards[-1])
