"""What stands before a learner in its pipeline, fitted on the rows that it is trained on.

It depends on the data set and the fold only, not on the configuration, so that the inputs of a
learner are made once a data set.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dre_bench.learner_evaluations.datasets import FOLDS, Dataset

# Categories are one-hot encoded throughout, missing ones as a category. Numbers are left as they
# are (`plain`: the learner has a way with missing values), completed by medians (`complete`), or
# completed and scaled to variance 1 (`scaled`).
PLAIN, COMPLETE, SCALED = "plain", "complete", "scaled"


@dataclass(frozen=True)
class Split:
    """Inputs and targets of a fold: `[N, Q]`, `[N]` to train on and `[M, Q]`, `[M]` to test."""

    train_inputs: np.ndarray
    train_target: np.ndarray
    test_inputs: np.ndarray
    test_target: np.ndarray


def transformer(kind: str, is_category: np.ndarray) -> ColumnTransformer:
    """Make the preprocessing of a kind for columns `[P]`."""
    numbers: dict[str, FunctionTransformer | SimpleImputer | Pipeline] = {
        PLAIN: FunctionTransformer(),
        COMPLETE: SimpleImputer(strategy="median", keep_empty_features=True),
        SCALED: make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        ),
    }
    one_hot = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [
            ("numbers", numbers[kind], np.flatnonzero(~is_category)),
            ("categories", one_hot, np.flatnonzero(is_category)),
        ]
    )


def splits(data: Dataset, kind: str) -> list[Split]:
    """Prepare the folds of a data set."""
    prepared = []
    for fold in range(FOLDS):
        train, test = data.fold != fold, data.fold == fold
        columns = transformer(kind, data.is_category).fit(data.inputs[train])
        with warnings.catch_warnings():
            # A category that the training rows do not have is zero in all columns.
            warnings.filterwarnings("ignore", "Found unknown categories")
            train_inputs, test_inputs = (
                np.ascontiguousarray(columns.transform(data.inputs[rows]), dtype=np.float64)
                for rows in (train, test)
            )
        prepared.append(Split(train_inputs, data.target[train], test_inputs, data.target[test]))
    return prepared
