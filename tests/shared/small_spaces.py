"""A plane with a smooth function, a space that is soon exhausted, and studies of spaces."""

from collections.abc import Callable, Mapping
from typing import Any

from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.study import AskTell

PLANE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
GRID = SearchSpace({"a": Integer(0, 2), "b": Categorical(tuple("uvwxyz"))})  # 18 configurations


def sphere(configuration: Mapping[str, Any]) -> float:
    """Return a value on the plane, 0 at best."""
    return -((configuration["x"] - 0.4) ** 2) - (configuration["y"] + 0.7) ** 2


def rising(configuration: Mapping[str, Any]) -> bool:
    """Return whether a rule is kept."""
    return configuration["low"] <= configuration["high"]


def is_shared(configuration: Mapping[str, Any]) -> bool:
    """Return whether three shares sum to one, nearly."""
    return 0.99 <= sum(configuration[name] for name in "abc") <= 1.01


def told(study: AskTell, n: int, value: Callable[[dict[str, Any]], float]) -> AskTell:
    """Return the study after so many more trials, each of which is told its value."""
    for _ in range(n):
        number, configuration = study.ask()
        study.tell(number, value(configuration))
    return study
