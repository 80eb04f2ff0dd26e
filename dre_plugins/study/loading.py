"""Load the prior that an argument names.

Trained priors are in `dre_plugins.transfer`, which is imported, with torch, only if one is given.
"""

import os
from typing import Any

from dre_plugins.engine.settings import Preset, get_preset, require
from dre_plugins.recommend.prior import (
    AUTO,
    UNIVERSAL,
    GivenPrior,
    LoadedPrior,
    PriorLike,
    UniversalFile,
    check_turns,
)


def prior_from(given: GivenPrior, preset: str | Preset = "default") -> LoadedPrior:
    """Load the prior that a user gave as an object, by its name or by its path.

    "universal" is returned unchanged, "auto" recognises the learner, and a list has one prior for
    each objective, None where there is none. If the universal prior takes no turns in the preset
    of the study, "auto" is the same as "universal": an untrained ensemble alone. A ValueError says
    that there is no such prior, its file cannot be read, a list has no prior, or the preset has no
    turns for the file of a universal prior.
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
        return tuple(_trained(part) for part in given)
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
