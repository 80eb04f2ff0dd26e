"""What a suggestion takes if autograd computes the gradient of a fit.

Run as: PYTHONPATH=. python lab/autograd_time.py
"""

from __future__ import annotations

import time

import numpy as np
import torch

from dre_plugins.engine import fitting, scorers
from dre_plugins.recommend import Recommender, Trial, TrialState
from dre_plugins.space import Float, SearchSpace

SPACE = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(6)})
WRITTEN_OUT = fitting.FitGradient
N_WARM, N_PAIRS = 2, 18


class ByAutograd:
    """Do what `FitGradient` does, by `scorers.score` and autograd."""

    def __init__(self, flat, scorer, features, loss, prepared, weights, quantiles, support):
        self._flat, self._scorer, self._features = flat, scorer, features
        self._loss, self._prepared = loss, prepared
        self._quantiles, self._support = quantiles, support
        self._weights = weights.expand(scorer.n_members, -1)

    def update(self) -> None:
        leaf, values = self._flat.vector.detach().requires_grad_(), self._flat.values
        parts = leaf.split([value.numel() for value in values.values()])
        parameters = {n: p.view(v.shape) for p, (n, v) in zip(parts, values.items(), strict=True)}
        context = None
        if self._support is not None:
            context = scorers.context_vectors(
                *(parameters, self._features, self._quantiles, self._support),
                self._scorer.activation,
            )
        scores = scorers.score(parameters, self._scorer, self._features, context)
        losses = self._loss(scores, self._prepared)
        self._flat.gradient.copy_(torch.autograd.grad((losses * self._weights).sum(), leaf)[0])


def seconds(history: list[Trial], seed: int, gradient: type) -> float:
    """Return the processor time of one suggestion of the ensemble."""
    fitting.FitGradient = gradient
    start = time.process_time()
    (suggestion,) = Recommender(SPACE, seed=seed).suggest(history, index=2 * seed)
    assert suggestion.source == "model"
    return time.process_time() - start


def main() -> None:
    rng = np.random.default_rng(0)
    for n_trials in (20, 100):
        units = rng.random((n_trials, 6))
        values = -((units - 0.3) ** 2).sum(1)
        history = [
            Trial(SPACE.to_configuration(row), TrialState.COMPLETE, value)
            for row, value in zip(units, values.tolist(), strict=True)
        ]
        ratios = []
        for seed in range(N_WARM + N_PAIRS):
            order = [WRITTEN_OUT, ByAutograd] if seed % 2 else [ByAutograd, WRITTEN_OUT]
            taken = {gradient: seconds(history, seed, gradient) for gradient in order}
            ratios.append(taken[ByAutograd] / taken[WRITTEN_OUT])
        low, median, high = np.percentile(ratios[N_WARM:], [25, 50, 75])
        print(f"{n_trials} trials: {median:.2f} times ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
