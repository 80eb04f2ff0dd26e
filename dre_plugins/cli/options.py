"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dre_plugins.engine.settings import check_device, require

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import MetaDataset

Tasks = Annotated[
    list[Path], typer.Argument(help="Past tasks, as dre import writes them; one file or several.")
]
OptionalTasks = Annotated[
    list[Path] | None,
    typer.Argument(help="Past tasks, as dre import writes them; one file or several."),
]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal results.")]
Device = Annotated[str, typer.Option(help="Where to meta-train: cpu, cuda, cuda:1, …")]
Threads = Annotated[int, typer.Option(help="Threads of the CPU.")]


def load_tasks(files: list[Path]) -> MetaDataset:
    """Return the tasks of all files; a repeated name is numbered."""
    from dre_plugins.transfer.metadata import MetaDataset

    first, *others = [MetaDataset.load(file) for file in files]
    return sum(others, start=first)


def check_machine(seed: int, device: str, n_threads: int) -> None:
    """Raise a ValueError unless there is such a machine, and the seed is one."""
    require(seed >= 0, "--seed", seed, "at least 0")
    require(n_threads >= 1, "--threads", n_threads, "at least 1")
    check_device(device)
