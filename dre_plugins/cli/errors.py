"""Options of the programs `dre` and `dre-bench`, and their error messages for bad input."""

from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dre_plugins import __version__
from dre_plugins.cli.console import warn
from dre_plugins.engine.settings import FittingError


class OneLineErrors(TyperGroup):
    """Print errors that the user can correct as one line, and exit with code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; errors other than bad input keep their traceback."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `dre priors list | head`: typer ends without a word
            raise
        except (ValueError, OSError, ImportError, FittingError) as error:  # ImportError: an extra
            if ctx.params.get("debug"):
                raise
            warn(" ".join(str(error).split()), str(self.name))
            raise typer.Exit(1) from error


def command_line(name: str, about: str) -> typer.Typer:
    """Return a program without commands, with the options `--version` and `--debug`.

    Args:
        name: Name of the program.
        about: First part of the help, as Markdown.
    """
    app = typer.Typer(
        name=name,
        cls=OneLineErrors,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=cleandoc(about))(_options)
    return app


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"dre-plugins {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Take the options of a program, before those of a command."""
