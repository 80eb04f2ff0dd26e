"""`dre align`: what a prior knows of a search space, before anything is run."""

from __future__ import annotations

from typing import Annotated

import typer

from dre_plugins.cli.console import console


def align(
    prior: Annotated[str, typer.Argument(help="Name or file of a prior.")],
    space: Annotated[
        str,
        typer.Argument(
            help="JSON file of a search space, file of past tasks, or URL of an Optuna storage."
        ),
    ],
    study: Annotated[
        str | None,
        typer.Option(help="Study of the storage, or task of the file. Without it: the first."),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="MINE=THEIRS",
            help="A parameter of yours that is one of the prior's under another name; can be "
            "repeated.",
        ),
    ] = None,
) -> None:
    """Show which of your parameters a prior knows, and what becomes of the others.

    Exit code 1: the two have no parameter in common.

    The JSON file of a search space looks like this (other kinds: Integer, Categorical with
    choices, Ordinal with values):

        {"domains": {"lr": {"kind": "Float", "low": 1e-5, "high": 0.1, "scale": "log"}}}

    Examples:

        dre align prior.safetensors space.json

        dre align prior.safetensors sqlite:///studies.db --study wine

        dre align prior.safetensors tasks.json --map lr=learning_rate
    """
    from dre_plugins.cli.spaces import find_space
    from dre_plugins.cli.tables import alignment_table
    from dre_plugins.transfer.prior import Prior

    mapping = dict(_pair(text) for text in pairs or ())
    loaded = Prior.load(prior, mapping=mapping)
    given = find_space(space, study)
    unknown = [name for name in mapping if name not in given.space.domains]
    if unknown:
        raise ValueError(f"--map names {unknown}; {given.origin} has {list(given.space.domains)}.")
    try:
        alignment = loaded.align(given.space)
    except ValueError as error:
        raise ValueError(f"{error} On the command line a mapping is --map MINE=THEIRS.") from error
    console().print(f"prior {loaded.card.name}, space of {given.origin}", soft_wrap=True)
    console().print(alignment_table(alignment, given.units))
    if alignment.ignored:
        console().print(
            f"Unknown to the prior, so learnt from scratch: {', '.join(alignment.ignored)}"
        )


def _pair(text: str) -> tuple[str, str]:
    mine, equals, theirs = text.partition("=")
    if not (mine and equals and theirs):
        raise typer.BadParameter(f"--map takes MINE=THEIRS, such as lr=eta, not {text!r}.")
    return mine, theirs
