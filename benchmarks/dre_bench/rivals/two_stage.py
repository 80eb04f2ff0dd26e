"""TST and TAF: past tasks count by how alike they rank what was observed.

TST-R (Wistuba, Schilling and Schmidt-Thieme, "Two-stage transfer surrogate model for automatic
hyperparameter optimization", ECML 2016) averages the *means* of all models, with the variance of
the new task's own. TAF-R (the same authors, "Scalable Gaussian process-based transfer surrogates
for hyperparameter optimization", Machine Learning 2018) averages *acquisitions*: the expected
improvement of the own model, and what each past model predicts to be gained over all observed
rows. Weights are Epanechnikov's kernel of the distance between rankings.

What differs: the distance is the share of misranked pairs, and the default bandwidth of 0.5 gives
a random order no weight; Gaussian processes are BoTorch's, past tasks are capped.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dre_bench.rivals.past_models import PastModels, TransferMethod, gaussian_process, marginals
from dre_bench.rivals.protocol import PastTasks, log_expected_improvement, standardised
from dre_bench.rivals.rgpe import misranked
from dre_plugins.checks import require


@dataclass(frozen=True)
class _Predictions:
    """Hold what all models say.

    Attributes:
        weights: Weights of the past models and the own one `[T + 1, 1]`.
        seen: Means of past models at observed rows `[T, N]`.
        means: Means of past models at pending rows `[T, C]`.
        mean: Means of the own model at pending rows `[C]`.
        deviation: Its standard deviations `[C]`.
        best: The best value so far.
    """

    weights: Tensor
    seen: Tensor
    means: Tensor
    mean: Tensor
    deviation: Tensor
    best: Tensor

    def weighted(self, past: Tensor, target: Tensor) -> Tensor:
        """Return the weighted mean `[C]` of past models `[T, C]` and the own one `[C]`."""
        return (self.weights * torch.cat([past, target[None]])).sum(0) / self.weights.sum()


class _TwoStage(TransferMethod):
    """Weigh the models of past tasks by how alike they rank what was observed.

    Args:
        past: As for `TransferMethod`.
        bandwidth: Share of misranked pairs from which on a past task has no weight.
        options: Other arguments of `TransferMethod`.

    Raises:
        ValueError: If there is no past task, their columns differ, or an argument is invalid.
    """

    def __init__(
        self, past: PastTasks | PastModels, *, bandwidth: float = 0.5, **options: Any
    ) -> None:
        require(bandwidth > 0, "bandwidth", bandwidth, "positive")
        super().__init__(past, **options)
        self.bandwidth = bandwidth

    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        self._past.check(pending)
        targets = standardised(values)
        target_model = gaussian_process(observed, targets)
        # What past models say of observed rows decides their weights, and their incumbents.
        seen, _ = self._past.marginals(observed)
        means, _ = self._past.marginals(pending)
        n_pairs = max(len(targets) * (len(targets) - 1), 1)
        distances = misranked(seen, seen, targets) / n_pairs
        weights = epanechnikov(torch.cat([distances, torch.zeros(1)]) / self.bandwidth)
        mean, variance = marginals(target_model, pending)
        return self._combined(
            _Predictions(weights[:, None], seen, means, mean, variance.sqrt(), targets.max())
        )

    @abstractmethod
    def _combined(self, predictions: _Predictions) -> Tensor:
        """Return the acquisition value of each pending row `[C]`."""


class TST(_TwoStage):
    """Choose by the expected improvement over a weighted mean of all models (TST-R)."""

    def _combined(self, predictions: _Predictions) -> Tensor:
        return log_expected_improvement(
            predictions.weighted(predictions.means, predictions.mean),
            predictions.deviation,
            predictions.best,
        )


class TAF(_TwoStage):
    """Choose by a weighted mean of all models' improvements (TAF-R)."""

    def _combined(self, predictions: _Predictions) -> Tensor:
        gains = (predictions.means - predictions.seen.max(-1, keepdim=True).values).clamp_min(0.0)
        expected = log_expected_improvement(
            predictions.mean, predictions.deviation, predictions.best
        ).exp()
        return predictions.weighted(gains, expected)


def epanechnikov(distances: Tensor) -> Tensor:
    """Return the kernel 3/4 (1 - t²) of distances t, 0 from 1 on."""
    return 0.75 * (1.0 - distances.square()).clamp_min(0.0)
