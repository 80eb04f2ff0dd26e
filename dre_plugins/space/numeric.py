"""Domains of numbers: `Float`, `Integer` and `Normal`.

All three have the same layout. A *warp* maps values to a scale on which draws are uniform; the
unit is the relative position on that scale. With a step the values form a *grid*, held in exact
integers. The bin of a value reaches half a step to either side, so the bins at the ends are as
likely as the others.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dre_plugins.checks import is_integer
from dre_plugins.space import ranges
from dre_plugins.space.base import FARTHEST, SLACK, Array, Domain, UnsupportedDomainError, fill
from dre_plugins.space.ranges import Gaussian, Grid, Linear, Log, Warp

# With more bins, units do not resolve them well: such a grid is searched like a continuum, and
# decoded values are rounded to the grid.
_MAX_EQUAL_BINS = 2**40
# Beyond, the number of values itself is no float.
_MAX_VALUES = 10**300
# Units are rounded to this many decimals before decoding. The rounding errors of encoding are
# smaller, so encoding and decoding a decoded value returns it exactly. In a narrow range these
# errors are larger, and fewer decimals are kept. Below the minimum, floats are so far apart that
# decoding finds the same value without rounding.
_UNIT_DECIMALS = 13
_FEWEST_DECIMALS = 9
_UNROUNDED = 17
# Observed values within this share of a step are on the grid (Optuna's tolerance); frameworks hand
# out values such as 0.30000000000000004.
_ON_GRID = 1e-8
_NOISE = 4 * sys.float_info.epsilon  # and so are values within rounding errors of it
# A warped range that is narrower than this is linear for all purposes, and is treated so.
_NARROW = 1e-4
# Where the unbounded normal distribution is cut, in standard deviations.
_NORMAL_CUT = 4.0


@dataclass(frozen=True, slots=True)
class _Numeric(Domain):
    """The arithmetic that all domains of numbers share; subclasses call `_lay_out` once."""

    _warp: Warp = field(init=False, repr=False, compare=False)
    _grid: Grid | None = field(init=False, repr=False, compare=False)
    _bounds: tuple[float, float] = field(init=False, repr=False, compare=False)
    _low_edge: float = field(init=False, repr=False, compare=False)  # where the first bin begins
    _start: float = field(init=False, repr=False, compare=False)  # warped position of unit 0
    _width: float = field(init=False, repr=False, compare=False)  # warped length of [0, 1]
    _decimals: int = field(init=False, repr=False, compare=False)  # of units, before decoding

    def _lay_out(self, warp: Warp, low: float, high: float, grid: Grid | None) -> None:
        low_edge, high_edge = low, high
        if grid is not None:
            low, high = grid.low, grid.high
            # On the log scale half a step below the first value may not be positive.
            low_edge = low - 0.5 * (min(grid.step, low) if isinstance(warp, Log) else grid.step)
            high_edge = high + 0.5 * grid.step
            if grid.n > _MAX_VALUES:
                raise UnsupportedDomainError(
                    f"step {grid.step!r} is too small for the range from {low!r} to {high!r}."
                )
        start, end = warp.forward(np.array([low_edge, high_edge]))
        if not math.isfinite(float(end) - float(start)):
            raise UnsupportedDomainError(
                f"the range from {low!r} to {high!r} is too wide for floats; narrow it."
            )
        is_point = grid is not None and grid.n == 1
        if (is_point or end - start < _NARROW) and not isinstance(warp, Linear):
            return self._lay_out(Linear(), low, high, grid)
        fill(
            self,
            _warp=warp,
            _grid=grid,
            _bounds=(low, high),
            _low_edge=low_edge,
            _start=float(start),
            _width=float(end - start),
            _decimals=_decimals_of(warp, float(start), float(end)),
        )

    @property
    def n_values(self) -> int | None:
        return None if self._grid is None else self._grid.n

    is_ordered = True

    @property
    def is_binned(self) -> bool:
        n = self.n_values
        return n is not None and (not self._is_linear or n <= _MAX_EQUAL_BINS)

    def contains(self, value: object) -> bool:
        if not ranges.is_finite(value):
            return False
        if self._grid is None:
            return self._bounds[0] <= value <= self._bounds[1]  # type: ignore[operator]
        k = self._grid.nearest(value)
        if not 0 <= k < self._grid.n:
            return False
        nearest = self._decode(self._grid, k)
        noise = _ON_GRID * self._grid.step
        return math.isclose(value, nearest, rel_tol=_NOISE, abs_tol=noise)  # type: ignore[arg-type]

    def to_units(self, values: Sequence[Any]) -> Array:
        if not ranges.are_finite(values):
            value = next(value for value in values if not ranges.is_finite(value))
            raise ValueError(f"{value!r} is not a finite number, which {self!r} needs.")
        numbers = np.array(values, dtype=np.float64)
        with np.errstate(over="ignore"):  # overflows are clipped
            if self._grid is None:
                units = self._positions(numbers)
            elif self.is_binned:
                units = self._bin_units(self._grid.steps(values), numbers, self._grid)
            else:
                n, nearest = self._grid.n, map(self._grid.nearest, values)
                # Clipped before the division, as a quotient may be too large for a float.
                reach = n * math.ceil(FARTHEST + 1.0)
                near = [min(max(k, -reach), n + reach) for k in nearest]
                units = np.array([(2 * k + 1) / (2 * n) for k in near])
        return np.minimum(np.maximum(units, -FARTHEST), 1.0 + FARTHEST)

    def number_units(self, numbers: Array) -> Array:
        """Return the canonical units of numbers, `[C]` -> `[C]`; NaN passes.

        As `to_units`, for many numbers at once: whole numbers beyond 2**53 are rounded to floats.
        """
        grid = self._grid
        with np.errstate(over="ignore"):  # overflows are clipped
            if grid is None:
                units = self._positions(numbers)
            elif self.is_binned:
                units = self._bin_units((numbers - grid.low) / grid.step, numbers, grid)
            else:  # float(n): of integers beyond 64 bits NumPy 1 makes objects
                units = (np.rint((numbers - grid.low) / grid.step) + 0.5) / float(grid.n)
        return np.minimum(np.maximum(units, -FARTHEST), 1.0 + FARTHEST)

    def numbers(self, units: Array) -> Array:
        """Return the values at `units` as floats, `[C]` -> `[C]`; NaN passes.

        As `from_unit` for many units at once, but units outside `[0, 1]` extrapolate, and those
        between the centres of bins interpolate, so that `number_units` finds them again.
        """
        with np.errstate(over="ignore"):
            values = self._warp.inverse(self._start + units * self._width)
        values = np.minimum(np.maximum(values, -ranges.MAX_FLOAT), ranges.MAX_FLOAT)
        if self._grid is None:
            return values
        listed = self._grid.low + self.index(units) * self._grid.step
        is_listed = np.abs(self.snap(units) - units) <= SLACK
        return np.where(is_listed, listed, values)

    def _positions(self, numbers: Array) -> Array:
        return (self._warp.forward(numbers) - self._start) / self._width

    def _bin_units(self, steps: Array, numbers: Array, grid: Grid) -> Array:
        index = np.rint(steps)
        noise = np.maximum(_ON_GRID, _NOISE * np.abs(numbers) / grid.step)
        with np.errstate(invalid="ignore"):  # of two infinities
            is_between = np.abs(steps - index) > noise  # observed before there was a grid
        if self._is_linear:
            return (np.where(is_between, steps, index) + 0.5) / grid.n
        inside = (index >= 0) & (index < float(grid.n)) & ~is_between
        centres = self.centres(np.where(inside, index, 0.0))
        return np.where(inside, centres, self._positions(numbers))

    def from_units(self, units: Array) -> list[float | int]:
        if np.isnan(units).any():
            raise ValueError(f"there is no value of {self!r} at NaN; NaN marks a missing value.")
        inside = np.minimum(np.maximum(units, 0.0), 1.0)
        if self._grid is not None:
            return [self._decode(self._grid, k) for k in self._indices(inside, self._grid)]
        low, high = self._bounds
        rounded = [round(unit, self._decimals) for unit in inside.tolist()]
        values = self._warp.inverse(self._start + np.array(rounded) * self._width)
        ends = {0.0: low, 1.0: high}
        return [
            ends.get(unit, float(min(max(value, low), high)))
            for unit, value in zip(rounded, values.tolist(), strict=True)
        ]

    def _decode(self, grid: Grid, k: int) -> float | int:
        return (grid.first + k * grid.stride) / grid.divisor

    def _indices(self, units: Array, grid: Grid) -> list[int]:
        if self.is_binned:
            return [min(int(k), grid.n - 1) for k in self.index(units).tolist()]
        ratios = (unit.as_integer_ratio() for unit in units.tolist())
        return [min(part * grid.n // whole, grid.n - 1) for part, whole in ratios]

    def index(self, units: Array) -> Array:
        if self._is_linear:
            return Domain.index(self, units)
        inside = np.minimum(np.maximum(units, 0.0), 1.0)
        values = self._warp.inverse(self._start + inside * self._width)
        steps = (values - self._bounds[0]) / self._step + 0.5
        return np.minimum(np.maximum(np.floor(steps), 0.0), self._n_bins() - 1.0)

    def centres(self, index: Array) -> Array:
        if self._is_linear:
            return Domain.centres(self, index)
        upper = self._bounds[0] + (index + 0.5) * self._step
        lower = np.maximum(upper - self._step, self._low_edge)
        middle = 0.5 * (self._warp.forward(lower) + self._warp.forward(upper))
        return (middle - self._start) / self._width

    @property
    def _is_linear(self) -> bool:
        return isinstance(self._warp, Linear)

    @property
    def _step(self) -> float:
        return 1.0 if self._grid is None else self._grid.step

    def unit_interval(self, low: Any | None, high: Any | None) -> tuple[float, float]:
        # A bound between two values of a grid belongs to the next value inside the range.
        first = -math.inf if low is None else self._bound(low, np.ceil, -_ON_GRID)
        last = math.inf if high is None else self._bound(high, np.floor, _ON_GRID)
        return first - SLACK, last + SLACK

    def _bound(self, value: Any, rounding: np.ufunc, slack: float) -> float:
        unit = self.to_unit(value)
        if self._grid is None or not self.is_binned:
            return unit
        index = rounding(self._grid.steps([value]) + slack)
        return float(self.centres(index)[0]) if index[0] >= 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Float(_Numeric):
    """Real numbers from `low` to `high`, both included.

    Args:
        low: Lowest value.
        high: Highest value; with a step, the highest value is the last grid point up to it.
        scale: Where draws are uniform: "linear", "log", or "reverse-log" (1 - x is log-uniform).
        step: Distance of neighbouring values, counted from `low`; None for no grid.

    Raises:
        UnsupportedDomainError: If bounds, scale and step give no range.

    Examples:
        >>> Float(0.0, 1.0, step=0.1).from_unit(0.3)
        0.3
    """

    low: float
    high: float
    scale: str = "linear"
    step: float | None = None

    def __post_init__(self) -> None:
        low, high = ranges.finite("low", self.low), ranges.finite("high", self.high)
        ranges.check_order(low, high)
        warp = ranges.check_scale(self.scale, low, ("linear", "log", "reverse-log"))
        if self.scale == "reverse-log" and not 0 <= low <= high < 1:
            raise UnsupportedDomainError(
                f"scale 'reverse-log' needs 0 <= low <= high < 1, got {low!r} and {high!r}."
            )
        fill(self, low=low, high=high)
        grid = None
        if self.step is not None:
            if self.scale == "reverse-log":
                raise UnsupportedDomainError(
                    f"scale 'reverse-log' has no grid, got step={self.step!r}; leave the step out."
                )
            fill(self, step=ranges.positive("step", self.step))
            grid = Grid.of_floats(low, high, self.step)
        elif low == high:
            grid = Grid.of_floats(low, high, 1.0)
        self._lay_out(warp, low, high, grid)


@dataclass(frozen=True, slots=True)
class Integer(_Numeric):
    """Whole numbers from `low` to `high`, both included, of any size.

    Args:
        low: Lowest value.
        high: Highest value; with a step, the highest value is the last grid point up to it.
        scale: "linear", or "log" with the bounds widened by half a step before the logarithm.
        step: Distance of neighbouring values, counted from `low`.

    Raises:
        UnsupportedDomainError: If bounds, scale and step give no range.
    """

    low: int
    high: int
    scale: str = "linear"
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if not is_integer(value):
                raise UnsupportedDomainError(
                    f"{name} must be an int, got {value!r}; use Float for real numbers."
                )
            fill(self, **{name: int(value)})
            ranges.finite(name, value)
        ranges.check_order(self.low, self.high)
        ranges.positive("step", self.step)
        warp = ranges.check_scale(self.scale, self.low, ("linear", "log"))
        grid = Grid(self.low, self.step, 1, (self.high - self.low) // self.step + 1)
        self._lay_out(warp, float(self.low), float(self.high), grid)

    def contains(self, value: object) -> bool:
        if not isinstance(value, (int, np.integer)) or not is_integer(value):
            return False
        above = int(value) - self.low
        return 0 <= above <= self.high - self.low and above % self.step == 0

    def _decode(self, grid: Grid, k: int) -> int:
        return grid.first + k * grid.stride


@dataclass(frozen=True, slots=True)
class Normal(_Numeric):
    """Normally distributed numbers, cut at four standard deviations.

    Args:
        mean: Centre of the distribution.
        sd: Standard deviation, positive.
        step: Round draws to multiples of `step` (not counted from the mean); None for no grid.

    Raises:
        UnsupportedDomainError: If mean, deviation and step give no distribution.
    """

    mean: float
    sd: float
    step: float | None = None
    scale: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        mean, sd = ranges.finite("mean", self.mean), ranges.positive("sd", self.sd)
        fill(self, mean=mean, sd=sd)
        low = ranges.finite("mean - 4 sd", mean - _NORMAL_CUT * sd)
        high = ranges.finite("mean + 4 sd", mean + _NORMAL_CUT * sd)
        grid = None
        if self.step is not None:
            step = ranges.positive("step", self.step)
            fill(self, step=step)
            multiples = Grid.of_floats(0.0, 0.0, step)
            first, last = multiples.nearest(low), multiples.nearest(high)
            grid = Grid(
                first * multiples.stride, multiples.stride, multiples.divisor, last - first + 1
            )
        self._lay_out(Gaussian(mean, sd), low, high, grid)


Number: TypeAlias = Float | Integer | Normal


def _decimals_of(warp: Warp, start: float, end: float) -> int:
    """Return how many decimals of a unit survive encoding, of a warped range."""
    if start == end:
        return _UNIT_DECIMALS
    # On the logarithmic scale neighbouring floats are an epsilon apart even where positions are 0.
    size = max(abs(start), abs(end), 1.0 if isinstance(warp, Log) else 0.0)
    error = 4 * sys.float_info.epsilon * (size / (end - start))
    decimals = math.floor(-math.log10(2 * error))  # rounding undoes half of the last decimal
    return _UNROUNDED if decimals < _FEWEST_DECIMALS else min(decimals, _UNIT_DECIMALS)
