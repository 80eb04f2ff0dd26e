"""Checks of arguments, and the error that names one, its value and the remedy."""

import numpy as np

# Characters of a wrong value that a message shows.
MAX_SHOWN = 200


def require(claim: bool, argument: str, value: object, remedy: str) -> None:
    """Raise a ValueError that names the argument, its value and the remedy unless `claim`."""
    if not claim:
        raise ValueError(f"{argument} must be {remedy}, got {shortened(value)}.")


def shortened(value: object) -> str:
    """Return the text of a value for a message, cut where it is long, as that of a table."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def is_integer(value: object) -> bool:
    """Say whether `value` is a whole number by type: bool is not, NumPy's integers are."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Say whether `value` is a number by type: bool is not, NumPy's numbers are."""
    return isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, bool)
