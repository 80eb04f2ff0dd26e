"""Search spaces: typed domains, conditions, encodings and candidates (NumPy and SciPy only)."""

from dre_plugins.space.base import Domain, UnsupportedDomainError
from dre_plugins.space.candidates import (
    mutate,
    recombine,
    sobol,
    sobol_point,
)
from dre_plugins.space.conditions import Condition, RangeCondition, infer_conditions
from dre_plugins.space.discrete import (
    MAX_ONE_HOT,
    Categorical,
    Constant,
    Ordinal,
    ordered_choices,
)
from dre_plugins.space.numeric import Float, Integer, Normal
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen, distinct, first_new, groups, keys

__all__ = [
    "MAX_ONE_HOT",
    "Categorical",
    "Condition",
    "Constant",
    "Domain",
    "Float",
    "Integer",
    "Normal",
    "Ordinal",
    "RangeCondition",
    "SearchSpace",
    "Seen",
    "UnsupportedDomainError",
    "distinct",
    "first_new",
    "groups",
    "infer_conditions",
    "keys",
    "mutate",
    "ordered_choices",
    "recombine",
    "sobol",
    "sobol_point",
]
