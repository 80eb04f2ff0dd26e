"""Checks of the arguments of `DRESearch`."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from ray.tune.result import DEFAULT_METRIC

from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.engine.settings import require
from dre_plugins.recommend.trials import number_of
from dre_plugins.space.base import is_real

# A configuration that was evaluated elsewhere, and further arguments of `AskTell.add`.
Evaluated: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
Points: TypeAlias = Sequence[Mapping[str, Any]]


def checked_objectives(metric: Any, mode: Any) -> tuple[Any, Any]:
    """Return the metric and the mode of one objective, or those of several as lists."""
    parts = [[*part] if isinstance(part, (list, tuple)) else part for part in (metric, mode)]
    is_several = [isinstance(part, list) for part in parts]
    if not any(is_several):
        metric, mode = None if metric is None else [metric], None if mode is None else [mode]
    elif not all(is_several) or len(metric) != len(mode) or not metric:
        raise ValueError(
            "several objectives need a list of metrics and a list of modes, equally long, got "
            f"metric={metric!r} and mode={mode!r}."
        )
    for name in metric or ():
        require(isinstance(name, str), "metric", name, "the name of a metric")
    for part in mode or ():
        require(part in ("min", "max"), "mode", part, "'min' or 'max'")
    return parts[0], parts[1]


def only(name: str, ours: Any, given: Any) -> Any:
    """Return an argument that was given to the searcher, to the Tuner, or equally to both."""
    if ours is not None and given is not None and ours != given:
        raise ValueError(
            f"{name} is {ours!r} for DRESearch and {given!r} for the Tuner; give it once."
        )
    return given if ours is None else ours


def initial_points(points: Any, rewards: Any) -> tuple[list[Mapping[str, Any]], list[Evaluated]]:
    """Return the points to run and those that were evaluated."""
    points = [] if points is None else points
    is_list = isinstance(points, Sequence) and all(isinstance(point, Mapping) for point in points)
    require(is_list, "points_to_evaluate", points, "a list of dictionaries")
    if rewards is None:
        return [dict(point) for point in points], []
    is_list = isinstance(rewards, Collection) and not isinstance(rewards, (str, Mapping))
    require(is_list, "evaluated_rewards", rewards, "a list of values of the metric")
    if len(rewards) != len(points):
        raise ValueError(
            f"evaluated_rewards must have one value for each of the {len(points)} "
            f"points_to_evaluate, got {len(rewards)}."
        )
    values = [checked_value("evaluated_rewards", reward) for reward in rewards]
    return [], [
        (dict(point), {"value": value}) for point, value in zip(points, values, strict=True)
    ]


def checked_value(name: str, value: Any) -> float | tuple[float, ...] | None:
    """Return a value of the argument `name`, or the values of several objectives, as floats."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    for part in parts:
        is_number = part is None or is_real(part) or not math.isnan(number_of(part))
        require(is_number, name, part, "numbers, or None or NaN for what has failed")
    if value is None:
        return None
    numbers = tuple(map(number_of, parts))
    return numbers if parts is value else numbers[0]


def required_objective(param_space: ParamSpace, metric: Any, mode: Any) -> Any:
    """Return the metric, or that of trainables that return a number; refuse to search without."""
    if metric is None and mode is not None:
        metric = DEFAULT_METRIC
    if param_space.space.n_parameters and not (metric and mode):
        raise ValueError(
            f"DRESearch needs a metric and a mode, got {metric!r} and {mode!r}: "
            "DRESearch(metric=..., mode='min'), or tune.TuneConfig(metric=..., mode='min') "
            "of a Tuner with a param_space."
        )
    return metric
