"""The program `dre`: all commands, and the one place where bad input ends it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dre_plugins import __version__
from dre_plugins.cli.aligning import align
from dre_plugins.cli.bench import bench
from dre_plugins.cli.console import warn
from dre_plugins.cli.evaluating import evaluate
from dre_plugins.cli.importing import importing
from dre_plugins.cli.memory import memory
from dre_plugins.cli.meta_training import meta_train
from dre_plugins.cli.priors import priors


class OneLineErrors(TyperGroup):
    """Turn errors that the user can do something about into one line and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; anything but bad input keeps its traceback."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `dre priors list | head`: typer ends without a word
            raise
        except (ValueError, OSError) as error:
            if ctx.params.get("debug"):
                raise
            warn(" ".join(str(error).split()))
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"dre-plugins {__version__}")
        raise typer.Exit


@app.callback()
def dre(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show it."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Let hyper-parameter searches learn from those that you ran before.

    Three steps, from past studies to a prior that the next study starts from:

        dre import optuna sqlite:///studies.db -o tasks.json

        dre evaluate tasks.json

        dre meta-train tasks.json -o prior.safetensors

    The second one says whether the third one is worth it. In Python, the prior is then
    `DRESampler(prior="prior.safetensors")`.
    """


app.add_typer(importing, name="import")
app.command("evaluate")(evaluate)
app.command("meta-train")(meta_train)
app.command("align")(align)
app.add_typer(priors, name="priors")
app.add_typer(memory, name="memory")
app.add_typer(bench, name="bench")
