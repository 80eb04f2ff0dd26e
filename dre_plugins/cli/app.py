"""The program `dre`: all commands, and the one place where bad input ends it."""

from __future__ import annotations

from typing import Annotated

import typer

from dre_plugins import __version__
from dre_plugins.cli.errors import OneLineErrors
from dre_plugins.cli.evaluating import evaluate
from dre_plugins.cli.importing import importing
from dre_plugins.cli.memory import memory
from dre_plugins.cli.meta_training import meta_train
from dre_plugins.cli.priors import priors

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
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
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

    The second shows whether a prior would help. In Python, the prior is then
    `DRESampler(prior="prior.safetensors")`.
    """


app.add_typer(importing, name="import")
app.command("evaluate")(evaluate)
app.command("meta-train")(meta_train)
app.add_typer(priors, name="priors")
app.add_typer(memory, name="memory")
