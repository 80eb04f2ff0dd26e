"""Sources of candidates: Sobol points, and children by mutation and crossover.

Pure functions of units `[C, P]`, which draw only from the given generator. Full coordinates have a
number for every parameter, canonical ones are NaN for inactive parameters.
"""

import math
from collections import Counter
from functools import lru_cache
from itertools import compress

import numpy as np

from dre_plugins.space.base import Array, Domain, Mask
from dre_plugins.space.discrete import Ordinal
from dre_plugins.space.numeric import Float, Integer
from dre_plugins.space.search_space import SearchSpace

# The generator's direction numbers end at 21201 parameters; further ones are plain uniform draws.
_MAX_SOBOL = 21201
# Sequences that many processes walk through by index are made in this shape, whatever the space.
_SHARED_SOBOL = 64
_BLOCK = 256
# Ranges from a negative to a positive number rarely have their optimum at a bound, those of
# learners often do. So the first start-up trial is the middle of such ranges, and the next three
# keep .8 of the Sobol points' distance from it. With n > 6 such ranges they keep sqrt(4 / n), by
# which they are as far from the middle as Sobol points are with four ranges
# (lab/2026-11-26-ranges-around-zero.md). The same holds for one range that most numbers have in
# common, as weights and positions do. There the second trial is the middle: the first one of a
# define-by-run study begins before its parameters are known (lab/2026-11-27-shared-ranges.md).
_N_DRAWN, _DRAWN_SHARE, _DRAWN_PARAMETERS = 4, 0.8, 4
# Fewest parameters with one range, and the least share of the numbers that have it.
_N_SHARING, _SHARING = 3, 0.75
# A child mutates this share of its coordinates, or one coordinate on average if that is more.
_MIN_RATE = 0.05
# Standard deviations of its steps, in units; shares of changes that jump to a bound, and of those
# that are drawn anew. Without jumps, without draws or with a deviation of .1 alone, 32 studies
# were level (lab/2026-11-30-candidates-and-choices.md).
_SCALES = (0.3, 0.1, 0.03, 0.01)
_BOUND_SHARE, _UNIFORM_SHARE = 0.15, 0.10
# Share of coordinates that a child by crossover gets from its donor; no other was tried.
DONATED = 0.2


def sobol(n_parameters: int, n: int, rng: np.random.Generator) -> Array:
    """Return scrambled Sobol points, full coordinates `[n, P]`."""
    if n == 0 or n_parameters == 0:
        return np.empty((n, n_parameters))
    width = min(n_parameters, _MAX_SOBOL)
    points = _sobol_engine(width, int(rng.integers(2**63)), 0, n)
    return np.hstack([points, rng.random((n, n_parameters - width))])


def sobol_point(n_parameters: int, index: int, seed: int) -> Array:
    """Return the `index`-th point of the scrambled Sobol sequence with this seed, `[P]`.

    Coordinate `j` does not depend on how many parameters there are: the sequence always has 64
    dimensions, of which the first are used; further coordinates are seeded uniform draws.
    Parameters that are discovered one by one therefore share one space-filling sequence.
    """
    block, row = divmod(index, _BLOCK)
    point = _shared_block(seed, block)[row, :n_parameters]
    more = max(0, n_parameters - _SHARED_SOBOL)
    return np.concatenate([point, np.random.default_rng([seed, index]).random(more)])


def start_up_point(space: SearchSpace, index: int, seed: int) -> Array:
    """Return the `index`-th start-up configuration of a study with this seed, `[P]`."""
    point = sobol_point(space.n_parameters, index, seed)
    if index >= _N_DRAWN:
        return point
    domains = [space.domains[name] for name in space.names]
    shared = shared_range(space)
    # The trial in which each parameter is at the middle; `_N_DRAWN`: in none.
    middles = [
        0 if is_around_zero(domain) else 1 if domain == shared else _N_DRAWN for domain in domains
    ]
    active = compress(middles, space.active(point[None])[0])
    n_drawn = max(1, sum(middle < _N_DRAWN for middle in active))
    units = zip(point.tolist(), middles, strict=True)
    return np.array([_towards_middle(unit, index - middle, n_drawn) for unit, middle in units])


def start_up_unit(domain: Domain, unit: float, index: int) -> float:
    """Return a unit of a Sobol point for a parameter of a trial whose others are not known yet."""
    is_drawn = index < _N_DRAWN and is_around_zero(domain)
    return _towards_middle(unit, index, 1) if is_drawn else unit


def _towards_middle(unit: float, n_after: int, n_drawn: int) -> float:
    """Return the middle, or a unit that is nearer to it.

    Args:
        unit: Coordinate of the Sobol point.
        n_after: How many trials ago the parameter was at the middle: 0 is now, and less than 0 is
            not yet, where the unit remains.
        n_drawn: Number of parameters of the configuration that are moved to the middle.
    """
    if n_after < 0:
        return unit
    share = min(_DRAWN_SHARE, math.sqrt(_DRAWN_PARAMETERS / n_drawn)) if n_after else 0.0
    return 0.5 + share * (unit - 0.5)


def is_around_zero(domain: Domain) -> bool:
    """Return whether the domain is a range from a negative to a positive number."""
    is_listed = isinstance(domain, Ordinal) and domain.spacing == "linear"
    is_range = is_listed or isinstance(domain, Float | Integer)
    # A grid may end below its `high`.
    return is_range and bool(domain.from_unit(0.0) < 0 < domain.from_unit(1.0))


def shared_range(space: SearchSpace) -> Domain | None:
    """Return the range of floats that most numbers have in common; None without one."""
    numbers = _numbers(space)
    counts = Counter(domain for domain in numbers if isinstance(domain, Float))
    for domain, n_sharing in counts.most_common(1):
        if n_sharing >= max(_N_SHARING, _SHARING * len(numbers)):
            return domain
    return None


