"""`dre meta-train`: past tasks become a prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre_plugins.cli.checks import PRIOR_FILES, check_folder, check_writable
from dre_plugins.cli.console import console
from dre_plugins.cli.options import (
    Device,
    OptionalTasks,
    Seed,
    Threads,
    check_machine,
    is_storage,
    load_tasks,
)
from dre_plugins.cli.universal_training import train_universal
from dre_plugins.engine.settings import require

if TYPE_CHECKING:
    from dre_plugins.transfer.data_parallel import Share


@dataclass(frozen=True, slots=True)
class Training:
    """What each process of a meta-training does; the first one writes the prior.

    Args:
        tasks: Files of past tasks, or URLs of storages.
        output: Where to write.
        options: As of `Prior.train`.
    """

    tasks: list[str]
    output: Path
    options: dict[str, Any]

    def __call__(self, share: Share, device: str) -> None:
        """Train on this process's share of the lists."""
        from dre_plugins.engine.fitting import FittingError
        from dre_plugins.transfer.prior import Prior

        metadata = load_tasks(self.tasks)
        try:
            prior = Prior.train(
                metadata, **self.options, share=share, device=device, progress=share.is_first
            )
        except FittingError as error:
            raise ValueError(str(error)) from error
        if share.is_first:
            prior.save(self.output)


def meta_train(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .safetensors.")],
    tasks: OptionalTasks = None,
    name: Annotated[
        str | None, typer.Option(help="Name on the card. Without it: that of the file.")
    ] = None,
    description: Annotated[str, typer.Option(help="One sentence for the card.")] = "",
    synthetic: Annotated[
        bool,
        typer.Option(
            "--synthetic", help="Meta-train the universal prior, on synthetic tasks; no files."
        ),
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps of the training. Without it: 4000, or 16000 with --synthetic."),
    ] = None,
    batch: Annotated[int, typer.Option(help="Lists that each scorer sees in one step.")] = 4,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    members: Annotated[int, typer.Option(help="Scorers of the ensemble.")] = 10,
    hidden: Annotated[
        str, typer.Option(metavar="WIDTHS", help="Widths of the hidden layers.")
    ] = "32,32,32,32",
    loss: Annotated[str, typer.Option(help="Ranking loss.")] = "weighted-list-mle",
    no_context: Annotated[
        bool,
        typer.Option(
            "--no-context",
            help="Leave out the part that recognises a task by what was evaluated so far.",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File that the state of the training is written to now and then."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")
    ] = False,
    processes: Annotated[
        int, typer.Option(help="Processes that share the lists of each step, a GPU or CPU each.")
    ] = 1,
    ray_address: Annotated[
        str | None,
        typer.Option(help="Address of a Ray cluster that they run on, or local to start one."),
    ] = None,
) -> None:
    """Learn from past tasks what tends to be good; the result is a prior.

    With 10 tasks or more, every fifth is held out to tell when to stop. The default takes
    minutes; a GPU (--device cuda) makes it shorter. What does not fit into memory is read from
    a folder (.tasks) as it is needed, see docs/scale.md.

    Examples:

        dre meta-train tasks.json -o prior.safetensors

        dre meta-train sqlite:///studies.db -o prior.safetensors

        dre meta-train tasks.json -o prior.safetensors --checkpoint state.ckpt --resume

        dre meta-train past.tasks -o prior.safetensors --batch 256 --processes 4 --device cuda

        dre meta-train --synthetic -o universal.safetensors --seed 0
    """
    if synthetic:
        require(not tasks, "TASKS", tasks, "none with --synthetic")
        check_writable(output, PRIOR_FILES)
        check_machine(seed, device, threads)
        return train_universal(output, steps, seed=seed, device=device, n_threads=threads)
    tasks = tasks or []
    require(len(tasks) > 0, "TASKS", tasks, "one file of past tasks at least, or --synthetic")
    steps = 4000 if steps is None else steps
    widths = _widths(hidden)
    if resume and checkpoint is None:
        raise typer.BadParameter("--resume needs --checkpoint FILE.")
    check_writable(output, PRIOR_FILES)
    if checkpoint is not None:
        check_folder(checkpoint)
    # A cluster may have GPUs where the driver has none.
    check_machine(seed, device if ray_address is None else "cpu", threads)

    require(processes >= 1, "--processes", processes, "at least 1")
    if processes > 1 or ray_address is not None:
        # Each process reads the tasks, and a storage may have changed by then.
        urls = [source for source in tasks if is_storage(source)]
        require(not urls, "TASKS", urls, "files where processes are several: dre import optuna")

    from dre_plugins.cli.tables import card_table
    from dre_plugins.engine.checkpoint import check_size
    from dre_plugins.transfer.data_parallel import Share, run_processes
    from dre_plugins.transfer.meta_training import MetaTrainingSettings
    from dre_plugins.transfer.prior import Prior
    from dre_plugins.transfer.training import SCORER

    scorer = replace(SCORER, n_members=members, hidden=widths)
    check_size(scorer)
    context = None if no_context else SCORER.context
    Share(n=processes).check(batch)
    options: dict[str, Any] = {
        "name": output.stem if name is None else name,
        "description": description,
        "scorer": replace(scorer, context=context),
        "settings": MetaTrainingSettings(n_steps=steps, n_lists=batch, loss=loss),
        "seed": seed,
        "n_threads": threads,
        "checkpoint": checkpoint and checkpoint.resolve(),
        "resume": resume,
    }
    training = Training([_absolute(source) for source in tasks], output.resolve(), options)
    if ray_address is not None:
        from dre_plugins.adapters.ray_train import run_on_cluster

        run_on_cluster(training, processes, device, address=ray_address)
    elif processes > 1:
        try:
            run_processes(training, processes, device)
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    else:
        training(Share(), device)
    console().print(card_table(Prior.load(output).card))
    console().print(f"written to {output}", soft_wrap=True)


def _absolute(source: str) -> str:
    return source if is_storage(source) else str(Path(source).resolve())


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(width) for width in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            f"--hidden takes widths such as 32,32,32,32, not {text!r}."
        ) from error
