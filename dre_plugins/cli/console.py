"""Where the commands print to."""

from __future__ import annotations

import sys

from rich.console import Console

# In a pipe or a file there is no width to fit to.
_WIDTH_OF_FILES = 120


def console() -> Console:
    """Return the console of results; brackets in names and messages are no markup."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(width=width, markup=False, highlight=False)


def warn(text: str) -> None:
    """Print a remark beside the results."""
    Console(stderr=True, markup=False, highlight=False, soft_wrap=True).print(f"dre: {text}")
