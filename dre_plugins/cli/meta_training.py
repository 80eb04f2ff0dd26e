"""`dre meta-train`: past tasks become a prior."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dre_plugins.cli.console import console
from dre_plugins.cli.options import (
    PRIOR_FILES,
    Device,
    Seed,
    Tasks,
    Threads,
    check_machine,
    check_writable,
    load_tasks,
)


def meta_train(
    tasks: Tasks,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .safetensors.")],
    name: Annotated[
        str | None, typer.Option(help="Name on the card. Without it: that of the file.")
    ] = None,
    description: Annotated[str, typer.Option(help="One sentence for the card.")] = "",
    steps: Annotated[int, typer.Option(help="Steps of the training.")] = 4000,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Learn from past tasks what tends to be good; the result is a prior.

    With 10 tasks or more, every fifth is held out to tell when to stop. The default takes
    minutes; a GPU (--device cuda) makes it shorter. In Python, `Prior.train` takes the shape of
    the ensemble and all settings of the training.

    Examples:

        dre meta-train tasks.json -o prior.safetensors

        dre meta-train sqlite:///studies.db -o prior.safetensors
    """
    check_writable(output, PRIOR_FILES)
    check_machine(seed, device, threads)

    from dre_plugins.cli.tables import card_table
    from dre_plugins.engine.fitting import FittingError
    from dre_plugins.transfer.meta_training import MetaTrainingSettings
    from dre_plugins.transfer.prior import Prior

    settings = MetaTrainingSettings(n_steps=steps)
    metadata = load_tasks(tasks)
    try:
        prior = Prior.train(
            metadata,
            name=output.stem if name is None else name,
            description=description,
            settings=settings,
            seed=seed,
            device=device,
            n_threads=threads,
            progress=True,
        )
    except FittingError as error:
        raise ValueError(str(error)) from error
    prior.save(output)
    console().print(card_table(prior.card))
    console().print(f"written to {output}", soft_wrap=True)
