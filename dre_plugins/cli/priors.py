"""`dre meta-train` makes a prior of past tasks, `dre priors` shows cards and search spaces."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from dre_plugins.cli import options
from dre_plugins.cli.console import console

# Figures on cards: regrets on data sets that were held out.
REGRETS = ("regret of the first trial", "regret of the library's default")
CAPTION = (
    "regret: of the first trial on held-out data sets, and of the library's default; 0 is the "
    "best known value, 1 the median of random trials. prior='auto' recognises the learner."
)

priors = typer.Typer(no_args_is_help=True, help="Show priors of the package, and yours.")


def meta_train(
    tasks: options.Tasks,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .safetensors.")],
    name: Annotated[
        str | None, typer.Option(help="Name on the card. Without it: that of the file.")
    ] = None,
    description: Annotated[str, typer.Option(help="One sentence for the card.")] = "",
    steps: Annotated[int, typer.Option(help="Steps of the training.")] = 4000,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    threads: options.Threads = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File to which the state of the training is saved regularly."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint, if there is one.")
    ] = False,
) -> None:
    """Train a prior on past tasks.

    With 10 tasks or more, every fifth is held out for early stopping. Training takes about a
    minute for a hundred tasks. Run the command again with --resume to continue a training that was
    interrupted. In Python, `Prior.train` takes the shape of the ensemble and all settings of the
    training.

    Examples:

        dre meta-train tasks.json -o prior.safetensors

        dre meta-train sqlite:///studies.db -o prior.safetensors

        dre meta-train tasks.json -o prior.safetensors --checkpoint state.ckpt --resume
    """
    if resume and checkpoint is None:
        raise typer.BadParameter("--resume needs --checkpoint FILE.")
    options.check_writable(output, options.PRIOR_FILES)
    if checkpoint is not None:
        options.check_folder(checkpoint)
    options.check_machine(seed, device, threads)

    from dre_plugins.cli.tables import card_table
    from dre_plugins.transfer.meta_training import MetaTrainingSettings
    from dre_plugins.transfer.prior import Prior

    settings = MetaTrainingSettings(n_steps=steps)
    metadata = options.load_tasks(tasks)
    prior = Prior.train(
        metadata,
        name=output.stem if name is None else name,
        description=description,
        settings=settings,
        seed=seed,
        device=device,
        n_threads=threads,
        checkpoint=checkpoint,
        resume=resume,
        progress=True,
    )
    prior.save(output)
    console().print(card_table(prior.card))
    console().print(f"written to {output}", soft_wrap=True)


@priors.command("list")
def list_priors() -> None:
    """List the priors that ship with the package.

    Example:

        dre priors list
    """
    from dre_plugins.transfer.prior import Prior
    from dre_plugins.transfer.prior_file import CATALOGUE, names

    titles = ("tasks", "parameters", "evaluations", "regret", "default's", "size")
    numbers = [Column(title, justify="right") for title in titles]
    table = Table("name", *numbers, caption=CAPTION)
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