def is_mostly_around_zero(space: SearchSpace) -> bool:
    """Return whether at least half of the ranges of numbers are around 0.

    Who writes such ranges expects the optimum between the bounds, so that the universal prior does
    not expect better values far from all trials (lab/2026-11-27-amplitude-and-trend.md#studies).
    """
    numbers = _numbers(space)
    return 0 < len(numbers) <= 2 * sum(map(is_around_zero, numbers))


def _numbers(space: SearchSpace) -> list[Domain]:
    domains = space.domains.values()
    return [domain for domain in domains if isinstance(domain, Float | Integer | Ordinal)]


@lru_cache(maxsize=16)
def _shared_block(seed: int, block: int) -> Array:
    points = _sobol_engine(_SHARED_SOBOL, seed, block * _BLOCK, _BLOCK)
    points.flags.writeable = False
    return points


def _sobol_engine(n_parameters: int, seed: int, skip: int, n: int) -> Array:
    from scipy.stats import qmc

    engine = qmc.Sobol(n_parameters, scramble=True, seed=np.random.default_rng(seed))
    if skip:
        engine.fast_forward(skip)
    # SciPy warns about first draws whose number is no power of two.
    return np.asarray(engine.random(2 ** (n - 1).bit_length())[:n], dtype=np.float64)


def recombine(parents: Array, donors: Array, n: int, rng: np.random.Generator) -> Array:
    """Return children of uniformly drawn parents, with a fifth of a donor's coordinates, `[n, P]`.

    Parents `[Q, P]` have full or canonical coordinates, and donors `[R, P]` likewise.
    """
    parent = parents[rng.integers(len(parents), size=n)]
    donor = donors[rng.integers(len(donors), size=n)]
    return np.where(rng.random(parent.shape) < DONATED, donor, parent)


def mutate(space: SearchSpace, parents: Array, n: int, rng: np.random.Generator) -> Array:
    """Return children of uniformly drawn parents `[Q, P]`, full coordinates `[n, P]`.

    At least one active coordinate of a child changes its value. A changed coordinate moves by a
    Gaussian step (all steps of a child have one scale), jumps to a bound, or is drawn anew; values
    without an order are always drawn anew, and a value with an order moves by one bin at least.
    Coordinates of the parent's inactive parameters are drawn uniformly.
    """
    n_parameters = space.n_parameters
    parents = np.clip(parents, 0.0, 1.0)
    rows = rng.integers(len(parents), size=n)
    old = parents[rows]
    missing = np.isnan(old)
    domains = [space.domains[name] for name in space.names]
    can_change = np.array([domain.n_values != 1 for domain in domains], dtype=np.bool_)
    movable = (space.active(parents) & ~np.isnan(parents) & can_change)[rows]
    moved = _chosen(movable, rng)

    step = rng.normal(size=(n, n_parameters)) * rng.choice(np.asarray(_SCALES), size=(n, 1))
    drawn = rng.random((n, n_parameters))
    kind = rng.random((n, n_parameters))
    jumped = np.where(kind < _BOUND_SHARE, np.rint(drawn), drawn)
    new = np.where(kind < _BOUND_SHARE + _UNIFORM_SHARE, jumped, np.clip(old + step, 0.0, 1.0))
    # At a bound, a step outwards, or a jump to the same bound, becomes a step inwards.
    inwards = np.clip(old + np.where(old < 0.5, np.abs(step), -np.abs(step)), 0.0, 1.0)
    new = np.where(new == old, inwards, new)
    children = np.where(missing, drawn, np.where(moved, new, old))
    for column, domain in enumerate(domains):
        if not domain.is_binned:
            continue
        changed = moved[:, column]
        before, after = old[changed, column], children[changed, column]
        if domain.is_ordered:
            children[changed, column] = _moved_one_bin(
                domain, before, after, step[changed, column]
            )
        else:
            children[changed, column] = _another_bin(domain, before, drawn[changed, column])
    return children


def _chosen(movable: Mask, rng: np.random.Generator) -> Mask:
    """Draw which coordinates change, one a row at least where one can, `[n, P]`."""
    n_movable = movable.sum(axis=1, keepdims=True)
    draws = np.where(movable, rng.random(movable.shape), np.inf)
    rate = np.maximum(1.0 / np.maximum(n_movable, 1), _MIN_RATE)
    # The smallest draw of a row always counts, so that no child is a copy.
    smallest = draws.min(axis=1, keepdims=True, initial=np.inf)
    return np.asarray(movable & ((draws < rate) | (draws == smallest)))


def _moved_one_bin(domain: Domain, before: Array, after: Array, step: Array) -> Array:
    """Return `after`, or the next bin in the step's direction where the value is the same."""
    last = (domain.n_values or 1) - 1.0
    index = domain.index(before)
    direction = np.where(step < 0, -1.0, 1.0)
    direction = np.where(index == 0, 1.0, np.where(index == last, -1.0, direction))
    is_same = index == domain.index(after)
    return np.where(is_same, domain.centres(np.clip(index + direction, 0.0, last)), after)


def _another_bin(domain: Domain, before: Array, draw: Array) -> Array:
    """Return a uniform draw among the other bins."""
    n = float(domain.n_values or 1)
    shift = 1.0 + np.floor(draw * (n - 1.0))
    return domain.centres((domain.index(before) + shift) % n)


def with_fixed(units: Array, fixed: Array) -> Array:
    """Return coordinates `[n, P]` with those of `fixed` `[P]` in place; NaN leaves one free."""
    return np.where(np.isnan(fixed), units, fixed)
