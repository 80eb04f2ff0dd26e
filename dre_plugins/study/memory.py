"""The argument `memory` of a study: whether it uses one, and its access to that."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from dre_plugins.engine.settings import require

if TYPE_CHECKING:
    from dre_plugins.memory import Memory
    from dre_plugins.memory.access import StudyMemory

GivenMemory: TypeAlias = "bool | str | os.PathLike[str] | Memory | None"


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
    # Imported here, as a study without a memory does not need it.
    from dre_plugins.memory import Memory
    from dre_plugins.memory.access import StudyMemory
    from dre_plugins.memory.recorded_study import Header

    memory = Memory.of(given)
    if memory is None:
        return None
    header = Header(name=name, framework=framework, directions=tuple(directions))
    return StudyMemory(memory, header, stats=stats, logger=logger)
