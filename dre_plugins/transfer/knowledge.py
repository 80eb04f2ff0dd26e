"""What a user gives as a prior, without importing torch for those who give none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from dre_plugins.transfer.objectives import ObjectivePriors
    from dre_plugins.transfer.prior import Prior

OnePrior: TypeAlias = "Prior | str | os.PathLike[str] | None"
GivenPrior: TypeAlias = "OnePrior | Sequence[OnePrior]"
Known: TypeAlias = "Prior | ObjectivePriors"


def prior_from(given: GivenPrior) -> Known | None:
    """Return a prior that was given itself, by name, by path, or not at all.

    Args:
        given: The prior; or a list with one for each objective, None where there is none.

    Raises:
        ValueError: If there is no such prior, or its file cannot be read.
    """
    if not isinstance(given, (list, tuple)):
        return _one(given)
    from dre_plugins.transfer.objectives import ObjectivePriors

    return ObjectivePriors([_one(prior) for prior in given])


def _one(given: object) -> Prior | None:
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
