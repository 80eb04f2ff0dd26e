"""The processes that the network guesses, compared with scikit-learn's, and their targets."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm, rankdata
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern
from small_universal import blended
from torch_defaults import torch_defaults

from dre_plugins.universal.processes import (
    JITTER,
    MARGIN,
    MIN_VARIANCE,
    Hypotheses,
    PosteriorMeans,
    Processes,
    terms,
    warped,
)
from dre_plugins.universal.targets import both_targets, normal_scores


class Trend(Kernel):
    """The covariance of a sum of terms whose coefficients have these variances."""

    def __init__(self, variances: np.ndarray) -> None:
        self.variances = variances

    def __call__(self, x, y=None, eval_gradient=False):
        rows, columns = (terms(torch.from_numpy(z)[None])[0] for z in (x, x if y is None else y))
        return ((rows * torch.from_numpy(self.variances)) @ columns.T).numpy()

    def diag(self, x):
        return self(x).diagonal()

    def is_stationary(self):
        return False


def draw(n_tasks: int, n: int, d: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    features = rng.uniform(0.01, 0.99, (n_tasks, n, d))
    return torch.from_numpy(features), torch.from_numpy(rng.standard_normal((n_tasks, n)))


def hypotheses(
    n_tasks: int, n_processes: int, d: int, *, warp: float = 0.0, seed: int = 0
) -> Hypotheses:
    rng = np.random.default_rng(seed)
    shape = n_tasks, n_processes
    parts = (
        0.5 * rng.standard_normal((*shape, d)),
        rng.uniform(-6.0, 1.0, (*shape, 2 * d)),
        rng.standard_normal(shape),
        rng.uniform(-6.0, 0.0, shape),
        np.zeros(shape),
        warp * rng.standard_normal((n_tasks, d, 2)),
        np.zeros((n_tasks, 1)),
    )
    return Hypotheses(*map(torch.from_numpy, parts))


def fixed(d: int, lengthscale: float, noise: float) -> Hypotheses:
    """Return one process without a trend whose lengthscales are all the same; logarithms."""
    lengthscales, noises = torch.full((1, 1, d), lengthscale), torch.full((1, 1), noise)
    trends, zero = torch.full((1, 1, 2 * d), -40.0), torch.zeros(1, 1)
    warps = torch.zeros(1, d, 2)
    return Hypotheses(lengthscales, trends, zero, noises, zero, warps, zero)


def kernel(believed: Hypotheses, b: int, h: int) -> Kernel:
    """Return scikit-learn's kernel of one process."""
    local = Matern(believed.lengthscales[b, h].exp().numpy(), nu=2.5)
    local *= ConstantKernel(believed.amplitudes[b, h].exp().item())
    return local + Trend(believed.trends[b, h].exp().numpy())


@pytest.mark.parametrize(("n", "d", "mean_variance"), [(1, 1, 0.3), (7, 3, 4.0), (40, 12, 1e-9)])
def test_scikit_learn_agrees(n: int, d: int, mean_variance: float) -> None:
    of_means = torch.tensor([[mean_variance], [2.0 * mean_variance]]).double()
    believed = replace(hypotheses(2, 3, d), mean_variance=of_means)
    features, targets = draw(2, n, d)
    candidates, _ = draw(2, 25, d, seed=1)
    processes = Processes.conditioned(believed, features, targets)
    means, variances = processes.posterior(candidates)
    for b, h in np.ndindex(2, 3):
        theirs = GaussianProcessRegressor(
            kernel(believed, b, h) + ConstantKernel(of_means[b].item()),
            alpha=believed.noises[b, h].exp().item() + JITTER,
            optimizer=None,
        ).fit(features[b], targets[b])
        mean, deviation = theirs.predict(candidates[b], return_std=True)
        np.testing.assert_allclose(means[b, h], mean, atol=1e-8)
        np.testing.assert_allclose(variances[b, h], deviation**2, atol=1e-8)
        expected = theirs.log_marginal_likelihood_value_
        assert processes.log_likelihood[b, h].item() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("n", "d", "warp"), [(1, 1, 0.0), (7, 3, 0.7), (40, 12, -0.4)])
