"""What a user gives as a prior, without importing torch for those who give none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

GivenPrior: TypeAlias = "Prior | str | os.PathLike[str] | None"


def prior_from(given: GivenPrior) -> Prior | None:
    """Return a prior that was given itself, by name, by path, or not at all.

    Raises:
        ValueError: If there is no such prior, or its file cannot be read.
    """
    if given is None:
        return None
    from dre_plugins.transfer.prior import Prior

    if isinstance(given, Prior):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(f"prior must be a Prior, a name, a path or None, got {given!r}.")
    return Prior.load(given)
