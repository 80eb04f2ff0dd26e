"""A plane with a smooth function, and a space that is soon exhausted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dre_plugins.space import Categorical, Float, Integer, SearchSpace

PLANE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
GRID = SearchSpace({"a": Integer(0, 2), "b": Categorical(tuple("uvwxyz"))})  # 18 configurations


def sphere(configuration: Mapping[str, Any]) -> float:
    """Return a value on the plane, 0 at best."""
    return -((configuration["x"] - 0.4) ** 2) - (configuration["y"] + 0.7) ** 2
