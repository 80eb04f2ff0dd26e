"""Gaussian processes of past tasks, that predict as one batch: for the methods that combine them.

Notation: `T` past tasks, `N` rows, `D` columns; see `protocol`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from botorch import settings
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from dre_bench.rivals.protocol import PastTasks, TableMethod, past_tables, sampled, standardised
from dre_plugins.checks import require

# Covariances of all past tasks at once: a chunk of rows for 100 of them takes 3 MB.
_CHUNK = 64
# A noiseless smooth task has no best lengthscale; most others take fewer iterations.
_MAX_ITERATIONS = 200


class PastModels:
    """Predict standardised values by the Gaussian process of each past task.

    Args:
        past: Past tasks: metadata, or pairs of X and y.
        n_rows: Evaluations of each task that are kept, drawn at random.
        rng: Source of the draw.

    Raises:
        ValueError: If an argument is invalid.
    """

    def __init__(self, past: PastTasks, n_rows: int, rng: np.random.Generator) -> None:
        require(n_rows >= 2, "n_rows", n_rows, "at least 2")
        drawn = [sampled(table, n_rows, rng) for table in past_tables(past)]
        self.n_columns = drawn[0][0].shape[1]
        self.n_tasks = len(drawn)
        # Fitted one by one, because one hard task would hold up all of a batch.
        models = [gaussian_process(rows, standardised(values)) for rows, values in drawn]
        self._model = _as_batch(models)

    @classmethod
    def of(cls, past: PastTasks | PastModels, n_rows: int, rng: np.random.Generator) -> PastModels:
        """Return models of past tasks, or those that are given: they may be shared."""
        return past if isinstance(past, PastModels) else cls(past, n_rows, rng)

    def check(self, rows: Tensor) -> None:
        """Raise a ValueError unless rows have the columns of the past tasks."""
        remedy = f"of the {self.n_columns} columns of past tasks"
        require(rows.shape[1] == self.n_columns, "X", tuple(rows.shape), remedy)

    def draws(self, rows: Tensor, n: int) -> Tensor:
        """Draw values of rows `[N, D]` from each posterior: `[n, T, N]`."""
        with torch.no_grad():
            posterior = self._model.posterior(rows)
            draws: Tensor = posterior.rsample(torch.Size([n]))
            return draws[..., 0]

    def marginals(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and variances `[T, C]` of rows `[C, D]`."""
        return marginals(self._model, rows)


class TransferMethod(TableMethod):
    """Choose with the help of the models of past tasks.

    Args:
        past: Past tasks with the columns of the table: metadata, pairs of X and y, or their
            models.
        n_rows: Evaluations of each past task that its model learns from, drawn at random.
        seed: Non-negative seed of all draws.
        n_threads: Threads of one choice, and of learning from past tasks.

    Raises:
        ValueError: If there is no past task, their columns differ, or an argument is invalid.
    """

    def __init__(
        self, past: PastTasks | PastModels, *, n_rows: int = 100, seed: int = 0, n_threads: int = 1
    ) -> None:
        super().__init__(seed=seed, n_threads=n_threads)
        with self._seeded():
            self._past = PastModels.of(past, n_rows, np.random.default_rng(seed))


def gaussian_process(X: Tensor, y: Tensor) -> SingleTaskGP:
    """Return BoTorch's Gaussian process of rows `[N, D]`, fitted to standardised values `[N]`."""
    model = _untrained(X, y)
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": _MAX_ITERATIONS}})
    return model


def _untrained(X: Tensor, y: Tensor) -> SingleTaskGP:
    """Return a Gaussian process of rows `[..., N, D]`; leading axes are tasks of their own."""
    # Equal values cannot be standardised, which is no reason to warn.
    with settings.validate_input_scaling(False):
        return SingleTaskGP(X, y[..., None], outcome_transform=None)


def _as_batch(models: Sequence[SingleTaskGP]) -> SingleTaskGP:
    """Return one model that predicts as each of these does, with a leading axis `[T]`."""
    batch = _untrained(
        torch.stack([model.train_inputs[0] for model in models]),
        torch.stack([model.train_targets for model in models]),
    )
    states = [model.state_dict() for model in models]
    fitted = {}
    for name, expected in batch.state_dict().items():
        values = [state[name] for state in states]
        # What has no axis for tasks belongs to the priors, which are the same for all.
        is_shared = expected.shape == values[0].shape
        fitted[name] = values[0] if is_shared else torch.stack(values).reshape(expected.shape)
    batch.load_state_dict(fitted)
    return batch.eval()


def marginals(model: SingleTaskGP, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and variances `[..., C]` of rows `[C, D]`."""
    with torch.no_grad():
        parts = [model.posterior(part) for part in rows.split(_CHUNK)]
        means = torch.cat([part.mean[..., 0] for part in parts], dim=-1)
        variances = torch.cat([part.variance[..., 0] for part in parts], dim=-1)
    return means, variances
