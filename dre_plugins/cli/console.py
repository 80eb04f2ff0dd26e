"""Where the commands print to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")

# In a pipe or a file there is no width to fit to.
_WIDTH_OF_FILES = 120


def console() -> Console:
    """Return the console of results; brackets in names and messages are no markup."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(width=width, markup=False, highlight=False)


def warn(text: str) -> None:
    """Print a remark beside the results."""
    Console(stderr=True, markup=False, highlight=False, soft_wrap=True).print(f"dre: {text}")


def tracked(items: Iterable[Item], text: str, total: int) -> Iterator[Item]:
    """Yield the items, on a terminal beside a bar with the time left.

    The bar moves between items only, so that it disturbs no measurement.
    """
    bars = Console(stderr=True)
    with Progress(console=bars, auto_refresh=False, disable=not bars.is_terminal) as progress:
        bar = progress.add_task(text, total=total)
        progress.refresh()
        for item in items:
            yield item
            progress.advance(bar)
            progress.refresh()
