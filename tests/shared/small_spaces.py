"""A plane with a smooth function, a space that is soon exhausted, and studies of spaces."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.study import AskTell

Value = Callable[[dict[str, Any]], Any]

PLANE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
GRID = SearchSpace({"a": Integer(0, 2), "b": Categorical(tuple("uvwxyz"))})  # 18 configurations


@dataclass(frozen=True)
class ProgressOf:
    """Hold what `schedule` asks of the evidence."""

    n_ended: int
    can_rank: bool = True
    n_objectives: int = 1
    violated_constraints: bool = False
    lists: bool = True
    n_since_incumbent: int | None = 0


def sphere(configuration: Mapping[str, Any]) -> float:
    """Return a value on the plane, 0 at best."""
    return -((configuration["x"] - 0.4) ** 2) - (configuration["y"] + 0.7) ** 2


def rising(configuration: Mapping[str, Any]) -> bool:
    """Return whether a rule is kept."""
    return configuration["low"] <= configuration["high"]


def is_shared(configuration: Mapping[str, Any]) -> bool:
    """Return whether three shares sum to one, nearly."""
    return 0.99 <= sum(configuration[name] for name in "abc") <= 1.01


def drawn(space: SearchSpace, n: int = 200, seed: int = 0) -> np.ndarray:
    """Return canonical units of so many configurations."""
    rng = np.random.default_rng(seed)
    return space.canonical(rng.random((n, space.n_parameters)))


def evaluated(space: SearchSpace, units: Iterable[np.ndarray], value: Value) -> list[Trial]:
    """Return complete trials at these places."""
    configurations = [space.to_configuration(row) for row in units]
    return [Trial(c, TrialState.COMPLETE, value(c)) for c in configurations]


def history_of(
    n: int, space: SearchSpace = PLANE, value: Value = sphere, seed: int = 0
) -> list[Trial]:
    """Return so many complete trials anywhere."""
    units = np.random.default_rng(seed).random((n, space.n_parameters))
    return evaluated(space, units, value)


def told(study: AskTell, n: int, value: Value) -> AskTell:
    """Return the study after so many more trials, each of which is told its value."""
    for _ in range(n):
        number, configuration = study.ask()
        study.tell(number, value(configuration))
    return study
