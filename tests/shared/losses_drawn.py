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


class Differentiable(torch.autograd.Function):
    """Let autograd compare the gradient of a loss with differences of its values."""

    @staticmethod
    def forward(ctx, scores, loss, prepared):
        ctx.derivatives = loss.gradient(scores, prepared)
        return loss(scores, prepared)

    @staticmethod
    def backward(ctx, upstream):
        return ctx.derivatives * upstream[..., None], None, None


def with_gradient(
    loss: Loss, scores: Tensor, values: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the losses per list and the gradient of their sum."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    gradient = loss.gradient(scores, loss.prepare(values, mask, dtype))
    return losses_of(loss, scores, values, mask), gradient
