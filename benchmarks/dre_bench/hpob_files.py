"""Files of HPO-B (Pineda Arango et al., 2021): tables of evaluations.

A table file maps search space → data set → `{"X": [[…]], "y": [[…]]}`, with `X` scaled to
`[0, 1]` and larger `y` better. Nothing in these files can run code.

Notation: `N` evaluations, `D` columns of `X`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_bench.tasks import Split
from dre_plugins.space import Float
from dre_plugins.space.base import UNIT_MAX, UNIT_MIN
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer import archive
from dre_plugins.transfer.archive import MetadataError
from dre_plugins.transfer.metadata import MetaDataset, Task

Matrix: TypeAlias = NDArray[np.float64]

_FILES: Mapping[str, tuple[str, ...]] = {
    "train": ("meta-train-dataset.json", "meta-train-dataset-augmented.json"),
    "validation": ("meta-validation-dataset.json",),
    "test": ("meta-test-dataset.json",),
}
_INITIALISATIONS = "bo-initializations.json"


def load_hpob(
    path: str | PathLike[str], *, split: Split = "train", spaces: Collection[str] | None = None
) -> dict[str, MetaDataset]:
    """Read the tables of HPO-B.

    Args:
        path: The folder `hpob-data`, or one file of tables.
        split: Which file of the folder.
        spaces: Search spaces to keep; None: all.

    Returns:
        By search space: its data sets as tasks, with parameters "x0", "x1", … in `[0, 1]`.

    Raises:
        ValueError: A file, a split or a search space is missing or unknown.
        MetadataError: A file is damaged, or a table is: named with search space and data set.
    """
    path = Path(path)
    if split not in _FILES:
        raise ValueError(f"split must be one of {[*_FILES]}, got {split!r}.")
    file = _file_in(path, _FILES[split])
    tree = archive.read(file)
    unknown = sorted(set(spaces or ()) - set(tree))
    if unknown:
        raise ValueError(f"{str(file)!r} has no search spaces {unknown}; it has {sorted(tree)}.")
    return {
        name: _metadata(file, name, tables)
        for name, tables in tree.items()
        if spaces is None or name in spaces
    }


def load_hpob_initialisations(
    path: str | PathLike[str],
) -> dict[str, dict[str, dict[str, list[int]]]]:
    """Read which rows of the tables the runs of HPO-B start from.

    Args:
        path: The folder `hpob-data`, or the file `bo-initializations.json`.

    Returns:
        Search space → data set → seed ("test0" to "test4") → rows.

    Raises:
        MetadataError: The file is missing or damaged.
    """
    file = _file_in(Path(path), (_INITIALISATIONS,))
    tree = archive.read(file)
    try:
        return {
            space: {
                dataset: {seed: [_row(row) for row in rows] for seed, rows in seeds.items()}
                for dataset, seeds in datasets.items()
            }
            for space, datasets in tree.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise archive.damaged(file, error) from error


def _file_in(path: Path, names: tuple[str, ...]) -> Path:
    if not path.is_dir():
        return path
    for name in names:
        if (path / name).is_file():
            return path / name
    raise MetadataError(
        f"{str(path)!r} has no {' or '.join(map(repr, names))}; give the folder 'hpob-data' of "
        "HPO-B, or one of its files."
    )


def _metadata(file: Path, space: str, tables: Any) -> MetaDataset:
    if not isinstance(tables, dict):
        raise archive.damaged(file, f"search space {space!r} has no data sets")
    tasks, width = [], None
    for dataset, table in tables.items():
        try:
            X, y = _table(table)
            if len(X) and X.shape[1] != (width or X.shape[1]):
                raise ValueError(f"X has {X.shape[1]} columns, other data sets have {width}")
        except ValueError as error:
            place = f"search space {space!r}, data set {dataset!r}: {error}"
            raise archive.damaged(file, place) from error
        width = X.shape[1] if len(X) else width
        tasks.append(_task(dataset, X, y))
    return MetaDataset.of(tasks, source=f"HPO-B {file.name} {space}")


def _table(table: Any) -> tuple[Matrix, Matrix]:
    """Return X `[N, D]` and y `[N]` of one data set.

    Raises:
        ValueError: They are no such arrays.
    """
    if not isinstance(table, dict) or not {"X", "y"} <= table.keys():
        raise ValueError("it is no object with X and y")
    if not (isinstance(table["X"], list) and isinstance(table["y"], list)):
        raise ValueError("X or y is no list")
    try:
        X = np.array(table["X"], dtype=np.float64)
        y = np.array(table["y"], dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X or y is ragged or has cells that are no numbers ({error})") from error
    if len(X) != len(table["y"]) or len(y) != len(X):
        raise ValueError(f"X has {len(X)} rows, y has {len(table['y'])} and {len(y)} numbers")
    if len(X) == 0:
        return np.empty((0, 0)), y
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axes, not 2")
    if not np.isfinite(X).all():
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise ValueError(f"row {row} of X is {X[row].tolist()}, which is not finite")
    return X, y


def _task(name: str, X: Matrix, y: Matrix) -> Task:
    space = SearchSpace({f"x{column}": Float(0.0, 1.0) for column in range(X.shape[1])})
    return Task(name, space, np.clip(X, UNIT_MIN, UNIT_MAX), y, np.isnan(y))


def _row(row: Any) -> int:
    if type(row) is not int or row < 0:
        raise ValueError(f"{row!r} is no row number")
    return row
