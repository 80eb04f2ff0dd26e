import math
from dataclasses import fields
from itertools import pairwise

import pytest
import torch
from small_universal import blended, untrained

from dre_plugins.universal import network
from dre_plugins.universal.network import UniversalPrior, UniversalSettings
from dre_plugins.universal.processes import Hypotheses

SMALL = UniversalSettings(n_processes=3, width=8, n_refinements=2)


def prior_of(settings: UniversalSettings = SMALL, seed: int = 0) -> UniversalPrior:
    return untrained(settings, seed).double().requires_grad_(False)


def draw(n_tasks: int, n: int, d: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.rand(n_tasks, n, d, generator=generator, dtype=torch.float64)
    values = torch.sin(5 * features[..., 0]) + features[..., -1]
    return features, blended(values)


def parts(hypotheses: Hypotheses) -> list[torch.Tensor]:
    return [getattr(hypotheses, field.name) for field in fields(hypotheses)[:6]]


def test_the_order_of_features_and_of_trials_does_not_matter() -> None:
    features, targets = draw(2, 15, 6)
    candidates, _ = draw(2, 9, 6, seed=1)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    trials = torch.randperm(15, generator=torch.Generator().manual_seed(0))
    prior = prior_of()
    ours, weights = prior(features, targets)
    theirs, same = prior(features[:, trials][..., order], targets[:, trials])
    assert ours.hypotheses.lengthscales.std(-1).min() > 1e-3
    torch.testing.assert_close(
        ours.hypotheses.lengthscales[..., order], theirs.hypotheses.lengthscales
    )
    torch.testing.assert_close(ours.hypotheses.warps[:, order], theirs.hypotheses.warps)
    torch.testing.assert_close(weights, same)
    found = zip(ours.posterior(candidates), theirs.posterior(candidates[..., order]), strict=True)
    for left, right in found:
        torch.testing.assert_close(left, right)


def test_a_batch_equals_its_tasks() -> None:
    features, targets = draw(3, 10, 4)
    prior = prior_of()
    whole, weights = prior(features, targets)
    for b in range(3):
        single, same = prior(features[b : b + 1], targets[b : b + 1])
        torch.testing.assert_close(weights[b : b + 1], same)
        for together, separate in zip(
            parts(whole.hypotheses), parts(single.hypotheses), strict=True
        ):
            torch.testing.assert_close(together[b : b + 1], separate)


@pytest.mark.parametrize("n", [1, 2, 17, 128])
@pytest.mark.parametrize("d", [1, 2, 13, 60])
def test_any_number_of_trials_and_features_will_do(n: int, d: int) -> None:
    features, targets = draw(2, n, d)
    features[1] = features[1].round()
    features[1, -1] = features[1, 0]
    processes, weights = prior_of()(features, targets)
    assert processes.hypotheses.lengthscales.shape == (2, 3, d)
    means, variances = processes.posterior(features)
    for found in (*parts(processes.hypotheses), weights, means, variances):
        assert torch.isfinite(found).all()
    torch.testing.assert_close(weights.exp().sum(-1), torch.ones(2).double())


def test_float32_is_about_float64() -> None:
    features, targets = draw(2, 30, 5)
    double, weights = prior_of()(features, targets)
    single, rough = prior_of().float()(features.float(), targets.float())
    assert rough.dtype == torch.float64
    torch.testing.assert_close(rough, weights, atol=1e-3, rtol=1e-3)
    for left, right in zip(double.posterior(features), single.posterior(features), strict=True):
        torch.testing.assert_close(left, right, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("d", [1, 20])
def test_before_training_it_guesses_what_is_documented(d: int) -> None:
    prior = untrained(UniversalSettings(n_refinements=0), scale=0.0)
    features, targets = draw(4, 20, d)
    hypotheses = prior(features.float(), targets.float())[0].hypotheses
    middle = network.LENGTHSCALE + network.BY_DIMENSION * math.log(d)
    spread = torch.linspace(-network.SPREAD, network.SPREAD, 8)[:, None].expand(-1, d)
    small, large = torch.linspace(-network.TREND_SPREAD, network.TREND_SPREAD, 8).view(2, 4)
    trends = network.TREND - math.log(d) + torch.stack([small, large], 1).flatten()
    expected = (
        middle + spread,
        trends[:, None].expand(-1, 2 * d),
        torch.zeros(8),
        torch.full((8,), network.NOISE),
        torch.zeros(8),
        torch.zeros(d, 2),
    )
    for found, middle_value in zip(parts(hypotheses), expected, strict=True):
        assert (found - middle_value).abs().max() <= 1e-6
    assert math.exp(2 * network.SPREAD) == pytest.approx(20, abs=0.1)


def test_weights_follow_the_evidence() -> None:
    features, targets = draw(2, 20, 3)
    prior = untrained(SMALL, scale=0.0).double()
    processes, weights = prior(features, targets)
    share = torch.sigmoid(prior.trust)
    torch.testing.assert_close(weights, torch.log_softmax(share * processes.log_likelihood, -1))
    assert 0 < share < 1


def test_refinement_follows_the_gradient() -> None:
    features, targets = draw(4, 30, 3)
    likelihoods = [
        untrained(UniversalSettings(4, 8, rounds), scale=0.0)
        .double()(features, targets)[0]
        .log_likelihood
        for rounds in range(4)
    ]
    for before, after in pairwise(likelihoods):
        assert after.mean() > before.mean()


def test_guesses_stay_within_limits() -> None:
    features, targets = draw(3, 20, 5)
    prior = prior_of()
    for weight in prior.parameters():
        weight.mul_(20.0)
    hypotheses = prior(features, targets)[0].hypotheses
    for found, (low, high) in (
        (hypotheses.lengthscales, network.LENGTHSCALES),
        (hypotheses.trends, network.TRENDS),
        (hypotheses.amplitudes, network.AMPLITUDES),
        (hypotheses.noises, network.NOISES),
        (hypotheses.warps, (-network.WARP, network.WARP)),
    ):
        assert found.min() >= low and found.max() <= high
        assert ((found == low) | (found == high)).any()


@pytest.mark.parametrize(
    ("n", "has_trend"), [(network.TREND_TRIALS - 1, False), (network.TREND_TRIALS, True)]
)
def test_limited_amplitudes_are_at_most_1_and_few_trials_have_no_trend(n, has_trend) -> None:
    features, targets = draw(3, n, 5)
    prior = prior_of()
    free, limited = (
        prior(features, targets, is_limited=is_limited)[0].hypotheses
        for is_limited in (False, True)
    )
    assert free.amplitudes.max() > 0.0 >= limited.amplitudes.max()
    assert free.trends.min() > network.TRENDS[0]
    assert bool(limited.trends.max() > network.TRENDS[0]) is has_trend


def test_an_untried_value_may_matter_as_much_as_any_tried_one() -> None:
    features, targets = draw(2, 12, 8)
    features[..., 1:3] = torch.eye(2).double()[torch.arange(12) % 2]  # two of four values
    features[..., 3:5] = 0.0
    hypotheses = prior_of()(features, targets, categories=[slice(1, 5), slice(5, 7)])[0].hypotheses
    plain = prior_of()(features, targets)[0].hypotheses
    of_trends, expected = (
        hypotheses.trends.unflatten(-1, (2, 8)),
        plain.trends.unflatten(-1, (2, 8)),
    )
    for untried in (3, 4):
        assert torch.equal(
            hypotheses.lengthscales[..., untried], plain.lengthscales[..., 1:3].amin(-1)
        )
        assert torch.equal(of_trends[..., untried], expected[..., 1:3].amax(-1))
    others = [0, 1, 2, 5, 6, 7]
    assert torch.equal(hypotheses.lengthscales[..., others], plain.lengthscales[..., others])
    assert torch.equal(of_trends[..., others], expected[..., others])
    assert (hypotheses.lengthscales[..., 3] < plain.lengthscales[..., 3]).any()


def test_all_weights_learn() -> None:
    features, targets = draw(3, 20, 5)
    prior = prior_of().requires_grad_(True)
    processes, weights = prior(features, targets)
    means, variances = processes.posterior(draw(3, 7, 5, seed=1)[0])
    (weights.exp() * (means.square() + variances).mean(-1)).sum().backward()
    for name, weight in prior.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name


def test_the_users_random_numbers_stay() -> None:
    state = torch.get_rng_state()
    UniversalPrior(SMALL)
    assert torch.equal(torch.get_rng_state(), state)
