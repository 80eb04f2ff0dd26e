"""`dre priors`: what a prior is made of and where it comes from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from dre_plugins.cli.console import console

priors = typer.Typer(no_args_is_help=True, help="Look at priors: those of the package, and yours.")


@priors.command("list")
def list_priors() -> None:
    """List the priors that ship with the package.

    Example:

        dre priors list
    """
    from dre_plugins.transfer.prior import Prior
    from dre_plugins.transfer.prior_file import CATALOGUE, names

    if not names():
        console().print("No prior ships with this version; make one of yours: dre meta-train")
        return
    table = Table()
    table.add_column("name")
    for title in ("tasks", "parameters"):
        table.add_column(title, justify="right")
    table.add_column("licence")
    table.add_column("size", justify="right")
    for name in names():
        prior = Prior.load(name)
        size = (CATALOGUE / f"{name}.safetensors").stat().st_size
        table.add_row(
            name,
            str(len(prior.card.tasks)),
            str(prior.space.n_parameters),
            prior.card.licence,
            f"{size / 1024:.0f} KiB",
        )
    console().print(table)


@priors.command("show")
def show(prior: Annotated[str, typer.Argument(help="Name or file of a prior.")]) -> None:
    """Show the card of a prior and the search space that it knows.

    Example:

        dre priors show prior.safetensors
    """
    from dre_plugins.cli.tables import card_table, space_table
    from dre_plugins.transfer.prior import Prior

    loaded = Prior.load(prior)
    console().print(card_table(loaded.card))
    console().print(space_table(loaded.space))
