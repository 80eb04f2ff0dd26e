"""Each loss: by hand, at extreme scores, with ties, in float32; masks, shapes, invariances.

Expected values are written as the arithmetic that gives them; the grid is that of google/rax.
"""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from dre_plugins.engine.losses import LOSSES, Loss
from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.settings import LOSS_NAMES, FittingSettings

ALL = pytest.mark.parametrize("loss", LOSSES.values(), ids=[*LOSSES])


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ties(*shape: int, levels: int = 4, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, levels, shape, generator=generator).float()


def losses_of(loss: Loss, scores: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the losses per list, with weights of the precision of the scores."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    return loss(scores, loss.prepare(values, mask, dtype))


def with_gradient(
    loss: Loss, scores: Tensor, values: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the losses per list and the gradient of their sum."""
    scores = scores.detach().clone().requires_grad_()
    per_list = losses_of(loss, scores, values, mask)
    per_list.sum().backward()
    assert scores.grad is not None
    return per_list.detach(), scores.grad


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


# ------------------------------------------------------------------------------------------- masks


@ALL
@pytest.mark.parametrize("kept", [[0, 1, 2, 3, 4, 5], [1, 4, 5, 8]])
def test_masked_entries_are_as_if_they_were_not_there(loss: Loss, kept: list[int]) -> None:
    scores, values = 3.0 * normal(4, 9), ties(4, 9)
    mask = torch.zeros(4, 9, dtype=torch.bool)
    mask[:, kept] = True
    scores[~mask], values[~mask] = math.nan, math.inf
    values[:2][~mask[:2]] = math.nan
    whole, gradient = with_gradient(loss, scores, values, mask)
    short, expected = with_gradient(loss, scores[:, kept], values[:, kept])
    torch.testing.assert_close(whole, short)
    torch.testing.assert_close(gradient[:, kept], expected)
    assert not gradient[~mask].any()


@ALL
def test_lists_of_at_most_one_real_entry_give_zero(loss: Loss) -> None:
    masked = torch.tensor([[1.0, -math.inf, math.nan]] * 2)
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    for found in with_gradient(loss, masked, torch.arange(3.0), nothing):
        assert torch.equal(found, torch.zeros_like(found))
    per_list, gradient = with_gradient(loss, torch.tensor([[0.7], [-0.2]]), torch.zeros(2, 1))
    assert per_list.tolist() == gradient.flatten().tolist() == [0.0, 0.0]
    for shape in ((3, 0), (0, 3), (0, 0)):
        scores = torch.zeros(shape, requires_grad=True)
        result = losses_of(loss, scores, torch.zeros(shape))
        result.sum().backward()
        assert result.tolist() == [0.0] * shape[0]


# ------------------------------------------------------------------------------------------ shapes


@ALL
def test_arbitrary_batch_axes(loss: Loss) -> None:
    scores, values = normal(2, 3, 4, 6), ties(2, 3, 4, 6)
    mask = ties(2, 3, 4, 6, seed=2) > 0
    batched = losses_of(loss, scores, values, mask)
    for index in ((0, 0, 0), (1, 2, 3), (0, 2, 1)):
        single = losses_of(loss, scores[index], values[index], mask[index])
        assert single.shape == ()
        torch.testing.assert_close(batched[index], single)


@ALL
def test_values_broadcast_over_members(loss: Loss) -> None:
    scores, values = normal(4, 2, 7), ties(2, 7)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 3:] = False
    expected, gradient = with_gradient(loss, scores, values.expand(4, 2, 7), mask.expand(4, 2, 7))
    for broadcast in (values, values[None]):
        actual = with_gradient(loss, scores, broadcast, mask)
        torch.testing.assert_close(actual, (expected, gradient))


# ------------------------------------------------------------------------------------- invariances


VALUE_LISTS = st.lists(st.integers(-5, 5), min_size=1, max_size=12)


@given(VALUE_LISTS, st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_order_of_entries_does_not_matter(drawn: list[int], random: object) -> None:
    values = torch.tensor(drawn, dtype=torch.float64)
    n = len(drawn)
    scores = 2.0 * normal(n, seed=n, dtype=torch.float64)
    order = list(range(n))
    random.shuffle(order)  # type: ignore[attr-defined]
    for loss in LOSSES.values():
        straight, gradient = with_gradient(loss, scores, values)
        shuffled, permuted = with_gradient(loss, scores[order], values[order])
        torch.testing.assert_close(shuffled, straight)
        torch.testing.assert_close(permuted, gradient[order])


MONOTONE: list[Callable[[Tensor], Tensor]] = [
    lambda y: y - 1.0,  # a label of -1 is a value like any other
    lambda y: y + 1e6,
    lambda y: 1e-3 * y,
    lambda y: y**3,
    lambda y: y.exp(),
    lambda y: torch.where(y == y.max(), math.inf, y),
    lambda y: torch.where(y == y.min(), -math.inf, y),
    lambda y: y.long(),
]


@pytest.mark.parametrize("transform", MONOTONE)
@ALL
def test_monotone_transformations_change_nothing(
    loss: Loss, transform: Callable[[Tensor], Tensor]
) -> None:
    scores = normal(6, 12)
    values = ties(6, 12, levels=9).double() - 4.0
    transformed = losses_of(loss, scores, transform(values))
    assert torch.equal(losses_of(loss, scores, values), transformed)


@ALL
def test_shift_of_scores_changes_nothing(loss: Loss) -> None:
    scores, values = normal(3, 8, dtype=torch.float64), ties(3, 8)
    expected, gradient = with_gradient(loss, scores, values)
    torch.testing.assert_close(
        with_gradient(loss, scores - 1e6, values), (expected, gradient), rtol=1e-6, atol=1e-8
    )
    assert gradient.sum(-1).abs().max() < 1e-12


@ALL
def test_descent_sorts(loss: Loss) -> None:
    values = normal(3, 8, seed=1)
    scores = normal(3, 8).requires_grad_()
    optimiser = torch.optim.Adam([scores], lr=0.1)
    prepared = loss.prepare(values)
    for _ in range(100):
        optimiser.zero_grad()
        loss(scores, prepared).sum().backward()
        optimiser.step()
    assert torch.equal(scores.argsort(-1), values.argsort(-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@ALL
def test_scores_of_another_precision_than_prepared(loss: Loss, dtype: torch.dtype) -> None:
    scores, values = normal(4, 20), ties(4, 20)
    reference = losses_of(loss, scores, values)
    scores = scores.to(dtype).requires_grad_()
    result = loss(scores, loss.prepare(values))
    result.sum().backward()
    torch.testing.assert_close(result.float(), reference, rtol=0.02, atol=0.02)
    assert scores.grad is not None and scores.grad.dtype == dtype


@ALL
@given(VALUE_LISTS, st.data())
@settings(max_examples=25, deadline=None)
def test_gradients_are_finite(loss: Loss, drawn: list[int], data: st.DataObject) -> None:
    n = len(drawn)
    numbers = st.floats(-1e6, 1e6, width=32)
    scores = torch.tensor(data.draw(st.lists(numbers, min_size=n, max_size=n)))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    per_list, gradient = with_gradient(loss, scores, torch.tensor(drawn), mask)
    assert per_list.isfinite()
    assert gradient.isfinite().all()
    assert not gradient[~mask].any()


# ----------------------------------------------------------------------------------------- the API


def test_names_known_without_torch_are_the_losses_names() -> None:
    assert tuple(LOSSES) == LOSS_NAMES
    with pytest.raises(ValueError, match=r"loss must be one of .*'weighted-list-mle'.*'listmle'"):
        FittingSettings(n_steps=1, learning_rate=0.1, loss="listmle")


@ALL
def test_bad_values_are_refused(loss: Loss) -> None:
    with pytest.raises(ValueError, match="values must be numbers where mask is True, got 'NaN'"):
        loss.prepare(torch.tensor([0.0, math.nan]))