def test_means_alone_are_those_of_the_posterior(n: int, d: int, warp: float) -> None:
    believed = replace(hypotheses(1, 3, d, warp=warp), mean_variance=torch.ones(1, 1).double())
    processes = Processes.conditioned(believed, *draw(1, n, d))
    candidates = 1.4 * draw(1, 25, d, seed=1)[0].double() - 0.2  # some of them out of range
    means, _ = processes.posterior(candidates)
    np.testing.assert_allclose(PosteriorMeans(processes)(candidates[0]), means[0], atol=1e-9)


def test_the_evidence_is_the_density_of_what_is_observed() -> None:
    features, targets = draw(1, 9, 2)
    believed = hypotheses(1, 1, 2, warp=0.7)
    processes = Processes.conditioned(believed, features, targets)
    inputs = warped(features, believed.warps)[0].numpy()
    covariance = kernel(believed, 0, 0)(inputs)
    covariance += (believed.noises.exp().item() + JITTER) * np.eye(9)
    expected = multivariate_normal.logpdf(targets[0], cov=covariance)
    assert processes.log_likelihood.item() == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("mean_variance", [0.0, 4.0])
@pytest.mark.parametrize(("n", "d"), [(1, 2), (6, 1), (25, 7)])
def test_the_gradient_is_that_of_the_evidence(n: int, d: int, mean_variance: float) -> None:
    believed = hypotheses(2, 3, d, warp=0.5)
    believed.mean_variance[:] = mean_variance
    names = ("lengthscales", "trends", "amplitudes", "noises")
    moved = [getattr(believed, name).requires_grad_() for name in names]
    features, targets = draw(2, n, d)
    features[:, -1] = features[:, 0]  # a configuration that was tried twice
    processes = Processes.conditioned(believed, features, targets)
    expected = torch.autograd.grad(processes.log_likelihood.sum(), moved)
    for ours, theirs in zip(processes.gradient(), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-6)


def test_without_noise_trials_are_known_and_far_from_them_nothing_is() -> None:
    features, targets = draw(1, 15, 2)
    processes = Processes.conditioned(fixed(2, -2.5, -30.0), features, targets)
    means, variances = processes.posterior(features)
    torch.testing.assert_close(means[:, 0], targets, atol=1e-3, rtol=0)
    assert variances.max() < 1e-4 and variances.min() >= MIN_VARIANCE
    processes = Processes.conditioned(fixed(2, -7.0, -30.0), features, targets)
    means, variances = processes.posterior(draw(1, 5, 2, seed=1)[0])
    torch.testing.assert_close(means, torch.zeros_like(means), atol=1e-3, rtol=0)
    torch.testing.assert_close(variances, torch.ones_like(variances), atol=1e-3, rtol=0)


@pytest.mark.parametrize("lengthscale", [-3.5, 6.0])
@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-6])
def test_trials_next_to_each_other_do_no_harm(lengthscale: float, apart: float) -> None:
    features, targets = draw(1, 60, 30)
    features[:, 30:] = features[:, :30] + apart
    processes = Processes.conditioned(fixed(30, lengthscale, -8.0), features, targets)
    means, variances = processes.posterior(features)
    for found in (processes.log_likelihood, *processes.gradient(), means, variances):
        assert torch.isfinite(found).all()
    both = targets[0, :30] + targets[0, 30:]
    if lengthscale < 0:  # each pair is alone
        torch.testing.assert_close(means[0, 0, :30], both / 2, atol=1e-3, rtol=1e-3)


