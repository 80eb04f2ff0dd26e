"""The grid of google/rax for each loss: masks, shapes, invariances, errors."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings, strategies as st
from losses_drawn import ALL, losses_of, normal, ties, with_gradient
from torch import Tensor

from dre_plugins.engine.losses import LOSSES, Loss
from dre_plugins.engine.settings import LOSS_NAMES, FittingSettings

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
def test_all_masked_gives_zero_with_zero_gradients(loss: Loss) -> None:
    scores = torch.tensor([[1.0, -math.inf, math.nan]] * 2, requires_grad=True)
    mask = torch.zeros(2, 3, dtype=torch.bool)
    result = losses_of(loss, scores, torch.arange(3.0), mask)
    result.sum().backward()
    assert torch.equal(result, torch.zeros_like(result))
    assert scores.grad is not None and torch.equal(scores.grad, torch.zeros(2, 3))


@ALL
def test_empty_shapes_give_zero(loss: Loss) -> None:
    for shape in ((3, 0), (0, 3), (0, 0)):
        scores = torch.zeros(shape, requires_grad=True)
        result = losses_of(loss, scores, torch.zeros(shape))
        result.sum().backward()
        assert result.tolist() == [0.0] * shape[0]


# ------------------------------------------------------------------------------------------ shapes


@ALL
def test_list_of_length_one(loss: Loss) -> None:
    per_list, gradient = with_gradient(loss, torch.tensor([[0.7], [-0.2]]), torch.zeros(2, 1))
    assert per_list.tolist() == [0.0, 0.0]
    assert gradient.flatten().tolist() == [0.0, 0.0]


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
