"""The one place where bad input ends a program."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from dre_plugins.cli.console import warn


class OneLineErrors(TyperGroup):
    """Turn errors that the user can do something about into one line and exit code 1."""

    program = "dre"

    def invoke(self, ctx: Any) -> Any:
        """Run a command; anything but bad input keeps its traceback."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `dre priors list | head`: typer ends without a word
            raise
        except (ValueError, OSError) as error:
            if ctx.params.get("debug"):
                raise
            warn(" ".join(str(error).split()), self.program)
            raise typer.Exit(1) from error
