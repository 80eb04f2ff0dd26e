"""The search space that an argument means: a file of one, past tasks, or an Optuna storage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dre_plugins.cli.checks import needs
from dre_plugins.cli.options import is_storage
from dre_plugins.transfer import archive
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.spaces.plain import space_from_plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dre_plugins.space.search_space import SearchSpace


@dataclass(frozen=True)
class FoundSpace:
    """Hold a search space and what is known of it.

    Args:
        space: The search space.
        origin: Where it was found, in words.
        units: Canonical coordinates of what was evaluated `[N, P]`; None if nothing was.
    """

    space: SearchSpace
    origin: str
    units: NDArray[np.float64] | None = None


def find_space(source: str, name: str | None) -> FoundSpace:
    """Return the search space in a file or a storage.

    Args:
        source: A JSON file of a search space, a file of metadata, or the URL of a storage.
        name: The task or the study to take; None: the first one.

    Raises:
        ValueError: If there is none.
    """
    if is_storage(source):
        with needs("optuna", "optuna"):
            from dre_plugins.adapters.optuna.sources import metadata_from_studies
        wanted = None if name is None else [name]
        metadata = metadata_from_studies(source, study_names=wanted)
        return _space_of_task(metadata, metadata.source, name)  # which hides a password
    path = Path(source)
    tree = archive.read(path)
    if "domains" not in tree and "tasks" not in tree:
        raise ValueError(
            f"{source!r} is neither a search space (an object with 'domains') nor past tasks as "
            "dre import writes them."
        )
    if "tasks" in tree:
        return _space_of_task(MetaDataset.load(path), source, name)
    if name is not None:
        raise ValueError(f"{source!r} is a search space, which has no study {name!r}.")
    try:
        space = space_from_plain({"conditions": [], "optional": [], **tree})
    except archive.DAMAGES as error:
        raise archive.damaged(path, error) from error
    return FoundSpace(space, source)


def _space_of_task(metadata: MetaDataset, source: str, name: str | None) -> FoundSpace:
    if not len(metadata):
        raise ValueError(
            f"{source!r} has no study to take a search space from; skipped: "
            f"{dict(metadata.skipped)}."
        )
    task = metadata.tasks[0] if name is None else metadata.subset([name]).tasks[0]
    more = f", the first of {len(metadata)}" if name is None and len(metadata) > 1 else ""
    return FoundSpace(task.space, f"{task.name} of {source}{more}", task.units)
