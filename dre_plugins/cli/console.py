"""The output of the commands, which escapes control characters.

Names of tasks, parameters and priors come from files. Control characters in them could clear the
screen, write to the clipboard, or show a name backwards.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import track
from rich.segment import Segment
from rich.table import Column
from rich.text import Text

Item = TypeVar("Item")

# Width of the output in a pipe or a file.
_WIDTH_OF_FILES = 120


def printable(text: str) -> str:
    r"""Return a text with control characters escaped, such as `\x1b`."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )


class SafeConsole(Console):
    """A console that escapes control characters of texts, and what its encoding lacks.

    Its own colours are printed.
    """

    def escaped(self, text: str) -> str:
        """Return a text of which this console can print every character."""
        # Files and pipes of Windows, for example, have few characters.
        encoded = printable(text).encode(self.encoding, errors="backslashreplace")
        return encoded.decode(self.encoding)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with the width that it will have when printed."""
        return super().render_str(self.escaped(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is printed."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(self.escaped(segment.text), segment.style)


def console() -> SafeConsole:
    """Return the console for results, without markup: names are plain text."""
    width = None if sys.stdout and sys.stdout.isatty() else _WIDTH_OF_FILES  # None: closed
    return SafeConsole(width=width, markup=False, highlight=False, emoji=False)


def whole(title: str) -> Column:
    """Return a column that breaks long words instead of cutting them, as commands take names."""
    return Column(title, overflow="fold")


def warn(text: str, program: str = "dre") -> None:
    """Print a remark beside the results."""
    remarks = SafeConsole(stderr=True, markup=False, highlight=False, emoji=False)
    remarks.print(f"{program}: {text}", soft_wrap=True)


def tracked(items: Iterable[Item], text: str, total: int) -> Iterator[Item]:
    """Yield the items; on a terminal, show a progress bar with the remaining time.

    The bar is updated only between items, so that it disturbs no measurement.
    """
    bars = SafeConsole(stderr=True)
    is_hidden = not bars.is_terminal
    yield from track(items, text, total=total, console=bars, auto_refresh=False, disable=is_hidden)