def test_float32_is_computed_as_float64() -> None:
    features, targets = draw(1, 20, 3)
    single = Processes.conditioned(fixed(3, -1.0, -8.0), features.float(), targets.float())
    double = Processes.conditioned(
        fixed(3, -1.0, -8.0).double(), features.float().double(), targets.float().double()
    )
    assert torch.equal(single.log_likelihood, double.log_likelihood)
    assert single.posterior(features.float())[0].dtype == torch.float64


def test_terms_have_mean_0_and_variance_1_and_no_correlation() -> None:
    line = (torch.arange(10_000).double()[None, :, None] + 0.5) / 10_000
    found = terms(line)[0]
    torch.testing.assert_close(found.mean(0), torch.zeros(2).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.T @ found / 10_000, torch.eye(2).double(), atol=1e-6, rtol=0)


def test_a_trend_finds_the_top_of_a_bowl_from_few_trials() -> None:
    features = draw(1, 15, 6)[0]
    targets = -(features - 0.3).square().sum(-1)
    targets = (targets - targets.mean()) / targets.std()
    believed = replace(
        fixed(6, 1.0, -8.0), amplitudes=torch.tensor([[-5.0]]), trends=torch.zeros(1, 1, 12)
    )
    asked = torch.full((1, 2, 6), 0.3)
    asked[0, 1] = 0.9
    top, side = Processes.conditioned(believed, features, targets).posterior(asked)[0][0, 0]
    assert top > targets.max() and side < targets.mean()


# ---- warps


def test_warps_are_monotone_maps_into_0_to_1() -> None:
    line = torch.linspace(0, 1, 501, dtype=torch.float64)[None, :, None].expand(1, -1, 25)
    sides = torch.linspace(-1.5, 1.5, 5, dtype=torch.float64)
    out = warped(line, torch.cartesian_prod(sides, sides)[None])
    assert out.min() >= 0 and out.max() <= 1
    assert (out[:, 1:-1].diff(dim=1) > 0).all() and (out.diff(dim=1) >= 0).all()


def test_a_warp_of_0_changes_nothing_and_any_other_its_own_feature_only() -> None:
    features, _ = draw(1, 30, 3)
    exponents = torch.zeros(1, 3, 2).double()
    torch.testing.assert_close(warped(features, exponents), features)
    exponents[0, 1, 0] = 1.0
    moved = warped(features, exponents) - features
    assert moved[..., 1].abs().min() > 0
    torch.testing.assert_close(moved[..., [0, 2]], torch.zeros(1, 30, 2).double())


def test_warps_have_slopes_at_the_bounds() -> None:
    exponents = torch.full((1, 1, 2), -1.5, dtype=torch.float64, requires_grad=True)
    bounds = torch.tensor([0.0, 1.0], dtype=torch.float64)[None, :, None]
    out = warped(bounds, exponents)
    assert torch.equal(out, warped(bounds.clamp(MARGIN, 1 - MARGIN), exponents))
    (slope,) = torch.autograd.grad(out.sum(), exponents)
    assert torch.isfinite(slope).all() and slope.abs().min() > 0


def test_what_lies_outside_the_range_stays_apart() -> None:
    places = torch.tensor([-0.5, -0.1, 0.0, 0.5, 1.0, 1.1, 2.0], dtype=torch.float64)
    for exponents in (-1.0, 0.0, 1.0):
        found = warped(places[None, :, None], torch.full((1, 1, 2), exponents).double())[0, :, 0]
        assert (found.diff() > 0.05).all()
        assert found[[0, -1]].tolist() == pytest.approx(
            (found[[2, 4]] + torch.tensor([-0.5, 1.0])).tolist()
        )


