"""Arguments that several commands share, checked before any work begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dre_plugins.checks import require
from dre_plugins.engine.settings import MAX_THREADS, check_device

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import MetaDataset

METADATA_FILES = (".json", ".npz")
PRIOR_FILES = (".safetensors",)

Tasks = Annotated[
    list[str],
    typer.Argument(
        help="Past tasks: files as dre import writes them, or URLs of Optuna storages; one or "
        "several."
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="File to write: .json, or .npz (smaller).")
]
Constraints = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        help="Limit on another metric, METRIC=HIGHEST or METRIC=LOWEST:HIGHEST, either of which "
        "may be empty; trials that break it have failed. Can be repeated.",
    ),
]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal results.")]
Device = Annotated[str, typer.Option(help="Torch device: cpu, cuda, cuda:1, …")]
Threads = Annotated[int, typer.Option(help="Number of CPU threads.")]


def load_tasks(sources: Sequence[str]) -> MetaDataset:
    """Return the tasks of all files and storages; a repeated name is numbered."""
    first, *others = [_tasks_of(source) for source in sources]
    return sum(others, start=first)


def _tasks_of(source: str) -> MetaDataset:
    from dre_plugins.transfer.metadata import MetaDataset

    if "://" not in source:
        if Path(source).suffix not in METADATA_FILES:
            raise ValueError(
                f"Cannot read {source!r}: give a file that dre import has made of your data "
                f"({' or '.join(METADATA_FILES)}), or a URL such as sqlite:///studies.db."
            )
        return MetaDataset.load(source)
    from dre_plugins.adapters.optuna.sources import metadata_from_studies

    metadata = metadata_from_studies(source)
    if not len(metadata):
        raise ValueError(  # the source of the metadata hides a password
            f"{metadata.source!r} has no study to learn from; skipped: {dict(metadata.skipped)}."
        )
    return metadata


def limits_in(constraints: Sequence[str] | None) -> dict[str, tuple[float | None, ...]]:
    """Return the limits by metric that `--constraint` gives; a ValueError says which is none."""
    limits = {}
    for text in constraints or ():
        metric, _, bounds = text.rpartition("=")
        low, _, high = bounds.rpartition(":")
        try:
            limits[metric] = tuple(float(bound) if bound else None for bound in (low, high))
        except ValueError:
            metric = ""
        remedy = "METRIC=HIGHEST or METRIC=LOWEST:HIGHEST with numbers, such as size=100"
        require(bool(metric), "--constraint", text, remedy)
    return limits


def check_machine(seed: int, device: str, n_threads: int) -> None:
    """Raise a ValueError unless the seed, the device and the number of threads are valid."""
    require(0 <= seed < 2**64, "--seed", seed, "at least 0, and below 2**64")  # as torch takes
    require(1 <= n_threads <= MAX_THREADS, "--threads", n_threads, f"from 1 to {MAX_THREADS}")
    check_device(device)


def check_writable(path: Path, suffixes: Sequence[str]) -> None:
    """Raise a ValueError unless a file of that name can be written."""
    if path.suffix not in suffixes:
        raise ValueError(
            f"Cannot write {str(path)!r}: the name must end in {' or '.join(suffixes)}."
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise a ValueError if a path is a folder, or is in none that can be written to."""
    if path.is_dir():
        raise ValueError(f"Cannot write {str(path)!r}: it is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(
            f"Cannot write {str(path)!r}: make the folder {str(path.parent)!r} first."
        )
    folder = Path(os.path.realpath(path)).parent  # of a link, that of its target
    if not os.access(folder, os.W_OK):
        raise ValueError(
            f"Cannot write {str(path)!r}: the folder {str(folder)!r} may not be written to."
        )
