"""The arguments `prior` and `memory` of a study: what they name is loaded.

What most studies do not use is imported only if it is given: trained priors, which need torch, and
the memory.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dre_plugins.checks import require
from dre_plugins.engine.settings import Preset, get_preset
from dre_plugins.recommend.prior import (
    AUTO,
    UNIVERSAL,
    GivenPrior,
    LoadedPrior,
    PastTasksLike,
    PriorLike,
    RecognisedPrior,
    UniversalFile,
    check_turns,
)

if TYPE_CHECKING:
    from dre_plugins.memory import Memory
    from dre_plugins.memory.access import StudyMemory

GivenMemory: TypeAlias = "bool | str | os.PathLike[str] | Memory | None"


def prior_from(given: GivenPrior, preset: str | Preset = "default") -> LoadedPrior:
    """Load the prior that a user gave as an object, by its name or by its path.

    "universal" and past studies are returned unchanged, "auto" recognises the learner, and a list
    has one prior for each objective, None where there is none. If the universal prior takes no
    turns in the preset of the study, "auto" is the same as "universal": an untrained ensemble
    alone. A ValueError says that there is no such prior, its file cannot be read, a list has no
    prior or has past studies, or the preset has no turns for the file of a universal prior.
    """
    if given == AUTO:
        if not get_preset(preset).universal_turns:
            return UNIVERSAL
        from dre_plugins.transfer.recognition import AutoPrior

        return AutoPrior()
    if given == UNIVERSAL:
        return UNIVERSAL
    if isinstance(given, (list, tuple)):
        is_any = any(part is not None for part in given)
        require(is_any, "prior", given, "a prior for one objective at least")
        if any(isinstance(part, PastTasksLike) for part in given):
            raise ValueError(
                "prior has past studies in its list: give what Prior.train makes of them instead."
            )
        return tuple(_trained(part) for part in given)
    if isinstance(given, (PastTasksLike, RecognisedPrior)):
        return given
    universal = given if isinstance(given, UniversalFile) else _universal(given)
    check_turns(universal, preset)
    return universal or _trained(given)


def _universal(given: object) -> UniversalFile | None:
    if not isinstance(given, (str, os.PathLike)) or not os.path.isfile(given):
        return None
    from dre_plugins.universal.file import network_in  # imports torch

    network = network_in(given)
    return None if network is None else UniversalFile(os.fspath(given), network)


def _trained(given: Any) -> PriorLike | None:
    if given is None or isinstance(given, PriorLike):
        return given
    from dre_plugins.transfer.prior import Prior

    return Prior.load(given)


def is_wanted(given: GivenMemory) -> bool:
    """Say whether a study is to use a memory, given as an argument or by DRE_MEMORY."""
    return bool(os.environ.get("DRE_MEMORY")) if given is None else given is not False


def memory_of_study(
    given: GivenMemory,
    *,
    name: str,
    framework: str,
    directions: Sequence[str],
    stats: Counter[str],
    logger: logging.Logger,
) -> StudyMemory | None:
    """Return the access of a new study to a memory, None if there is no memory.

    A ValueError says that `given` is no memory, a name no text or `logger` no logger.
    """
    for argument, text in (("name", name), ("framework", framework)):
        require(isinstance(text, str), argument, text, "a text")
    is_logger = isinstance(logger, (logging.Logger, logging.LoggerAdapter))
    require(is_logger, "logger", logger, "a logging.Logger, or None")
    if not is_wanted(given):
        return None
    from dre_plugins.memory import Memory
    from dre_plugins.memory.access import StudyMemory
    from dre_plugins.memory.recorded_study import Header

    header = Header(name=name, framework=framework, directions=tuple(directions))
    memory = Memory.of(given)
    return None if memory is None else StudyMemory(memory, header, stats=stats, logger=logger)
