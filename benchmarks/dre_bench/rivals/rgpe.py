"""RGPE: a ranking-weighted ensemble of Gaussian processes, one for each past task.

Feurer, Letham and Bakshy, "Scalable meta-learning for Bayesian optimization using ranking-weighted
Gaussian process ensembles" (AutoML workshop, ICML 2018): a model's weight is the share of
posterior draws in which it misranks the fewest pairs of observations; the new task's own model is
judged by leaving one out. Models whose median loss is above the 95 % quantile of its loss are
dropped, against the dilution of weights.

What differs: past tasks are capped at a number of evaluations; an observation that is left out is
ranked among the *values* of the others, not among draws at them; models that tie share a draw.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from dre_bench.rivals.past_models import PastModels, TransferMethod, gaussian_process, marginals
from dre_bench.rivals.protocol import PastTasks, log_expected_improvement, standardised
from dre_plugins.checks import require

# Fewer observations say nothing about who ranks them well: all models count alike.
MIN_OBSERVED = 3
DROP_QUANTILE = 0.95


class RGPE(TransferMethod):
    """Choose the row of the largest expected improvement of a ranking-weighted ensemble.

    Args:
        past: As for `TransferMethod`.
        n_draws: Posterior draws that decide the weights.
        options: Other arguments of `TransferMethod`.

    Raises:
        ValueError: If there is no past task, their columns differ, or an argument is invalid.
    """

    def __init__(
        self, past: PastTasks | PastModels, *, n_draws: int = 256, **options: Any
    ) -> None:
        require(n_draws >= 1, "n_draws", n_draws, "at least 1")
        super().__init__(past, **options)
        self.n_draws = n_draws

    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        self._past.check(pending)
        targets = standardised(values)
        target_model = gaussian_process(observed, targets)
        weights = self._weights(target_model, observed, targets)[:, None]
        means, variances = self._past.marginals(pending)
        own_mean, own_variance = marginals(target_model, pending)
        mean = (weights * torch.cat([means, own_mean[None]])).sum(0)
        variance = (weights.square() * torch.cat([variances, own_variance[None]])).sum(0)
        return log_expected_improvement(mean, variance.sqrt(), targets.max())

    def _weights(self, target_model: SingleTaskGP, observed: Tensor, targets: Tensor) -> Tensor:
        """Return the weight of each past task's model and of the own one `[T + 1]`."""
        n_models = self._past.n_tasks + 1
        if len(targets) < MIN_OBSERVED:
            return torch.full((n_models,), 1.0 / n_models, dtype=torch.float64)
        mean, variance = leave_one_out(target_model, observed, targets)
        noise = torch.randn((self.n_draws, len(mean)), dtype=torch.float64)
        own_losses = misranked(mean + variance.sqrt() * noise, targets, targets)
        draws = self._past.draws(observed, self.n_draws)  # [S, T, N]
        losses = torch.stack([*(misranked(draw, draw, targets) for draw in draws.unbind(1))])
        losses = torch.cat([losses, own_losses[None]])  # [T + 1, S]
        return shares(losses)


def leave_one_out(model: SingleTaskGP, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a model says of each observation from the others: means, variances `[N]`.

    In closed form, with the hyperparameters of all (Rasmussen and Williams, 2006, section 5.4.2).
    """
    with torch.no_grad():
        prior = model.likelihood(model.forward(X))
        inverse = torch.linalg.inv(prior.covariance_matrix)
        variance = 1.0 / inverse.diagonal()
        mean = y - variance * (inverse @ (y - prior.mean))
        return mean, (variance - model.likelihood.noise).clamp_min(1e-9)


def misranked(first: Tensor, second: Tensor, values: Tensor) -> Tensor:
    """Count the pairs of observations that draws put in another order than their values do.

    Args:
        first: Draws of the first of a pair `[S, N]`.
        second: What they are compared with `[S, N]` or `[N]`.
        values: Observed values `[N]`.

    Returns:
        Counts `[S]`.
    """
    drawn = first[..., :, None] < second[..., None, :]
    return (drawn ^ (values[:, None] < values)).sum((-2, -1)).double()


def shares(losses: Tensor) -> Tensor:
    """Return the share of draws in which each model loses least `[T + 1]`.

    Args:
        losses: Losses by draw `[T + 1, S]`; the last model is the new task's own.
    """
    limit = losses[-1].quantile(DROP_QUANTILE)
    kept = losses.median(-1).values <= limit
    kept[-1] = True
    losses = torch.where(kept[:, None], losses, torch.inf)
    is_best = (losses == losses.min(0).values).double()
    return (is_best / is_best.sum(0)).mean(-1)
