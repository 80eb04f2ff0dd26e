"""The data sets: at most `MOST_ROWS` rows each, with folds that never change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from dre_bench.learner_evaluations.spaces import CLASSIFICATION

MOST_ROWS = 1000
FOLDS = 3
SEED = 0


@dataclass(frozen=True)
class Dataset:
    """A data set and its folds.

    Attributes:
        name: `TASK/NAME` as in the archive.
        inputs: numbers and codes of categories `[N, P]`; NaN where a value is missing.
        is_category: which columns hold codes of categories `[P]`.
        target: classes 0, 1, … or numbers of mean 0 and variance 1 `[N]`.
        fold: the fold in which each row is tested `[N]`.
        rows: which rows of the archive these are `[N]`.
    """

    name: str
    inputs: np.ndarray
    is_category: np.ndarray
    target: np.ndarray
    fold: np.ndarray
    rows: np.ndarray

    @property
    def task(self) -> str:
        """`classification` or `regression`."""
        return self.name.split("/")[0]

    @property
    def size(self) -> int:
        """Rows times columns times classes: what evaluations are slow in."""
        classes = len(np.unique(self.target)) if self.task == CLASSIFICATION else 1
        return self.inputs.size * classes


def names(archive: Path) -> list[str]:
    """List the data sets of an archive, `TASK/NAME` each."""
    with np.load(archive) as data:
        return sorted({key.rsplit("/", 1)[0] for key in data})


@lru_cache(maxsize=2)
def load(archive: Path, name: str) -> Dataset:
    """Load one data set: the same rows and folds at every call."""
    with np.load(archive) as data:
        inputs, is_category, target = (
            data[f"{name}/{part}"] for part in ("X", "is_category", "y")
        )
    return prepare(name, inputs, is_category, target)


def prepare(name: str, inputs: np.ndarray, is_category: np.ndarray, target: np.ndarray) -> Dataset:
    """Draw the rows, scale a numeric target and deal the folds."""
    classify = name.startswith(CLASSIFICATION)
    rows = np.arange(len(target))
    if len(rows) > MOST_ROWS:
        rows, _ = train_test_split(
            rows, train_size=MOST_ROWS, stratify=target if classify else None, random_state=SEED
        )
        rows = np.sort(rows)
    target = target[rows]
    if classify:
        target = np.unique(target, return_inverse=True)[1]
        splits = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    else:
        target = target.astype(float)
        target = (target - target.mean()) / target.std()
        splits = KFold(FOLDS, shuffle=True, random_state=SEED)
    fold = np.zeros(len(rows), dtype=np.int8)
    for index, (_, test) in enumerate(splits.split(rows, target)):
        fold[test] = index
    return Dataset(name, inputs[rows], is_category.astype(bool), target, fold, rows)
