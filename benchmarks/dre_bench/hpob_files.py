"""Files of HPO-B (Pineda Arango et al., 2021): tables of evaluations, and surrogates of them.

A table file maps search space → data set → `{"X": [[…]], "y": [[…]]}`, with `X` scaled to
`[0, 1]` and larger `y` better. A folder of surrogates has an XGBoost model for each pair, and
`summary-stats.json` with the range of `y`. Nothing in these files can run code.

Notation: `N` evaluations, `D` columns of `X`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space import Float
from dre_plugins.space.base import UNIT_MAX, UNIT_MIN
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer import archive
from dre_plugins.transfer.archive import MetadataError
from dre_plugins.transfer.metadata import MetaDataset, Task

if TYPE_CHECKING:
    import xgboost

Split: TypeAlias = Literal["train", "validation", "test"]
Matrix: TypeAlias = NDArray[np.float64]

_FILES: Mapping[str, tuple[str, ...]] = {
    "train": ("meta-train-dataset.json", "meta-train-dataset-augmented.json"),
    "validation": ("meta-validation-dataset.json",),
    "test": ("meta-test-dataset.json",),
}
_INITIALISATIONS = "bo-initializations.json"
_STATISTICS = "summary-stats.json"
_SURROGATE = re.compile(r"surrogate-(?P<space>[^-]+)-(?P<dataset>[^-]+)")


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


def to_hpob_json(metadata: Mapping[str, MetaDataset], path: str | PathLike[str]) -> int:
    """Write metadata as a table file of HPO-B, with the features of configurations as `X`.

    Args:
        metadata: By search space: tasks that share it.
        path: A file that ends in ".json".

    Returns:
        How many evaluations have no finite value, and were left out.

    Raises:
        ValueError: Tasks of one entry have different search spaces, or the suffix is another one.
    """
    if Path(path).suffix != ".json":
        raise ValueError(f"Cannot write {str(path)!r}: the name must end in '.json'.")
    tree: dict[str, dict[str, dict[str, Matrix]]] = {}
    n_left_out = 0
    for name, tasks in metadata.items():
        tree[name] = {}
        for task in tasks:
            if task.space != tasks.tasks[0].space:
                raise ValueError(
                    f"Tasks {tasks.tasks[0].name!r} and {task.name!r} of {name!r} have different "
                    "search spaces; align them to one space first."
                )
            kept = np.isfinite(task.values)
            n_left_out += int((~kept).sum())
            features = task.space.features(task.units[kept]).astype(np.float64)
            tree[name][task.name] = {"X": features, "y": task.values[kept, None]}
    archive.write(Path(path), tree)
    return n_left_out


class HpobSurrogates:
    """The continuous benchmarks of HPO-B: XGBoost models of its tables.

    Args:
        folder: The folder `saved-surrogates`.

    Raises:
        MetadataError: The folder has no readable `summary-stats.json`.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self._statistics = archive.read(self.folder / _STATISTICS)

    def tasks(self) -> list[tuple[str, str]]:
        """Return the pairs of search space and data set that have a model."""
        return [*self._files]

    def n_features(self, space: str, dataset: str) -> int:
        """Return the number of columns `D` of a model."""
        return int(_booster(self._file(space, dataset)).num_features())

    def evaluate(self, space: str, dataset: str, X: Matrix) -> Matrix:
        """Return what the model predicts for configurations, larger is better.

        Args:
            space: Search space.
            dataset: Data set.
            X: Configurations in `[0, 1]` `[N, D]`.

        Returns:
            Predictions `[N]`, scaled to `[0, 1]` by the range of the table and clipped.

        Raises:
            ValueError: There is no such model, or `X` does not fit it.
            MetadataError: A file is damaged.
            ImportError: XGBoost is not installed.
        """
        file = self._file(space, dataset)
        low, high = self._range(file)
        booster, X = _booster(file), np.asarray(X, dtype=np.float64)
        shape = (len(X), int(booster.num_features()))
        if X.shape != shape or not np.isfinite(X).all():
            raise ValueError(
                f"X must be finite and of shape {shape} for {file.name!r}, got shape {X.shape}."
            )
        predicted = np.asarray(booster.inplace_predict(X), dtype=np.float64)
        if high == low:  # a table of equal values
            return np.zeros(len(X))
        return np.clip((predicted - low) / (high - low), 0.0, 1.0)

    def sample(self, space: str, n: int, seed: int) -> MetaDataset:
        """Return `n` evaluated uniform random configurations for each data set of a search space.

        Raises:
            ValueError: The search space has no model.
        """
        datasets = [dataset for name, dataset in self._files if name == space]
        if not datasets:
            names = sorted({name for name, _ in self._files})
            raise ValueError(f"No surrogates of search space {space!r}; there are {names}.")
        rng = np.random.default_rng(seed)
        tasks = []
        for dataset in datasets:
            X = rng.random((n, self.n_features(space, dataset)))
            tasks.append(_task(dataset, X, self.evaluate(space, dataset, X)))
        return MetaDataset.of(tasks, source=f"HPO-B surrogates {space}")

    @cached_property
    def _files(self) -> dict[tuple[str, str], Path]:
        files: dict[tuple[str, str], Path] = {}
        for name in sorted(self._statistics):
            match, file = _SURROGATE.fullmatch(name), self.folder / f"{name}.json"
            if match and file.is_file():
                files[match["space"], match["dataset"]] = file
        return files

    def _file(self, space: str, dataset: str) -> Path:
        if (space, dataset) not in self._files:
            raise ValueError(
                f"No surrogate of search space {space!r} and data set {dataset!r} in "
                f"{str(self.folder)!r}; tasks() lists what there is."
            )
        return self._files[space, dataset]

    def _range(self, file: Path) -> tuple[float, float]:
        statistics = self._statistics[file.stem]
        try:
            low, high = float(statistics["y_min"]), float(statistics["y_max"])
        except (KeyError, TypeError, ValueError) as error:
            raise archive.damaged(self.folder / _STATISTICS, error) from error
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            reason = f"{file.stem} goes from {low} to {high}"
            raise archive.damaged(self.folder / _STATISTICS, reason)
        return low, high


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


@lru_cache(maxsize=64)
def _booster(file: Path) -> xgboost.Booster:
    try:
        import xgboost
    except ImportError as error:
        raise ImportError("HPO-B's surrogates need XGBoost: pip install xgboost.") from error
    booster = xgboost.Booster()
    try:
        booster.load_model(file)
    except xgboost.core.XGBoostError as error:
        raise archive.damaged(file, error) from error
    return booster
