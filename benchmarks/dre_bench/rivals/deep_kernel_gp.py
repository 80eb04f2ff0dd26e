"""Gaussian processes with a deep kernel: fitted from scratch, or meta-trained on past tasks.

DKGP (Wilson et al., 2016): a network's output is what a Matérn kernel compares.

FSBO (Wistuba and Grabocka, ICLR 2021): the same kernel, meta-trained by the marginal likelihood of
batches of past tasks whose labels are scaled at random (algorithm 1 there), then fine-tuned to the
new task at every step. Sizes follow the code published with HPO-B, whose curves the DRE paper
compares with: 4 × 32 hidden units, Matérn 5/2 without a lengthscale for each output, batches of 64
evaluations, fine-tuning with learning rate 0.001.

What differs: a step of the meta-training averages over several tasks, so that fewer are needed,
at a higher learning rate (after 300 steps at 0.001 the noise is still near its initial value);
scaling limits are at least a fifth of a task's range apart, so that no batch is blown up; the last
weights are kept, as the learning rate ends at 0; there is no warm start by an evolutionary search,
because the protocol gives the first rows; values of the new task are scaled to [0, 1] by what was
observed of it.
"""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import gpytorch
import numpy as np
import torch
from torch import Tensor

from dre_bench.rivals.protocol import (
    CHUNK,
    PastTasks,
    Table,
    TableMethod,
    log_expected_improvement,
    past_tables,
    sampled,
    standardised,
)
from dre_plugins.checks import require

BATCH_TASKS = 8
BATCH_ROWS = 64
MIN_RANGE = 0.2
# A fit ends when the likelihood has moved by less than this for so many steps in a row.
TOLERANCE = 1e-4
PATIENCE = 16


class DeepKernelModel(gpytorch.models.ExactGP):  # type: ignore[misc]
    """A Gaussian process of a network's outputs.

    Args:
        n_columns: Number of columns D.
        hidden: Width of each layer of the network; the last one has no activation.
    """

    def __init__(self, n_columns: int, hidden: tuple[int, ...]) -> None:
        super().__init__(None, None, gpytorch.likelihoods.GaussianLikelihood())
        layers: list[torch.nn.Module] = []
        for n_in, n_out in pairwise((n_columns, *hidden)):
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        self.network = torch.nn.Sequential(*layers[:-1])
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))
        self.double()

    def forward(self, rows: Tensor) -> gpytorch.distributions.MultivariateNormal:
        """Return the prior of rows `[..., N, D]`."""
        outputs = self.network(rows)
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(outputs), self.covar_module(outputs)
        )


class DKGP(TableMethod):
    """Choose the row of the largest expected improvement of a deep-kernel Gaussian process.

    Args:
        hidden: Width of each layer of the network.
        n_steps: Most Adam steps of one fit.
        learning_rate: Learning rate of a fit.
        seed: Non-negative seed of the weights.
        n_threads: Threads of one choice.
    """

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (32, 32, 32, 32),
        n_steps: int = 500,
        learning_rate: float = 0.01,
        seed: int = 0,
        n_threads: int = 1,
    ) -> None:
        super().__init__(seed=seed, n_threads=n_threads)
        require(len(hidden) >= 1, "hidden", hidden, "one or more widths")
        self.hidden = hidden
        self.n_steps = n_steps
        self.learning_rate = learning_rate

    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        targets = self._scaled(values)
        model = self._start(observed.shape[1])
        fit(model, observed, targets, self.n_steps, self.learning_rate)
        model.eval()
        # Without debugging it does not mind pending rows that were observed.
        with torch.no_grad(), gpytorch.settings.debug(False):
            predicted = [model(part) for part in pending.split(CHUNK)]
            mean = torch.cat([part.mean for part in predicted])
            variance = torch.cat([part.variance for part in predicted])
        return log_expected_improvement(mean, variance.sqrt(), targets.max())

    def _start(self, n_columns: int) -> DeepKernelModel:
        """Return the model that a fit starts from."""
        return DeepKernelModel(n_columns, self.hidden)

    def _scaled(self, values: Tensor) -> Tensor:
        return standardised(values)


