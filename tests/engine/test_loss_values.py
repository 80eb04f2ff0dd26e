"""Values and gradients of each loss: by hand, at extreme scores, with ties, in float32.

Expected values are written as the arithmetic that gives them.
"""

import math

import pytest
import torch
from losses_drawn import ALL, losses_of, normal, ties, with_gradient
from torch import Tensor

from dre_plugins.engine.losses import LOSSES, Loss
from dre_plugins.engine.ranks import rank_normalised

LIST_MLE, WEIGHTED = LOSSES["list-mle"], LOSSES["weighted-list-mle"]
LN2, LN3, LN4 = math.log(2.0), math.log(3.0), math.log(4.0)


def exp(*scores: float) -> float:
    """Return the sum of exponentials."""
    return sum(math.exp(score) for score in scores)


# ----------------------------------------------------------------------------------- value by hand


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("list-mle", (1, 1, 1)),
        ("weighted-list-mle", (1 / LN2, 1 / LN3, 1 / LN4)),
        ("weighted-list-mle-inverse-linear", (1, 1 / 2, 1 / 3)),
        ("weighted-list-mle-position-attention", (3 / 6, 2 / 6, 1 / 6)),
    ],
)
def test_value_of_position_weights(name: str, weights: tuple[float, ...]) -> None:
    # The fourth entry is padding: the position-attention weights are those of 3 entries.
    scores, values = torch.tensor([2.0, 0.0, 1.0, 7.0]), torch.tensor([5.0, 9.0, 1.0, 7.0])
    mask = torch.tensor([True, True, True, False])
    loss = losses_of(LOSSES[name], scores, values, mask)
    expected = weights[0] * (math.log(exp(0, 2, 1)) - 0) + weights[1] * (math.log(exp(2, 1)) - 2)
    assert float(loss) == pytest.approx(expected)


def test_rank_normalised_shares_ranks_among_ties() -> None:
    values = torch.tensor([5.0, 1.0, 5.0, 9.0, 3.0])
    mask = torch.tensor([True, True, True, True, False])
    # Below minus above, of 4: 5 has 1 below and 1 above, 1 has 0 and 3, 9 has 3 and 0.
    assert rank_normalised(values, mask).tolist() == [0.0, -0.75, 0.0, 0.75, 0.0]


