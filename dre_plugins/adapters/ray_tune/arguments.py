"""The arguments of `DRESearch`: checked, kept until the space is known, given to the study."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from ray.tune.result import DEFAULT_METRIC

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.past_tasks import learnt_prior
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.history import Reading, logger
from dre_plugins.adapters.ray_tune.sources import Source, read_results
from dre_plugins.adapters.ray_tune.tree import hidden_in
from dre_plugins.engine.settings import require
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.memory import GivenMemory, is_wanted
from dre_plugins.recommend.prior import GivenPrior
from dre_plugins.recommend.trials import TrialState, number_of
from dre_plugins.space.base import is_real
from dre_plugins.space.rules import Valid
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset

PastResults: TypeAlias = Source | Sequence[Source] | MetaDataset

# A configuration that was evaluated elsewhere, and further arguments of `AskTell.add`.
Evaluated: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
Points: TypeAlias = Sequence[Mapping[str, Any]]

DIRECTIONS = {"min": "minimize", "max": "maximize"}


@dataclass(frozen=True)
class StudyArguments:
    """Hold what `DRESearch` was given for its study; `options` are handed on as they are."""

    options: Mapping[str, Any]
    prior: GivenPrior
    past_results: PastResults | None
    points: Points
    evaluated: Sequence[Evaluated]
    memory: GivenMemory
    valid: Valid | None

    def on(self, param_space: ParamSpace) -> StudyArguments:
        """Return them for a parameter space, in which a Tuner may hide objects."""
        check_rule(self.valid, param_space)
        return replace(self, memory=memory_for(self.memory, param_space))

    def used(self) -> StudyArguments:
        """Return them without what a study has once it has begun, as states become smaller."""
        return replace(self, prior=None, past_results=None, points=(), evaluated=())


def joined_space(ours: ParamSpace | None, given: ParamSpace) -> ParamSpace:
    """Return the space of a searcher together with that of the Tuner."""
    if ours is None:
        return given
    if given.space.n_parameters and not given.searches_like(ours):
        raise ValueError(
            f"DRESearch searches {list(ours.space.names)} already, and the param_space of the "
            f"Tuner has other domains, of {list(given.space.names)}; give all of them in one "
            "place, and use a new DRESearch for a new param_space."
        )
    return ours.beside(given)


def rule_on(valid: Valid | None, param_space: ParamSpace) -> Valid | None:
    """Return a rule on flat configurations, of one on configurations as trials get them."""
    return partial(_is_valid, valid, param_space) if callable(valid) else valid


def _is_valid(valid: Valid, param_space: ParamSpace, configuration: Mapping[str, Any]) -> bool:
    return valid(param_space.to_config(configuration))


def check_rule(valid: Valid | None, param_space: ParamSpace) -> None:
    """Refuse a rule where a Tuner hides objects, as it would see placeholders of these."""
    hidden = [] if valid is None else hidden_in(param_space.root)
    wanted = f"left out, or {hidden} given to DRESearch(space=…), as a Tuner hides their objects"
    require(not hidden, "valid", valid, wanted)


def memory_for(given: GivenMemory, param_space: ParamSpace) -> GivenMemory:
    """Return the memory of a study, False where a Tuner hides what the choices are."""
    space = param_space.space
    hidden = [name for name in hidden_in(param_space.root) if name in space.names]
    if not hidden:
        return given
    # Placeholders say where a choice stands in its list, and that may differ between studies.
    level = logging.WARNING if is_wanted(given) else logging.INFO
    logger.log(
        level,
        "The Tuner hides the choices of %s: they have no order, and no memory is used. Write "
        "Python numbers, or give the space to DRESearch(space=…).",
        hidden,
    )
    return False


def directions_of(mode: str | list[str] | tuple[str, ...] | None) -> str | list[str]:
    """Return the direction of a mode, or of each of several; None is "min"."""
    if isinstance(mode, (list, tuple)):
        return [DIRECTIONS[part] for part in mode]
    return DIRECTIONS[mode or "min"]


def checked_objectives(metric: Any, mode: Any) -> tuple[Any, Any]:
    """Return the metric and the mode of one objective, or those of several as lists.

    A ValueError says that they are neither a metric and a mode nor lists of equal length.
    """
    given = [[*part] if isinstance(part, (list, tuple)) else part for part in (metric, mode)]
    is_several = [isinstance(part, list) for part in given]
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
        require(part in DIRECTIONS, "mode", part, "'min' or 'max'")
    return given[0], given[1]


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
    """Return a value of the argument `name`, or the values of several objectives, as floats.

    A ValueError says that it is neither a number of any type nor None.
    """
    parts = value if isinstance(value, (list, tuple)) else [value]
    for part in parts:
        is_number = part is None or is_real(part) or not math.isnan(number_of(part))
        require(is_number, name, part, "numbers, or None or NaN for what has failed")
    if value is None:
        return None
    numbers = tuple(map(number_of, parts))
    return numbers if parts is value else numbers[0]


def evaluated_point(
    parameters: Mapping[str, Any],
    value: Any,
    intermediate_values: Sequence[float] | None,
    *,
    error: bool,
    pruned: bool,
) -> Evaluated:
    """Return a configuration that was evaluated elsewhere, pruned only if it has reported."""
    values = [number_of(reported) for reported in intermediate_values or ()]
    rungs = {float(iteration): reported for iteration, reported in enumerate(values, start=1)}
    state = TrialState.FAILED if error else TrialState.PRUNED if pruned and rungs else None
    given = checked_value("value", value)
    return dict(parameters), {"value": given, "state": state, "rungs": rungs}


def add_points(given: StudyArguments, study: AskTell, space: ParamSpace) -> None:
    """Enqueue the points to run, and add those that were evaluated."""
    for point in given.points:
        study.enqueue(space.to_configuration(point))
    for config, result in given.evaluated:
        study.add(space.to_configuration(config), **result)


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


def check_points(given: StudyArguments, space: ParamSpace, mode: Any) -> None:
    """Refuse points and a rule that the space cannot have, where the study begins only later."""
    study = AskTell(
        space.space,
        direction=directions_of(mode),
        prior=None,
        logger=logging.Logger("unheard", logging.CRITICAL),  # the study warns when it begins
        memory=False,
        valid=rule_on(given.valid, space),
    )
    add_points(given, study, space)


def study_of(given: StudyArguments, space: ParamSpace, mode: Any, reading: Reading) -> AskTell:
    """Begin a study, after learning from past results if there are any."""
    prior, metric = given.prior, reading.metric
    if not space.space.n_parameters:
        logger.warning("There are constants only: all trials get the same configuration.")
        prior = None
    elif given.past_results is not None:
        tasks = past_tasks(given.past_results, metric, mode, space.space, reading.limits)
        prior = learnt_prior(tasks, logger)
    study = AskTell(
        space.space,
        direction=directions_of(mode),
        prior=prior,
        logger=logger,
        memory=given.memory,
        framework="ray-tune",
        name=metric if isinstance(metric, str) else "",
        valid=rule_on(given.valid, space),
        **given.options,
    )
    add_points(given, study, space)
    return study


def past_tasks(
    results: PastResults, metric: Any, mode: Any, space: SearchSpace, limits: Limits
) -> MetaDataset:
    """Return past experiments as tasks, in the present space if that is what they searched.

    Otherwise the domains of the parameters that they share are from the present space. Trials that
    break a limit have failed.
    """
    if isinstance(results, MetaDataset):
        return results
    if isinstance(metric, list):
        raise ValueError(
            f"past_results are read for one metric, got {metric!r}; give what "
            "dre_plugins.adapters.ray_tune.sources.metadata_from_results returns for one of them."
        )
    searched = SearchSpace({name: space.domains[name] for name in space.names}, space.conditions)
    reading = partial(read_results, results, metric=metric, mode=mode, limits=limits)
    inferred, given = reading(likely=searched), reading(space=searched)
    are_equal = sum(map(len, given)) == sum(map(len, inferred)) and not any(
        np.isnan(task.units).all(axis=0).any() for task in given
    )
    return given if are_equal else inferred
