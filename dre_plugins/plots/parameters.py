"""A parameter as an axis of a figure."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from dre_plugins.checks import require
from dre_plugins.plots.style import plain
from dre_plugins.space import Domain, Float, Integer, SearchSpace
from dre_plugins.space.base import Array
from dre_plugins.space.numeric import Number

# With more values than this, a curve is drawn.
MAX_POINTS = 12
# With more letters than this, choices stand upright, so that none covers the next.
MAX_LETTERS = 40


@dataclass(frozen=True)
class ParameterAxis:
    """Hold the plotted values of a parameter, and their places on an axis."""

    name: str
    column: int  # its place among the parameters
    domain: Domain
    units: Array  # canonical coordinates of the plotted values, ascending `[G]`

    @property
    def is_number(self) -> bool:
        """Whether its values are places on the axis; others stand side by side."""
        return isinstance(self.domain, Number)

    @property
    def scale(self) -> str:
        """Return "linear", "log", or "power" of ten where Matplotlib draws no logarithmic axis."""
        if not isinstance(self.domain, (Float, Integer)) or self.domain.scale != "log":
            return "linear"
        return "log" if 1e-150 <= self.domain.low and self.domain.high <= 1e150 else "power"

    @property
    def is_curve(self) -> bool:
        """Whether neighbours are close enough to be joined by a line."""
        return self.is_number and len(self.units) > MAX_POINTS

    def places(self, units: Array | None = None) -> Array:
        """Return the places of coordinates `[C]` on the axis; None: of the plotted values."""
        units = self.units if units is None else units
        if isinstance(self.domain, Number):
            numbers = self.domain.numbers(units)
            return np.log10(numbers) if self.scale == "power" else numbers
        return self.domain.index(units)

    def edges(self) -> Array:
        """Return the borders between the places, outer ones included `[G + 1]`."""
        places = np.log(self.places()) if self.scale == "log" else self.places()
        steps = np.diff(places) if len(places) > 1 else np.ones(1)
        first, last = places[:1] - steps[:1] / 2, places[-1:] + steps[-1:] / 2
        edges = np.concatenate([first, (places[1:] + places[:-1]) / 2, last])
        return np.exp(edges) if self.scale == "log" else edges

    def label(self, panel: Axes, side: Literal["x", "y"]) -> None:
        """Write the name and the values beside one side of a panel."""
        axis = panel.xaxis if side == "x" else panel.yaxis
        axis.set_label_text(plain(self.name) + " (power of ten)" * (self.scale == "power"))
        if self.scale == "log":
            (panel.set_xscale if side == "x" else panel.set_yscale)("log")
        if not self.is_number:
            names = [_short(self.domain.from_unit(unit)) for unit in self.units.tolist()]
            axis.set_ticks(self.places(), labels=names)
            if side == "x" and len("  ".join(names)) > MAX_LETTERS:
                panel.tick_params(axis="x", labelrotation=90)


def axis_of(space: SearchSpace, name: str, n_points: int, argument: str) -> ParameterAxis:
    """Return the axis of a parameter, with `n_points` points at most unless it lists values.

    A ValueError, which names the user's `argument`, says that there is no such parameter.
    """
    require(name in space.names, argument, name, f"among {list(space.names)}")
    domain = space.domains[name]
    n_values = domain.n_values
    if n_values is not None and (not isinstance(domain, Number) or n_values <= n_points):
        units = domain.centres(np.arange(n_values, dtype=np.float64))
    else:
        units = np.unique(domain.snap(np.linspace(0.0, 1.0, n_points)))
    return ParameterAxis(name, space.names.index(name), domain, units)


def _short(value: Any) -> str:
    text = str(value)
    return plain(text if len(text) <= 16 else f"{text[:15]}…")
