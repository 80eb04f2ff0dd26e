"""What all baselines share: how a table is read, and which row is taken.

Notation: `N` observed rows, `C` pending rows, `D` columns; larger values are better.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from dre_plugins.checks import require
from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend.universal_prior import log_improvements
from dre_plugins.transfer.metadata import MetaDataset

# Past tasks: X `[N, D]` and y `[N]` or `[N, 1]` of each.
PastTasks: TypeAlias = "MetaDataset | Sequence[tuple[ArrayLike, ArrayLike]]"
Table: TypeAlias = tuple[Tensor, Tensor]
Method = TypeVar("Method", bound="TableMethod")

# Pending rows that are predicted at once: a covariance of all would not fit into memory.
CHUNK = 1024


class TableMethod(ABC):
    """Choose the row of a table to evaluate next, whatever the columns mean.

    A choice is a function of the data, the seed and the number of observations only; nothing is
    kept between calls, and the global random state of torch and NumPy is left alone.

    Args:
        seed: Non-negative seed of everything random in a choice.
        n_threads: Threads of one choice.

    Raises:
        ValueError: If an argument is invalid.
    """

    def __init__(self, *, seed: int = 0, n_threads: int = 1) -> None:
        require(isinstance(seed, int) and seed >= 0, "seed", seed, "a non-negative integer")
        require(n_threads >= 1, "n_threads", n_threads, "at least 1")
        self.seed = seed
        self.n_threads = n_threads

    def with_seed(self: Method, seed: int) -> Method:
        """Return the same method, with what it learnt of past tasks, and another seed."""
        other = copy.copy(self)
        other.seed = seed
        return other

    def observe_and_suggest(
        self, X_observed: ArrayLike, y_observed: ArrayLike, X_pending: ArrayLike
    ) -> int:
        """Return which pending row to evaluate next.

        Args:
            X_observed: What was evaluated, `[N, D]` in [0, 1].
            y_observed: Its values, `[N]` or `[N, 1]`; NaN counts like the worst of them.
            X_pending: What may be evaluated, `[C, D]` in [0, 1].

        Returns:
            An index into `X_pending`.

        Raises:
            ValueError: If the arrays do not fit each other, X is not finite, or nothing pends.
        """
        pending = rows_of("X_pending", X_pending)
        require(len(pending) > 0, "X_pending", len(pending), "of at least one row")
        values = values_of(y_observed)
        observed = rows_of("X_observed", X_observed, pending.shape[1], len(values))
        with self._seeded(len(values)):
            acquisition_values = (
                self._acquisition_values(observed, values, pending)
                if len(values)
                else torch.rand(len(pending), dtype=torch.float64)
            )
        return int(acquisition_values.argmax())

    @contextmanager
    def _seeded(self, *more: int) -> Iterator[None]:
        with isolated("cpu", self.n_threads), seeded(self.seed, *more):
            yield

    @abstractmethod
    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        """Return the acquisition value of each pending row `[C]`.

        Args:
            observed: `[N, D]`, at least one row.
            values: `[N]`, finite.
            pending: `[C, D]`.
        """


@contextmanager
def seeded(*seeds: int) -> Iterator[None]:
    """Draw from torch's global generator as these seeds say, and restore it afterwards.

    For libraries that take no generator; what draws by itself should have one of its own.
    """
    seed = int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0])
    state = torch.Generator().manual_seed(seed).get_state()
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield


def rows_of(
    name: str, X: ArrayLike, n_columns: int | None = None, n_rows: int | None = None
) -> Tensor:
    """Return rows in [0, 1] `[N, D]`, float64.

    Raises:
        ValueError: If it is no matrix of that shape, or not finite; `name` tells which.
    """
    rows = np.asarray(X, dtype=np.float64)
    if rows.size == 0:
        rows = rows.reshape(0, rows.shape[1] if rows.ndim == 2 else n_columns or 0)
    require(rows.ndim == 2, name, rows.shape, "a matrix with one row a configuration")
    shape = (len(rows) if n_rows is None else n_rows, n_columns or rows.shape[1])
    require(rows.shape == shape, name, rows.shape, f"of shape {shape}")
    require(bool(np.isfinite(rows).all()), name, "NaN or infinity", "finite")
    return torch.from_numpy(np.clip(rows, 0.0, 1.0))


def values_of(y: ArrayLike) -> Tensor:
    """Return values `[N]`, float64, finite: NaN and infinities become the worst or the best."""
    values = np.asarray(y, dtype=np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return torch.zeros(len(values), dtype=torch.float64)
    worst, best = float(finite.min()), float(finite.max())
    return torch.from_numpy(np.nan_to_num(values, nan=worst, neginf=worst, posinf=best))


def standardised(values: Tensor) -> Tensor:
    """Return values `[..., N]` of mean 0 and variance 1; zeros where all are equal."""
    centred = values - values.mean(-1, keepdim=True)
    deviation = centred.square().mean(-1, keepdim=True).sqrt()
    return torch.where(deviation > 1e-9, centred / deviation.clamp_min(1e-9), 0.0)


def log_expected_improvement(mean: Tensor, deviation: Tensor, best: Tensor | float) -> Tensor:
    """Return the logarithm of the expected improvement over `best` `[C]`.

    Args:
        mean: Predicted means `[C]`.
        deviation: Predicted standard deviations `[C]`, which may be 0.
        best: The value to improve on.
    """
    means, variances = mean.detach().numpy(), deviation.detach().clamp_min(1e-9).square().numpy()
    return torch.from_numpy(log_improvements(means, variances, float(best))[0])


def past_tables(past: PastTasks, n_columns: int | None = None) -> list[Table]:
    """Return X `[N, D]` and y `[N]` of past tasks, without evaluations that failed.

    Args:
        past: Metadata whose tasks share one search space, or pairs of X and y.
        n_columns: Number of columns D; None takes it from the first task.

    Raises:
        ValueError: If there is no past task, or their columns differ.
    """
    if isinstance(past, MetaDataset):
        spaces = [task.space for task in past]
        alike = all(space == spaces[0] for space in spaces)
        require(alike, "past", "tasks of different search spaces", "of one search space")
        past = [(task.space.features(task.units), task.values) for task in past]
    tables = []
    for place, (X, y) in enumerate(past):
        values = np.asarray(y, dtype=np.float64).reshape(-1)
        rows = rows_of(f"past[{place}]", X, n_columns, len(values))
        n_columns = rows.shape[1]
        kept = torch.from_numpy(np.isfinite(values))
        if kept.any():
            tables.append((rows[kept], torch.from_numpy(values)[kept]))
    require(bool(tables), "past", past, "at least one task with a value")
    return tables


def sampled(table: Table, n_rows: int, rng: np.random.Generator) -> Table:
    """Return `n_rows` rows of a table, drawn without repetition as far as it has so many."""
    rows = torch.from_numpy(np.resize(rng.permutation(len(table[1])), n_rows))
    return table[0][rows], table[1][rows]
