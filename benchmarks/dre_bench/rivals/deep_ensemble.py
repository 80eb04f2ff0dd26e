"""Deep ensembles (Lakshminarayanan et al., 2017) as a surrogate: the thesis's baseline.

Networks with a mean and a variance head, fitted to standardised values by the Gaussian negative
log-likelihood, restarted from random weights at each step; they have 2 × 32 hidden units, and 5 or
10 of them make an ensemble. What differs: all members are fitted at once, as stacked tensors, each
on all of the data; there is no adversarial training; the learning rate is annealed by a cosine, as
for our own scorers. The acquisition is the expected improvement of a normal distribution with the
mean and the variance of the mixture.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dre_bench.rivals.protocol import TableMethod, log_expected_improvement, standardised
from dre_plugins.checks import require
from dre_plugins.engine.scorers import Parameters, perceptron

# Values are standardised: less is below what any benchmark resolves, and 0 has no logarithm.
MIN_VARIANCE = 1e-6


class DeepEnsemble(TableMethod):
    """Choose the row of the largest expected improvement of a deep ensemble.

    Args:
        n_members: Number of networks M.
        hidden: Width of each hidden layer.
        n_steps: Adam steps of one fit.
        learning_rate: Learning rate of the first step.
        seed: Non-negative seed of the weights.
        n_threads: Threads of one choice.
    """

    def __init__(
        self,
        *,
        n_members: int = 5,
        hidden: tuple[int, ...] = (32, 32),
        n_steps: int = 1000,
        learning_rate: float = 0.02,
        seed: int = 0,
        n_threads: int = 1,
    ) -> None:
        super().__init__(seed=seed, n_threads=n_threads)
        require(n_members >= 1, "n_members", n_members, "at least 1")
        self.n_members = n_members
        self.hidden = hidden
        self.n_steps = n_steps
        self.learning_rate = learning_rate

    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        targets = standardised(values)
        parameters = self._fitted(observed.float(), targets.float())
        with torch.no_grad():
            mean, variance = mixture_moments(*_predicted(parameters, pending.float()))
        return log_expected_improvement(mean.double(), variance.double().sqrt(), targets.max())

    def _fitted(self, observed: Tensor, targets: Tensor) -> Parameters:
        parameters = _initial((observed.shape[1], *self.hidden, 2), self.n_members)
        optimiser = torch.optim.Adam([*parameters.values()], lr=self.learning_rate, fused=True)
        for step in range(self.n_steps):
            share = 0.5 * (1.0 + math.cos(math.pi * step / self.n_steps))
            for group in optimiser.param_groups:
                group["lr"] = self.learning_rate * share
            means, variances = _predicted(parameters, observed)
            # Members are independent: the sum over them has the gradients of each one's mean.
            losses = torch.log(variances) + (targets - means).square() / variances
            optimiser.zero_grad()
            losses.mean(-1).sum().backward()
            optimiser.step()
        return parameters


def mixture_moments(means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance `[C]` of equal shares of normal distributions `[M, C]`."""
    return means.mean(0), variances.mean(0) + means.var(0, unbiased=False)


def _initial(widths: tuple[int, ...], n_members: int) -> Parameters:
    """Draw stacked layers, uniform within ±1/sqrt(fan-in) as `torch.nn.Linear` does."""
    parameters = {}
    for layer, (n_in, n_out) in enumerate(pairwise(widths)):
        for kind, shape in (("weight", (n_in, n_out)), ("bias", (1, n_out))):
            draw = torch.rand((n_members, *shape), dtype=torch.float32)
            draw = (2.0 * draw - 1.0) / math.sqrt(n_in)
            parameters[f"network.{layer}.{kind}"] = draw.requires_grad_()
    return parameters


def _predicted(parameters: Parameters, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return each member's means and variances `[M, N]` of rows `[N, D]`."""
    outputs = perceptron(parameters, "network", rows[None], "relu")
    return outputs[..., 0], softplus(outputs[..., 1]) + MIN_VARIANCE
