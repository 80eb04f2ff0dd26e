"""The gradient that is written out, against autograd's."""

import math
from dataclasses import replace

import pytest
import torch

from dre_plugins.engine import ContextSettings, FittingSettings, ScorerSettings, fitting
from dre_plugins.engine.fitting import RankingLists, fit, split_support
from dre_plugins.engine.gradients import FitGradient, FlatParameters
from dre_plugins.engine.losses import LOSSES
from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.scorers import context_vectors, initial_parameters, score

PLAIN = ScorerSettings(n_members=3, hidden=(8, 6), activation="silu", range_limit=None)
SCORERS = {
    "plain": PLAIN,
    "one hidden layer": replace(PLAIN, hidden=(5,)),
    "relu": replace(PLAIN, activation="relu"),
    "centred": replace(PLAIN, centred=True),
    "range": replace(PLAIN, range_limit=2.0, range_slope=0.3),
    "context": replace(PLAIN, context=ContextSettings(hidden=7, size=4)),
    "all": replace(
        PLAIN,
        centred=True,
        range_limit=1.5,
        range_slope=0.5,
        context=ContextSettings(hidden=7, size=4),
    ),
}


def lists_of(n_members: int, generator: torch.Generator) -> RankingLists:
    """Three lists of different lengths and weights, one of them with ties."""
    shape = (n_members, 3, 9)
    values = torch.randn(shape, generator=generator)
    values[:, 1] = values[:, 1].round()
    lengths = torch.tensor([9, 6, 3])
    mask = (torch.arange(9) < lengths[:, None]).expand(shape)
    features = torch.rand((*shape, 4), generator=generator)
    return RankingLists(features, values, mask, torch.tensor([1.0, 0.5, 0.2]))


def autograd(scorer, parameters, lists, loss, prepared, weights, quantiles, support):
    leaves = {name: value.detach().clone().requires_grad_() for name, value in parameters.items()}
    context = None
    if support is not None:
        context = context_vectors(leaves, lists.features, quantiles, support, scorer.activation)
    scores = score(leaves, scorer, lists.features, context)
    (loss(scores, prepared) * weights).sum().backward()
    return {name: value.grad for name, value in leaves.items()}


# Every scorer with the default loss, every loss through all that a scorer may have, and weights
# so large that exponentials of the scores overflow.
CASES = [(kind, "weighted-list-mle", 3.0) for kind in SCORERS if kind != "all"]
CASES += [("all", name, 3.0) for name in LOSSES]
CASES += [("plain", "weighted-list-mle", 30.0)]


@pytest.mark.parametrize(("kind", "name", "scale"), CASES)
@pytest.mark.parametrize("owners", [1, 3])
def test_gradients_are_those_of_autograd(kind, name, scale, owners):
    scorer, loss = SCORERS[kind], LOSSES[name]
    generator = torch.Generator().manual_seed(0)
    lists = lists_of(owners, generator)
    parameters = initial_parameters(scorer, 4, generator)
    parameters = {key: scale * value for key, value in parameters.items()}
    quantiles = support = None
    query = lists.mask
    if scorer.context is not None:
        quantiles = rank_normalised(lists.values, lists.mask)
        support, query = split_support(lists.mask, 3, 0.3, generator)
    prepared = loss.prepare(lists.values, query)
    arguments = (lists.features, loss, prepared, lists.weights, quantiles, support)
    flat = FlatParameters(parameters)
    gradient = FitGradient(flat, scorer, *arguments)
    for _ in range(2):  # what the first call left behind does no harm
        gradient.update()
        expected = autograd(scorer, flat.values, lists, *arguments[1:])
        largest = max(float(gradient.abs().max()) for gradient in expected.values())
        for key, found in flat.gradients.items():
            assert torch.isfinite(found).all()
            torch.testing.assert_close(found, expected[key], rtol=1e-5, atol=1e-5 * largest)
        with torch.no_grad():
            flat.vector += 0.1


# Listwise losses leave some gradients at 0, of which Adam makes steps of a random sign.
class SquaredError:
    """Have the methods of a loss: squared differences of scores and rank-normalised values."""

    def prepare(self, values, mask):
        return rank_normalised(values, mask), mask.float()

    def __call__(self, scores, prepared):
        targets, mask = prepared
        return (mask * (scores - targets).square()).sum(-1)

    def gradient(self, scores, prepared):
        targets, mask = prepared
        return 2.0 * mask * (scores - targets)


@pytest.mark.parametrize("beta2", [0.999, 0.9])
def test_a_fit_is_what_steps_of_autograd_are(beta2, monkeypatch):
    monkeypatch.setattr(fitting, "LOSSES", dict.fromkeys(LOSSES, SquaredError()))
    scorer = SCORERS["context"]
    generator = torch.Generator().manual_seed(1)
    lists = lists_of(1, generator)
    start = initial_parameters(scorer, 4, generator)
    settings = FittingSettings(n_steps=5, learning_rate=0.01, beta2=beta2)
    fitted = fit(start, scorer, settings, lists, torch.Generator().manual_seed(2))

    support, query = split_support(lists.mask, 3, 0.2, torch.Generator().manual_seed(2))
    quantiles = rank_normalised(lists.values, lists.mask)
    loss = SquaredError()
    prepared = loss.prepare(lists.values, query)
    weights = lists.weights / (3 * lists.weights.sum())
    leaves = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimiser = torch.optim.Adam([*leaves.values()], betas=(0.9, beta2))
    for step in range(5):
        optimiser.param_groups[0]["lr"] = 0.005 * (1.0 + math.cos(math.pi * step / 5))
        found = autograd(scorer, leaves, lists, loss, prepared, weights, quantiles, support)
        for name, value in leaves.items():
            value.grad = found[name]
        optimiser.step()
    for name, value in fitted.items():
        torch.testing.assert_close(value, leaves[name].detach(), rtol=1e-3, atol=1e-4)
