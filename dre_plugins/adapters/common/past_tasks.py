"""Steps of learning from past studies that do not depend on the framework."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dre_plugins.transfer.metadata import MetaDataset

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

Mode: TypeAlias = Literal["min", "max"]

# Values of our trials are larger where they are better.
SIGNS: Mapping[str, float] = {"min": -1.0, "max": 1.0}


def check_mode(mode: str | None) -> None:
    """Check that a mode is "min", "max" or None.

    Raises:
        ValueError: If the mode is unknown.
    """
    if mode not in (None, *SIGNS):
        raise ValueError(f"mode must be 'min' or 'max', got {mode!r}.")


def listed(sources: Any) -> Sequence[Any]:
    """Return a sequence of sources; a text is a single one."""
    is_several = isinstance(sources, Sequence) and not isinstance(sources, str)
    return sources if is_several else [sources]


def learnt_prior(metadata: MetaDataset, logger: logging.Logger) -> Prior:
    """Log that training takes seconds, and return a prior trained on a few past tasks.

    Raises:
        ValueError: If there is nothing to learn from.
    """
    left_out = f"; left out: {dict(metadata.skipped)}" if metadata.skipped else ""
    if not len(metadata):
        raise ValueError(f"There is nothing to learn from{left_out}; give at least one past task.")
    logger.info(
        "Learning from %d past tasks with %d evaluations, which takes some seconds%s.",
        len(metadata),
        metadata.n_evaluations,
        left_out,
    )
    from dre_plugins.transfer.prior import Prior  # imports torch

    names = tuple(task.name for task in metadata)
    return replace(Prior.of_few(metadata), past_studies=names)
