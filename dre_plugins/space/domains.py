"""Typed domains: the values that one parameter may take, and their place on the unit interval."""

from dre_plugins.space.base import Domain, UnsupportedDomainError
from dre_plugins.space.discrete import (
    MAX_ONE_HOT,
    Categorical,
    Constant,
    Ordinal,
    ordered_choices,
)
from dre_plugins.space.numeric import Float, Integer, Normal

__all__ = [
    "MAX_ONE_HOT",
    "Categorical",
    "Constant",
    "Domain",
    "Float",
    "Integer",
    "Normal",
    "Ordinal",
    "UnsupportedDomainError",
    "ordered_choices",
]
