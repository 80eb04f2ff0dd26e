"""Tables in files: a CSV or npz file is one task, named after the file.

A folder holds files of one kind, either in subfolders "train", "validation" and "test" or side by
side: then tasks are split by position, in the order of their names, as those of scenarios are.
A single file is a test task. Larger values are better.

    CSV    a header; the last column is the value, others are hyper-parameters, whose search space
           is inferred from all files together; an empty cell is an inactive parameter, or no value
    npz    `X` [N, D] and `y` [N] or [N, 1]; NaN in `y` is no value; columns of `X` that leave
           [0, 1] are scaled to it by their range in all files together
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_bench.runs import Sources
from dre_bench.tables import MetaTables
from dre_bench.tasks import SPLITS, split_by_position
from dre_plugins.space import Float
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer import archive
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.sources.tables import Columns, from_table, read_csv

Matrix: TypeAlias = NDArray[np.float64]

TASK = ""  # a column of our own: no column of a file is without a name


def read(_: Sources, path: str) -> MetaTables:
    """Return the tables in a file or in a folder.

    Raises:
        ValueError: There is no file, one cannot be read, or files do not fit each other.
    """
    root = Path(path).expanduser()
    folders = {split: root / split for split in SPLITS if (root / split).is_dir()}
    files = {split: _files_in(folder) for split, folder in folders.items()}
    beside = [root] if root.is_file() else _files_in(root)
    if files and beside:
        raise ValueError(
            f"{str(root)!r} has {beside[0].name!r} beside {[*files]}; move it into one of these."
        )
    metadata = _metadata(root, [*beside, *chain.from_iterable(files.values())])
    if files:
        names = {split: [file.stem for file in files.get(split, [])] for split in SPLITS}
    else:
        names = split_by_position([task.name for task in metadata])
    return MetaTables(lambda split: metadata.subset(names[split]))


def _files_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.is_file() and file.suffix in READERS)


def _metadata(root: Path, files: Sequence[Path]) -> MetaDataset:
    suffixes = sorted({file.suffix for file in files})
    if len(suffixes) != 1 or suffixes[0] not in READERS:
        raise ValueError(
            f"{str(root)!r} must be or hold files of one kind, {' or '.join(READERS)}; it has "
            f"{', '.join(suffixes) or 'none'}."
        )
    twice = [name for name, n in Counter(file.stem for file in files).items() if n > 1]
    if twice:
        raise ValueError(f"{str(root)!r} has several files {twice[0]!r}; name tasks differently.")
    metadata = replace(READERS[suffixes[0]](files), source=root.name)
    if metadata.skipped:
        raise ValueError(f"{str(root)!r} has {dict(metadata.skipped)}; correct or remove these.")
    empty = [task.name for task in metadata if not task.n_complete]
    if empty:
        raise ValueError(
            f"{empty[0]!r} in {str(root)!r} has no values: the last column of a CSV file, or y, "
            "must hold numbers."
        )
    return metadata


# ---- CSV


def _from_csv(files: Sequence[Path]) -> MetaDataset:
    """Return tasks that share a search space, inferred from all rows."""
    tables = {file: _columns(file) for file in files}
    names = [*tables[files[0]]]
    for file, columns in tables.items():
        if [*columns] != names:
            raise ValueError(
                f"{str(file)!r} has the columns {[*columns]}, others have {names}; all need the "
                "same."
            )
    united = {
        name: [*chain.from_iterable(columns[name] for columns in tables.values())]
        for name in names
    }
    united[TASK] = [file.stem for file, columns in tables.items() for _ in columns[names[-1]]]
    return from_table(united, value=names[-1], task=TASK, direction="maximize")


def _columns(file: Path) -> Columns:
    """Return the columns of a file.

    Raises:
        ValueError: The file is no table.
    """
    skipped = Counter[str]()
    columns = read_csv(file, skipped)
    if +skipped:
        raise ValueError(f"{str(file)!r} has {dict(+skipped)}; correct or remove these.")
    names = [*columns]
    if len(names) < 2 or not all(names):
        raise ValueError(
            f"{str(file)!r} has the header {names}; it needs different names for "
            "hyper-parameters, then for the value."
        )
    if not columns[names[0]]:
        raise ValueError(f"{str(file)!r} has no rows; it needs a header and evaluations.")
    return columns


# ---- npz


def _from_npz(files: Sequence[Path]) -> MetaDataset:
    """Return tasks that share the space [0, 1]^D."""
    arrays = {file: _arrays(file) for file in files}
    widths = {file.name: X.shape[1] for file, (X, _) in arrays.items()}
    if len({*widths.values()}) > 1:
        raise ValueError(f"X must have the same number of columns in all files, got {widths}.")
    together = np.concatenate([X for X, _ in arrays.values()])
    low, high = together.min(axis=0), together.max(axis=0)
    fits = (low >= 0.0) & (high <= 1.0)
    low = np.where(fits, 0.0, low)
    span = np.where(fits | (high == low), 1.0, high - low)  # a constant column becomes 0
    space = SearchSpace({f"x{column}": Float(0.0, 1.0) for column in range(len(low))})
    return MetaDataset.of(
        Task(file.stem, space, (X - low) / span, y, np.isnan(y)) for file, (X, y) in arrays.items()
    )


def _arrays(file: Path) -> tuple[Matrix, Matrix]:
    """Return X `[N, D]` and y `[N]` of a file.

    Raises:
        ValueError: They are not there, or no such arrays.
    """
    try:
        with archive.opened(file) as stored:
            arrays = {name: np.asarray(stored[name], dtype=np.float64) for name in ("X", "y")}
    except (OSError, *archive.DAMAGES) as error:
        raise ValueError(
            f"{str(file)!r} is no NumPy archive with the numbers X and y ({error})."
        ) from error
    X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or not X.size or y.shape not in ((len(X),), (len(X), 1)):
        raise ValueError(
            f"{str(file)!r} has X of shape {X.shape} and y of shape {y.shape}; they must be "
            "[N, D] and [N] or [N, 1]."
        )
    if not np.isfinite(X).all():
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise ValueError(f"{str(file)!r}: row {row} of X is {X[row].tolist()}, not finite.")
    return X, y.reshape(-1)


READERS: Mapping[str, Callable[[Sequence[Path]], MetaDataset]] = {
    ".csv": _from_csv,
    ".npz": _from_npz,
}
