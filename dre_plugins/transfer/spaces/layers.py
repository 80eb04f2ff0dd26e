"""Hidden layers as a list of widths, as scikit-learn has them, and as their number and width."""

import re
from collections.abc import Mapping
from functools import partial

import numpy as np

from dre_plugins.space import Domain
from dre_plugins.space.base import Array
from dre_plugins.space.numeric import Number
from dre_plugins.transfer.spaces.aliases import roles
from dre_plugins.transfer.spaces.conversion import Link, by_table, parsed_number, value_units

_COUNT = re.compile(r"[1-9]\d*")


def shapes(domain: Domain) -> Array | None:
    """Return the number and the mean width of the layers of each choice `[n, 2]`.

    None if the choices are plain numbers, or say nothing of layers.

    >>> from dre_plugins.space import Categorical
    >>> shapes(Categorical(("(100,)", "64, 32"))).tolist()
    [[1.0, 100.0], [2.0, 48.0]]
    """
    if _are_widths(domain):
        return None
    layers = [[*map(float, _COUNT.findall(str(value)))] for value in domain.all_values()]
    if not all(layers):
        return None
    return np.array([(len(widths), np.mean(widths)) for widths in layers])


def layer_links(ours: Mapping[str, Domain], theirs: Mapping[str, Domain]) -> list[Link]:
    """Return the links of layers: a list in one space, their number and width in the other."""
    source, target = roles(ours), roles(theirs)
    if "layer width" not in source or "layer width" not in target:
        return []
    width, wanted = source["layer width"], theirs[target["layer width"]]
    given, asked = ours[width], shapes(wanted)
    listed = shapes(given)
    link = partial(Link, width, how="alias", note="a list of layers there or here")
    if listed is not None and _are_widths(wanted):
        return [
            link(target[role], change=partial(by_table, given, table))
            for role, numbers in zip(("layers", "layer width"), listed.T, strict=True)
            if role in target
            and np.isfinite(table := value_units(numbers.tolist(), theirs[target[role]])).any()
        ]
    depth = ours.get(source.get("layers", ""))
    if asked is None or not isinstance(given, Number) or not isinstance(depth, Number):
        return []
    change = partial(_nearest, depth, given, asked, wanted)
    return [link(target["layer width"], change=change, extra_sources=(source["layers"],))]


def _are_widths(domain: Domain) -> bool:
    """Say whether all values are numbers; lists of layers beside a word match by their text."""
    values = [] if isinstance(domain, Number) else domain.all_values()
    return not any(np.isnan(parsed_number(value)) for value in values)


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
