"""Groups of losses, and scores and values drawn for them."""

import pytest
import torch
from torch import Tensor

from dre_plugins.engine.losses import LOSSES, Loss


def each(*names: str) -> pytest.MarkDecorator:
    """Run a test for each loss of these names."""
    return pytest.mark.parametrize("loss", [LOSSES[name] for name in names], ids=names)


ALL = each(*LOSSES)


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
