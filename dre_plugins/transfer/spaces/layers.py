"""Hidden layers as a list of widths, as scikit-learn has them, and as their number and width."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from dre_plugins.space import Domain
from dre_plugins.space.base import Array
from dre_plugins.space.conditions import listed_values
from dre_plugins.transfer.spaces.aliases import roles
from dre_plugins.transfer.spaces.conversion import Number, by_table, number_of, value_units

# Names in the source, name in the target, and units `[N]` of each of the former to the latter's.
LayerLink: TypeAlias = tuple[tuple[str, ...], str, Callable[..., Array]]

_COUNT = re.compile(r"[1-9]\d*")


def shapes(domain: Domain) -> Array | None:
    """Return the number and the mean width of the layers of each choice `[n, 2]`.

    None if the choices are plain numbers, or say nothing of layers.

    >>> from dre_plugins.space import Categorical
    >>> shapes(Categorical(("(100,)", "64, 32"))).tolist()
    [[1.0, 100.0], [2.0, 48.0]]
    """
    if isinstance(domain, Number):
        return None
    values = listed_values(domain)
    layers = [[*map(float, _COUNT.findall(str(value)))] for value in values]
    if not all(layers) or not any(np.isnan(number_of(value)) for value in values):
        return None
    return np.array([(len(widths), np.mean(widths)) for widths in layers])


def layer_links(ours: Mapping[str, Domain], theirs: Mapping[str, Domain]) -> list[LayerLink]:
    """Return how a list of layers in one space is their number and width in the other."""
    source, target = roles(ours), roles(theirs)
    if "layer width" not in source or "layer width" not in target:
        return []
    given, wanted = ours[source["layer width"]], theirs[target["layer width"]]
    listed, asked = shapes(given), shapes(wanted)
    if listed is not None and _are_widths(wanted):
        return [
            ((source["layer width"],), target[role], partial(by_table, given, table))
            for role, numbers in zip(("layers", "layer width"), listed.T, strict=True)
            if role in target
            and np.isfinite(table := value_units(numbers.tolist(), theirs[target[role]])).any()
        ]
    depth = ours.get(source.get("layers", ""))
    if asked is None or not isinstance(given, Number) or not isinstance(depth, Number):
        return []
    change = partial(_nearest, depth, given, asked, wanted)
    return [((source["layers"], source["layer width"]), target["layer width"], change)]


def _are_widths(domain: Domain) -> bool:
    """Say whether all values are numbers; lists of layers beside a word match by their text."""
    values = [] if isinstance(domain, Number) else listed_values(domain)
    return not any(np.isnan(number_of(value)) for value in values)


def _nearest(
    depth: Number, width: Number, asked: Array, wanted: Domain, depths: Array, widths: Array
) -> Array:
    """Return the unit of the list that is nearest; a layer more is as far as twice the width."""
    numbers, sizes = depth.numbers(depths), width.numbers(widths)
    far = np.abs(numbers[:, None] - asked[:, 0]) + np.abs(np.log2(sizes[:, None] / asked[:, 1]))
    is_known = ~np.isnan(far).any(axis=1)
    units = np.full(len(far), np.nan)
    units[is_known] = wanted.centres(far[is_known].argmin(axis=1).astype(np.float64))
    return units
