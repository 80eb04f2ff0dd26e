"""The arguments of `DRESearch`: their checks, and the study that begins with them."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from dre_plugins.adapters.common.past_tasks import TaskDefinition, listed, past_tasks_in
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.adapters.ray_tune.history import ResultReader, logger
from dre_plugins.adapters.ray_tune.sources import Source, read_results
from dre_plugins.adapters.ray_tune.tree import hidden_in
from dre_plugins.checks import is_real, require
from dre_plugins.recommend.prior import GivenPrior
from dre_plugins.recommend.trials import number_of
from dre_plugins.space.rules import Valid
from dre_plugins.study.arguments import GivenMemory, is_wanted
from dre_plugins.study.ask_tell import AskTell
from dre_plugins.transfer.metadata import MetaDataset

PastResults: TypeAlias = Source | Sequence[Source] | MetaDataset
# A configuration to run, with None, or one that was evaluated, with arguments of `AskTell.add`.
Point: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any] | None]

DIRECTIONS = {"min": "minimize", "max": "maximize"}


def initial_points(points: Any, rewards: Any) -> list[Point]:
    """Return the points to run, or those that were evaluated if there are rewards."""
    points = [] if points is None else points
    is_list = isinstance(points, Sequence) and all(isinstance(point, Mapping) for point in points)
    require(is_list, "points_to_evaluate", points, "a list of dictionaries")
    if rewards is None:
        return [(dict(point), None) for point in points]
    is_list = isinstance(rewards, Collection) and not isinstance(rewards, (str, Mapping))
    require(is_list, "evaluated_rewards", rewards, "a list of values of the metric")
    if len(rewards) != len(points):
        raise ValueError(
            f"evaluated_rewards must have one value for each of the {len(points)} "
            f"points_to_evaluate, got {len(rewards)}."
        )
    values = [checked_value("evaluated_rewards", reward) for reward in rewards]
    return [(dict(point), {"value": value}) for point, value in zip(points, values, strict=True)]


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


# ---- the study


@dataclass(frozen=True)
class StudyArguments:
    """Hold what `DRESearch` was given for its study; `options` are handed on as they are."""

    options: Mapping[str, Any]
    prior: GivenPrior
    past_results: PastResults | None
    points: Sequence[Point]
    memory: GivenMemory
    valid: Valid | None

    def on(self, param_space: ParamSpace) -> StudyArguments:
        """Return them for a parameter space, in which a Tuner may hide objects."""
        hidden = hidden_in(param_space.root)
        remedy = (
            f"left out, or {hidden} given to DRESearch(space=…), as a Tuner hides their objects"
        )
        require(self.valid is None or not hidden, "valid", self.valid, remedy)
        choices = [name for name in hidden if name in param_space.space.names]
        if not choices:
            return self
        # Placeholders say where a choice stands in its list, and that may differ between studies.
        logger.log(
            logging.WARNING if is_wanted(self.memory) else logging.INFO,
            "The Tuner hides the choices of %s: they have no order, and no memory is used. Write "
            "Python numbers, or give the space to DRESearch(space=…).",
            choices,
        )
        return replace(self, memory=False)

    def check(self, param_space: ParamSpace, reader: ResultReader) -> None:
        """Refuse points and a rule that the space cannot have, where the study begins later."""
        unlearnt = replace(self, prior=None, past_results=None, memory=False)
        # It warns when it begins.
        unlearnt.begin(param_space, reader, logging.Logger("unheard", logging.CRITICAL))

    def begin(
        self, param_space: ParamSpace, reader: ResultReader, logger: logging.Logger = logger
    ) -> AskTell:
        """Return the study, which has its points enqueued or added."""
        prior, valid, space = self.prior, self.valid, param_space.space
        if not space.n_parameters:
            logger.warning("There are constants only: all trials get the same configuration.")
            prior = None
        elif self.past_results is not None:
            metadata = past_metadata(self.past_results, reader, param_space)
            prior = past_tasks_in(metadata, logger)
        study = AskTell(
            space,
            direction=[DIRECTIONS[mode] for mode in listed(reader.mode or "min")],
            prior=prior,
            logger=logger,
            memory=self.memory,
            framework="ray-tune",
            name=reader.metric if isinstance(reader.metric, str) else "",
            valid=partial(_is_valid, valid, param_space) if callable(valid) else valid,
            **self.options,
        )
        self.add_points(study, param_space)
        return study

    def add_points(self, study: AskTell, param_space: ParamSpace) -> None:
        """Enqueue the points to run, and add those that were evaluated."""
        for config, result in self.points:
            configuration = param_space.to_configuration(config)
            if result is None:
                study.enqueue(configuration)
            else:
                study.add(configuration, **result)


def _is_valid(valid: Valid, param_space: ParamSpace, configuration: Mapping[str, Any]) -> bool:
    """Return whether a rule on configurations as trials get them holds for a flat one."""
    return valid(param_space.to_config(configuration))


def past_metadata(
    results: PastResults, reader: ResultReader, param_space: ParamSpace
) -> MetaDataset:
    """Return past experiments as tasks; the parameters that fit have the domains of the space.

    Trials that break a limit have failed.
    """
    if isinstance(results, MetaDataset):
        return results
    if isinstance(reader.metric, list):
        raise ValueError(
            f"past_results are read for one metric, got {reader.metric!r}; give what "
            "dre_plugins.adapters.ray_tune.sources.metadata_from_results returns for one of them."
        )
    objective = reader.metric, reader.mode, reader.limits
    definition = TaskDefinition(*objective, likely=param_space.space, paths=param_space.paths)
    return read_results(results, definition)
