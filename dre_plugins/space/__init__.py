"""Search spaces: typed domains, conditions, encodings and candidates (NumPy and SciPy only).

What users need is imported here; other names are imported from their modules.
"""

from dre_plugins.space.base import Domain, UnsupportedDomainError
from dre_plugins.space.conditions import Condition, RangeCondition
from dre_plugins.space.discrete import Categorical, Constant, Ordinal, ordered_choices
from dre_plugins.space.numeric import Float, Integer, Normal
from dre_plugins.space.search_space import SearchSpace

__all__ = [
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
    "UnsupportedDomainError",
    "ordered_choices",
]
