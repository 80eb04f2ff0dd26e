"""The same quantity in other numbers: its logarithm, or its inverse.

A study may tune ``log10_lr`` from -5 to -1 where a prior knows the learning rate itself, or the
strength ``alpha`` of a penalty where it knows ``C``, the inverse of such a strength.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from dre_plugins.space.base import Array

Change = Callable[[Array], Array]


@dataclass(frozen=True)
class Convention:
    """Say what the numbers under a name stand for.

    Args:
        to_value: Numbers as tuned to the quantity `[N]`.
        from_value: The quantity to numbers as tuned `[N]`; NaN where it has none.
    """

    to_value: Change
    from_value: Change


def _inverse(numbers: Array) -> Array:
    found = np.full(numbers.shape, np.nan)
    np.divide(1.0, numbers, out=found, where=numbers != 0)
    return found


def _log_of_base(base: float) -> Convention:
    def logarithm(values: Array) -> Array:
        found = np.full(values.shape, np.nan)
        np.log(values, out=found, where=values > 0)
        found /= np.log(base)
        return found

    def power(numbers: Array) -> Array:
        return np.asarray(np.power(base, numbers), dtype=np.float64)

    return Convention(power, logarithm)


# ``log_`` alone is left out: the base is not said.
CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        "log10": _log_of_base(10.0),
        "log2": _log_of_base(2.0),
        "ln": _log_of_base(float(np.e)),
        "inverse": Convention(_inverse, _inverse),
        "inv": Convention(_inverse, _inverse),
    }
)

# The strength of a penalty and its inverse, by normalised names.
STRENGTHS = frozenset({"alpha", "lambda", "reg_param"})
INVERSE_STRENGTHS = frozenset({"c", "cost"})


def without_convention(plain: str) -> str:
    """Return a normalised name without the word that says in which numbers it is tuned.

    >>> without_convention("log10_lr"), without_convention("c_log2"), without_convention("lr")
    ('lr', 'c', 'lr')
    """
    return _split(plain)[0]


def change_between(source: str, target: str) -> Change | None:
    """Return how numbers under one name become those under another one; None: as they are.

    Args:
        source: A normalised name without prefixes, but with its convention.
        target: Another one, of the same quantity.

    >>> change_between("log10_lr", "lr")(np.array([-2.0])).tolist()
    [0.01]
    >>> change_between("alpha", "c")(np.array([0.1])).tolist()
    [10.0]
    """
    (ours, our_word), (theirs, their_word) = _split(source), _split(target)
    is_inverse = any(
        ours in names and theirs in other
        for names, other in ((STRENGTHS, INVERSE_STRENGTHS), (INVERSE_STRENGTHS, STRENGTHS))
    )
    if our_word == their_word and not is_inverse:
        return None
    return partial(_changed, our_word, their_word, is_inverse)


def _changed(our_word: str, their_word: str, is_inverse: bool, numbers: Array) -> Array:
    values = CONVENTIONS[our_word].to_value(numbers) if our_word else numbers
    values = _inverse(values) if is_inverse else values
    return CONVENTIONS[their_word].from_value(values) if their_word else values


def _split(plain: str) -> tuple[str, str]:
    """Return a name without its convention, and the word for the convention, empty if none."""
    for word in CONVENTIONS:
        for bare in (plain.removeprefix(f"{word}_"), plain.removesuffix(f"_{word}")):
            if bare != plain and bare:
                return bare, word
    return plain, ""
