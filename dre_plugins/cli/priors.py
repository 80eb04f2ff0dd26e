"""`dre priors`: the cards and search spaces of priors."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from dre_plugins.cli.console import console

# Figures on cards: regrets on data sets that were held out.
REGRETS = ("regret of the first trial", "regret of the library's default")
CAPTION = (
    "regret: of the first trial on held-out data sets, and of the library's default; 0 is the "
    "best known value, 1 the median of random trials. prior='auto' recognises the learner."
)

priors = typer.Typer(no_args_is_help=True, help="Show priors of the package, and yours.")


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
    """Show the card of a prior, its search space, and other names of its parameters.

    Example:

        dre priors show prior.safetensors
    """
    from dre_plugins.cli.tables import card_table, names_table, space_table
    from dre_plugins.transfer.prior import Prior

    loaded = Prior.load(prior)
    console().print(card_table(loaded.card))
    console().print(space_table(loaded.space))
    console().print(names_table(loaded.space))
