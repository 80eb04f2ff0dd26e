"""The expected improvement of a mixture, and its gradient in closed form."""

import numpy as np
import pytest
import torch

from dre_plugins.engine.acquisition import log_expected_improvement
from dre_plugins.recommend.proposers.improvement import MixtureImprovement
from dre_plugins.recommend.universal_prior import network_for
from dre_plugins.space import Float, SearchSpace

SPACE = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(4)})


@pytest.mark.parametrize("n_trials", [3, 40])
# In, at and far beyond the values of the trials, as targets of mean 0 and variance 1.
@pytest.mark.parametrize("best", [-1.0, 2.0, 60.0])
def test_it_is_what_autograd_says(n_trials: int, best: float) -> None:
    rng = np.random.default_rng(n_trials)
    trials = torch.from_numpy(rng.random((n_trials, 4)))
    values = -(trials - 0.4).square().sum(1)
    targets = ((values - values.mean()) / values.std())[None]
    processes, log_weights = network_for(SPACE)(trials[None], targets, 4.0)
    processes, log_weights = processes.likely(log_weights)
    candidates = rng.random((6, 4))
    candidates[0] = trials[0]
    candidates[1, :2] = 0.0, 1.0
    candidates[2, :2] = -0.3, 1.2  # of ranges that were narrowed

    features = torch.from_numpy(candidates).requires_grad_()
    means, variances = processes.posterior(features[None])
    of_processes = log_expected_improvement(means[0], variances[0].sqrt(), best)
    expected = torch.logsumexp(log_weights + of_processes, 0)
    (gradient,) = torch.autograd.grad(expected.sum(), features)

    logs, derivatives = MixtureImprovement(processes, log_weights, best)(candidates)
    np.testing.assert_allclose(logs, expected.detach().numpy(), rtol=1e-6)
    size = float(gradient.abs().max())
    np.testing.assert_allclose(derivatives, gradient.numpy(), atol=1e-6 * size)
