"""The Gaussian process: its gradient, BoTorch's opinion of it, and lists that say little."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from dre_plugins.engine.acquisition import log_expected_improvement
from dre_plugins.recommend.gaussian_process import (
    LENGTHSCALE_PRIOR,
    NOISE_PRIOR,
    GaussianProcess,
    _loss,
)


def data(n: int, d: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    features = rng.random((n, d))
    values = np.sin(5.0 * features[:, 0]) + features[:, -1] ** 2 + 0.05 * rng.normal(size=n)
    return torch.from_numpy(features), torch.from_numpy((values - values.mean()) / values.std())


def prior_of(n_features: int) -> torch.Tensor:
    mean, deviation = LENGTHSCALE_PRIOR
    means = [mean + 0.5 * math.log(n_features)] * n_features + [NOISE_PRIOR[0]]
    return torch.tensor([means, [deviation] * n_features + [NOISE_PRIOR[1]]], dtype=torch.float64)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (40, 8)])
def test_the_gradient_is_that_of_the_loss(n: int, d: int) -> None:
    features, targets = data(max(n, 2), d)
    features, targets = features[:n], targets[:n]
    point = torch.randn(d + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    _, gradient = _loss(features, targets, point, prior_of(d))
    step = 1e-6
    for place in range(d + 1):
        moved = torch.zeros(d + 1, dtype=torch.float64)
        moved[place] = step
        above, below = (
            _loss(features, targets, point + sign * moved, prior_of(d))[0] for sign in (1, -1)
        )
        assert float(above - below) / (2 * step) == pytest.approx(float(gradient[place]), abs=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_botorch_agrees() -> None:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
    from gpytorch.mlls import ExactMarginalLogLikelihood

    features, targets = data(30, 3)
    theirs = SingleTaskGP(
        features,
        targets[:, None],
        covar_module=get_covar_module_with_dim_scaled_prior(ard_num_dims=3, use_rbf_kernel=False),
        outcome_transform=None,
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(theirs.likelihood, theirs))
    ours = GaussianProcess.fit(features, targets)
    candidates = torch.rand(
        200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    mean, deviation = ours.posterior(candidates)
    with torch.no_grad():
        expected = theirs.posterior(candidates)
    assert torch.corrcoef(torch.stack([mean, expected.mean[:, 0]]))[0, 1] > 0.99
    assert torch.corrcoef(torch.stack([deviation, expected.variance[:, 0].sqrt()]))[0, 1] > 0.95


def test_it_knows_what_it_observed_and_doubts_what_is_far() -> None:
    features, targets = data(20, 2)
    process = GaussianProcess.fit(features, targets)
    mean, deviation = process.posterior(features)
    assert (mean - targets).abs().max() < 0.3
    far, doubt = process.posterior(features + 50.0)
    assert doubt.min() > 2.0 * deviation.max() and far.abs().max() < 0.5


def test_a_feature_without_influence_gets_a_long_lengthscale() -> None:
    process = GaussianProcess.fit(*data(40, 3))
    first, irrelevant, _ = process.lengthscales.tolist()
    assert irrelevant > 3.0 * first


@pytest.mark.parametrize("n", [1, 2, 12])
def test_equal_values_say_nothing(n: int) -> None:
    features, _ = data(max(n, 2), 2)
    process = GaussianProcess.fit(features[:n], torch.zeros(n))
    mean, deviation = process.posterior(features)
    assert torch.equal(mean, torch.zeros_like(mean)) and torch.isfinite(deviation).all()


def test_repeated_configurations_are_noise() -> None:
    features, targets = data(10, 2)
    twice = GaussianProcess.fit(features.repeat(2, 1), torch.cat([targets, -targets]))
    assert twice.noise > 0.3
    assert torch.isfinite(twice.posterior(features)[0]).all()


def test_conditioning_keeps_the_scales() -> None:
    features, targets = data(30, 2)
    whole = GaussianProcess.fit(features, targets)
    part = whole.conditioned(features[:10], targets[:10])
    again = part.conditioned(features, targets)
    for one, other in zip(whole.posterior(features), again.posterior(features), strict=True):
        assert torch.allclose(one, other)
    assert part.posterior(features)[1].mean() > whole.posterior(features)[1].mean()


def test_the_improvement_is_that_of_its_definition() -> None:
    u = torch.linspace(-6.0, 5.0, 221, dtype=torch.float64)
    ours = log_expected_improvement(3.0 + 2.0 * u, torch.full_like(u, 2.0), 3.0)
    expected = np.log(2.0 * (norm.pdf(u) + u.numpy() * norm.cdf(u)))
    assert np.allclose(ours, expected, rtol=1e-9)


def test_far_from_all_that_improves_candidates_still_differ() -> None:
    u = -torch.logspace(1.5, 8, 200, dtype=torch.float64)
    ours = log_expected_improvement(u, torch.ones_like(u), 0.0)
    # φ(u) / u², but for a share of 3 / u².
    limit = -0.5 * u.square() - 0.5 * math.log(2.0 * math.pi) - 2.0 * (-u).log()
    assert torch.allclose(ours, limit, atol=4e-3, rtol=1e-12)
    assert (torch.diff(ours) < 0).all()