def test_with_and_without_a_gradient_the_posterior_is_the_same() -> None:
    features, targets = draw(2, 9, 3)
    asked = torch.cat([features[:, :2], draw(2, 5, 3, seed=1)[0]], 1)
    believed = hypotheses(2, 4, 3, warp=0.5)
    conditioned = Processes.conditioned(believed, features, targets)
    parts = (getattr(believed, field.name) for field in fields(believed))
    learnt = Hypotheses(*(part.clone().requires_grad_() for part in parts))
    trained = Processes.conditioned(learnt, features, targets)
    for left, right in zip(conditioned.posterior(asked), trained.posterior(asked), strict=True):
        assert torch.allclose(left, right, atol=1e-9)
        assert not left.requires_grad and right.requires_grad


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("n", [2, 3, 30, 300])
def test_targets_have_mean_0_and_variance_1(n: int) -> None:
    targets = blended(drawn(5, n).exp())
    torch.testing.assert_close(targets.mean(-1), torch.zeros(5).double(), atol=1e-12, rtol=0)
    torch.testing.assert_close(targets.var(-1, correction=0), torch.ones(5).double())


def test_they_are_half_values_and_half_order() -> None:
    values = torch.tensor([3.0, -1.0, 50.0, 0.5], dtype=torch.float64)
    scores = torch.from_numpy(norm.ppf(rankdata(values) / 5))
    by_hand = sum((half - half.mean()) / half.std(correction=0) for half in (values, scores))
    torch.testing.assert_close(blended(values), by_hand / by_hand.std(correction=0))
    # Order may tell apart what values do not.
    targets = both_targets(torch.arange(5.0), torch.zeros(5))[0].values
    assert (targets.diff() > 0).all() and targets.std(correction=0).item() == pytest.approx(1.0)


def test_the_factor_is_that_of_the_slopes_of_targets_by_values() -> None:
    quantiles = torch.from_numpy(norm.ppf((np.arange(400) + 0.5) / 400))
    values = quantiles.mul(0.5).exp()
    blend, plain = both_targets(values, values)
    slopes = torch.gradient(blend.values, spacing=(plain.values,))[0]
    assert blend.log_factor == pytest.approx(slopes.log().sum().item(), abs=0.04 * 400)
    assert both_targets(quantiles, quantiles)[0].log_factor == pytest.approx(0.0, abs=0.02 * 400)


@pytest.mark.parametrize("unit", [1e-9, 3.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, -7.0, 1e4])
def test_units_and_shifts_do_not_matter(unit: float, shift: float) -> None:
    values = drawn(30)
    torch.testing.assert_close(
        blended(unit * (values + shift)), blended(values), atol=1e-9, rtol=1e-9
    )


def test_an_outlier_leaves_the_others_apart() -> None:
    values = torch.cat([torch.linspace(0, 1, 20), torch.tensor([1e6])]).double()
    standardised = (values - values.mean()) / values.std(correction=0)
    assert standardised[:20].diff().max() < 1e-6
    assert blended(values)[:20].diff().min() > 0.05


def test_scores_of_ties_are_those_of_mean_ranks() -> None:
    numbers = drawn(4, 25).mul(2.0).round()
    expected = norm.ppf(rankdata(numbers, axis=1) / 26)
    torch.testing.assert_close(
        normal_scores(numbers), torch.from_numpy(expected), atol=1e-6, rtol=1e-6
    )


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e-30, 1e6])
@pytest.mark.parametrize("n", [1, 3, 7, 60])
def test_values_that_are_all_the_same_say_nothing(value: float, n: int) -> None:
    values = torch.full((2, n), value, dtype=torch.float64)
    assert torch.equal(blended(values), torch.zeros(2, n).double())
    assert torch.equal(blended(values.float()), torch.zeros(2, n))


def test_a_batch_equals_its_tasks_whatever_the_users_default_type_is() -> None:
    values = drawn(4, 20).exp()
    values[2] = 0.1
    expected = blended(values)
    single = torch.stack([blended(row) for row in values])
    torch.testing.assert_close(expected, single, atol=1e-12, rtol=0)
    with torch_defaults():
        found = blended(values)
    assert torch.equal(found, expected)
