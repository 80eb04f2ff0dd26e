"""Where the commands print to: the only place where text of unknown origin reaches a terminal.

Names of tasks, parameters and priors come from files. A terminal obeys some characters: they can
clear the screen, write to the clipboard, or show a name backwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import track
from rich.segment import Segment
from rich.text import Text

Item = TypeVar("Item")

# In a pipe or a file there is no width to fit to.
_WIDTH_OF_FILES = 120


def printable(text: str) -> str:
    r"""Return a text whose characters a terminal shows and does not obey; others as `\x1b`."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )


class SafeConsole(Console):
    """A console that prints no control character of a text; its own colours it does print."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to lay out, as wide as it will be printed."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is printed."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def console() -> Console:
    """Return the console of results; brackets in names and messages are no markup."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return SafeConsole(width=width, markup=False, highlight=False)


def warn(text: str, program: str = "dre") -> None:
    """Print a remark beside the results."""
    remarks = SafeConsole(stderr=True, markup=False, highlight=False)
    remarks.print(f"{program}: {text}", soft_wrap=True)


def tracked(items: Iterable[Item], text: str, total: int) -> Iterator[Item]:
    """Yield the items, on a terminal beside a bar with the time left.

    The bar moves between items only, so that it disturbs no measurement.
    """
    bars = SafeConsole(stderr=True)
    is_hidden = not bars.is_terminal
    yield from track(items, text, total=total, console=bars, auto_refresh=False, disable=is_hidden)