class FSBO(DKGP):
    """Choose as `DKGP` does, with a kernel that was meta-trained on past tasks.

    Args:
        past: Past tasks with the columns of the table: metadata, or pairs of X and y.
        n_training_steps: Steps of the meta-training, each on 8 tasks.
        training_rate: Learning rate of its first step; it falls to 0 by a cosine.
        hidden: Width of each layer of the network.
        n_steps: Most Adam steps of one fine-tuning.
        learning_rate: Learning rate of the fine-tuning.
        seed: Non-negative seed of the meta-training.
        n_threads: Threads of one choice, and of the meta-training.

    Raises:
        ValueError: If there is no past task, or their columns differ.
    """

    def __init__(
        self,
        past: PastTasks,
        *,
        n_training_steps: int = 2000,
        training_rate: float = 0.01,
        hidden: tuple[int, ...] = (32, 32, 32, 32),
        n_steps: int = 500,
        learning_rate: float = 0.001,
        seed: int = 0,
        n_threads: int = 1,
    ) -> None:
        super().__init__(
            hidden=hidden,
            n_steps=n_steps,
            learning_rate=learning_rate,
            seed=seed,
            n_threads=n_threads,
        )
        require(n_training_steps >= 1, "n_training_steps", n_training_steps, "at least 1")
        tables = past_tables(past)
        self.n_columns = tables[0][0].shape[1]
        tables = [(X, _in_range(y)) for X, y in tables]
        rng = np.random.default_rng(seed)
        with self._seeded():
            self._model = DeepKernelModel(self.n_columns, hidden)
            optimiser = torch.optim.Adam(self._model.parameters(), lr=training_rate)
            objective = _likelihood(self._model)
            for step in range(n_training_steps):
                share = 0.5 * (1.0 + math.cos(math.pi * step / n_training_steps))
                for group in optimiser.param_groups:
                    group["lr"] = training_rate * share
                X, y = _batch(tables, rng)
                self._model.set_train_data(X, y, strict=False)
                optimiser.zero_grad()
                (-objective(self._model(X), y).mean()).backward()
                optimiser.step()

    def _start(self, n_columns: int) -> DeepKernelModel:
        require(n_columns == self.n_columns, "X", n_columns, f"of {self.n_columns} columns")
        return copy.deepcopy(self._model)

    def _scaled(self, values: Tensor) -> Tensor:
        return _in_range(values)


def fit(model: DeepKernelModel, X: Tensor, y: Tensor, n_steps: int, learning_rate: float) -> None:
    """Maximise the marginal likelihood of one task by Adam, and keep the best weights.

    Args:
        model: What to fit, in place.
        X: Rows `[N, D]`.
        y: Values `[N]`.
        n_steps: Most steps; a likelihood that stands still ends the fit.
        learning_rate: Learning rate of all steps.
    """
    model.set_train_data(X, y, strict=False)
    objective = _likelihood(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    best, weights, last, n_still = math.inf, copy.deepcopy(model.state_dict()), math.inf, 0
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        value = float(loss.detach())
        if value < best:
            best, weights = value, copy.deepcopy(model.state_dict())
        optimiser.step()
        n_still = n_still + 1 if abs(value - last) < TOLERANCE else 0
        if n_still > PATIENCE:
            break
        last = value
    model.load_state_dict(weights)


def _likelihood(model: DeepKernelModel) -> gpytorch.mlls.ExactMarginalLogLikelihood:
    model.train()
    return gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)


def _batch(tables: list[Table], rng: np.random.Generator) -> Table:
    """Return rows `[B, 64, D]` and randomly scaled values `[B, 64]` of random tasks."""
    chosen = rng.choice(len(tables), size=min(BATCH_TASKS, len(tables)), replace=False)
    drawn = [sampled(tables[task], BATCH_ROWS, rng) for task in chosen]
    limits = np.sort(rng.random((len(drawn), 2)), axis=1) * (1.0 - MIN_RANGE)
    low = torch.from_numpy(limits[:, :1])
    high = torch.from_numpy(limits[:, 1:] + MIN_RANGE)
    y = torch.stack([values for _, values in drawn])
    return torch.stack([rows for rows, _ in drawn]), (y - low) / (high - low)


def _in_range(values: Tensor) -> Tensor:
    """Return values `[N]` scaled to [0, 1]; zeros where all are equal."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else torch.zeros_like(values)