def published_list_mle(scores: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    """ListMLE as published code computes it: the logarithm of a cumulative sum of exponentials."""
    best_first = scores.gather(-1, values.argsort(-1, descending=True))
    tails = [best_first[..., i:].exp().sum(-1) for i in range(scores.shape[-1])]
    return (weights * (torch.stack(tails, -1).log() - best_first)).sum(-1)


@pytest.mark.parametrize("length", [1, 2, 5, 100])
def test_list_mle_equals_the_published_formula_at_small_spreads(length: int) -> None:
    scores, values = normal(7, length, dtype=torch.float64), normal(7, length, seed=1)
    equal = torch.ones(length, dtype=torch.float64)
    inverse_log = 1.0 / torch.arange(2.0, length + 2.0, dtype=torch.float64).log()
    for loss, weights in ((LIST_MLE, equal), (WEIGHTED, inverse_log)):
        expected = published_list_mle(scores, values, weights)
        torch.testing.assert_close(losses_of(loss, scores, values), expected, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(
            losses_of(loss, scores.float(), values), expected.float(), rtol=1e-6, atol=1e-6
        )


# ---------------------------------------------------------------------------------- extreme scores


@pytest.mark.parametrize("gap", [100.0, 1e4])
def test_extreme_scores_of_list_mle_are_exact(gap: float) -> None:
    values = torch.arange(4.0)
    per_list, gradient = with_gradient(LIST_MLE, gap * values, values)
    assert float(per_list) == pytest.approx(0.0, abs=1e-12)
    assert gradient.tolist() == pytest.approx([0.0] * 4, abs=1e-12)
    # The wrong way round, the log-sum-exp of a tail is its last, worst entry.
    per_list, gradient = with_gradient(LIST_MLE, -gap * values, values)
    assert float(per_list) == gap * (3 + 2 + 1)
    assert gradient.tolist() == [3.0, -1.0, -1.0, -1.0]


def pairwise_list_mle(scores: Tensor, values: Tensor) -> Tensor:
    """Breslow's partial likelihood from its definition: a denominator per item, no sorting."""
    at_risk = values[..., None, :] <= values[..., :, None]
    tails = scores[..., None, :].masked_fill(~at_risk, -1e300).logsumexp(-1)
    return (tails - scores).sum(-1)


@pytest.mark.parametrize("spread", [1.0, 60.0, 69.0, 72.0, 300.0, 1e4])
@pytest.mark.parametrize("levels", [3, 1000])
def test_list_mle_and_its_gradient_agree_with_autograd(spread: float, levels: int) -> None:
    # 71 is where float32 changes from cumulative sums to cumulative log-sum-exps.
    raw = normal(5, 40)
    scores = (raw - raw.min()) / (raw.max() - raw.min()) * spread
    values = ties(5, 40, levels=levels)
    reference = scores.double().requires_grad_()
    expected = pairwise_list_mle(reference, values)
    expected.sum().backward()
    per_list, gradient = with_gradient(LIST_MLE, scores, values)
    assert reference.grad is not None
    torch.testing.assert_close(per_list, expected.float(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, reference.grad.float(), rtol=1e-4, atol=1e-5)


@ALL
def test_gradient_passes_gradcheck(loss: Loss) -> None:
    values, mask = ties(3, 6), torch.ones(3, 6, dtype=torch.bool)
    mask[1, 4:] = False
    prepared = loss.prepare(values, mask, dtype=torch.float64)
    for scale in (1.0, 30.0):
        scores = (scale * normal(3, 6, dtype=torch.float64)).requires_grad_()
        assert torch.autograd.gradcheck(lambda s: loss(s, prepared), (scores,))


@ALL
def test_gradient_passes_gradcheck_beyond_the_spread_of_float64(loss: Loss) -> None:
    scores = (normal(2, 6, dtype=torch.float64) + torch.tensor([0, 1000.0] * 3)).requires_grad_()
    prepared = loss.prepare(ties(2, 6), dtype=torch.float64)
    # Losses of about 3000: a difference quotient is exact to 3000 * 2^-52 / 1e-6.
    assert torch.autograd.gradcheck(lambda s: loss(s, prepared), (scores,), atol=1e-4)


# -------------------------------------------------------------------------------------------- ties


def test_tied_items_share_the_weights_of_their_positions() -> None:
    # Positions 2 and 3 are taken by the tie, position 1 by the value 9.
    scores, values = torch.tensor([2.0, 0.0, 1.0]), torch.tensor([5.0, 9.0, 5.0])
    mean = (1 / LN3 + 1 / LN4) / 2
    expected = 1 / LN2 * (math.log(exp(2, 0, 1)) - 0)
    expected += mean * (2 * math.log(exp(2, 1)) - 2 - 1)
    assert float(losses_of(WEIGHTED, scores, values)) == pytest.approx(expected)


@ALL
def test_fully_tied_list_wants_equal_scores(loss: Loss) -> None:
    values = torch.full((5,), 3.0)
    equal, gradient = with_gradient(loss, torch.zeros(5), values)
    assert gradient.abs().max() < 1e-6
    unequal, _ = with_gradient(loss, torch.linspace(-1.0, 1.0, 5), values)
    assert unequal > equal


# --------------------------------------------------------------------------------------- precision


@ALL
def test_float32_agrees_with_float64(loss: Loss) -> None:
    scores, values = 2.0 * normal(5, 100), ties(5, 100, levels=60)
    single, gradient = with_gradient(loss, scores, values)
    double, expected = with_gradient(loss, scores.double(), values)
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    torch.testing.assert_close(single, double.float(), rtol=2e-6, atol=1e-6)
    torch.testing.assert_close(gradient, expected.float(), rtol=1e-5, atol=1e-6)
