"""What a user gives as a prior, without importing torch for those who give none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from dre_plugins.engine.settings import Preset, get_preset, require
from dre_plugins.recommend.prior import AUTO, UNIVERSAL, Universal, UniversalFile

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import MetaDataset
    from dre_plugins.transfer.prior import Prior
    from dre_plugins.transfer.recognition import AutoPrior

SinglePrior: TypeAlias = "Prior | str | os.PathLike[str] | None"
GivenPrior: TypeAlias = "SinglePrior | Sequence[SinglePrior]"
LoadedPrior: TypeAlias = "Prior | AutoPrior | tuple[Prior | None, ...] | Universal"


def prior_from(given: GivenPrior, preset: str | Preset = "default") -> LoadedPrior | None:
    """Return a prior that was given itself, by name, by path, or not at all.

    Args:
        given: The prior; "universal", which stays what it is; "auto", which recognises the
            learner; or a list with one prior for each objective, None where there is none.
        preset: That of the study. In one in which the universal prior takes no turns, "auto" is
            "universal": an untrained ensemble alone.

    Raises:
        ValueError: If there is no such prior, its file cannot be read, or a list has none at all.
    """
    if given == UNIVERSAL:
        return UNIVERSAL
    if given == AUTO:
        if not get_preset(preset).universal_turns:
            return UNIVERSAL
        from dre_plugins.transfer.recognition import AutoPrior

        return AutoPrior()
    if not isinstance(given, (list, tuple)):
        return _universal(given) or _trained(given)
    priors = tuple(_trained(prior) for prior in given)
    is_any = any(prior is not None for prior in priors)
    require(is_any, "prior", given, "a prior for one objective at least")
    return priors


def learning_from(metadata: MetaDataset) -> str:
    """Return what to say before a prior is made of past tasks, which takes seconds."""
    n_evaluations = sum(len(task) for task in metadata)
    left_out = f"; left out: {dict(metadata.skipped)}" if metadata.skipped else ""
    return (
        f"Learning from {len(metadata)} past tasks with {n_evaluations} evaluations, which takes "
        f"some seconds{left_out}."
    )


def _universal(given: object) -> UniversalFile | None:
    if not isinstance(given, (str, os.PathLike)) or not os.path.isfile(given):
        return None
    from dre_plugins.universal.file import digest_of  # imports torch

    digest = digest_of(given)  # raises at once if the network is damaged
    return None if digest is None else UniversalFile(os.fspath(given), digest)


def _trained(given: object) -> Prior | None:
    if given is None:
        return None
    from dre_plugins.transfer.prior import Prior

    if isinstance(given, Prior):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(
            "prior must be a Prior, a name, a path, None, or a list of these with one for each "
            f"objective, got {given!r}."
        )
    return Prior.load(given)
