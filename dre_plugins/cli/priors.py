"""`dre priors`: what a prior is made of and where it comes from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from dre_plugins.cli.console import console

# What cards say of first trials on data sets that were held out.
REGRETS = ("regret of the first trial", "regret of the library's default")
CAPTION = (
    "regret: of the first trial on data sets held out, beside that of the library's default; 0 is "
    "the best known, 1 the median of random trials. prior='auto' picks one by the parameters."
)

priors = typer.Typer(no_args_is_help=True, help="Look at priors: those of the package, and yours.")


@priors.command("list")
def list_priors() -> None:
    """List the priors that ship with the package.

    Example:

        dre priors list
    """
    from dre_plugins.transfer.prior import Prior
    from dre_plugins.transfer.prior_file import CATALOGUE, names

    table = Table(caption=CAPTION)
    table.add_column("name")
    for title in ("tasks", "parameters", "evaluations", "regret", "default's", "size"):
        table.add_column(title, justify="right")
    for name in names():
        prior = Prior.load(name)
        card, size = prior.card, (CATALOGUE / f"{name}.safetensors").stat().st_size
        regrets = (card.validation.get(key) for key in REGRETS)
        table.add_row(
            name,
            str(len(card.tasks)),
            str(prior.space.n_parameters),
            str(card.n_evaluations),
            *("–" if regret is None else f"{regret:.2f}" for regret in regrets),
            f"{size / 1024:.0f} KiB",
        )
    console().print(table)


@priors.command("show")
def show(prior: Annotated[str, typer.Argument(help="Name or file of a prior.")]) -> None:
    """Show the card of a prior, the search space that it knows, and what names it goes by.

    Example:

        dre priors show prior.safetensors
    """
    from dre_plugins.cli.tables import card_table, names_table, space_table
    from dre_plugins.transfer.prior import Prior

    loaded = Prior.load(prior)
    console().print(card_table(loaded.card))
    console().print(space_table(loaded.space))
    console().print(names_table(loaded.space))
