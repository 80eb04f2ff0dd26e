"""Ranking losses: ListMLE with position weights, in closed form, see `plackett_luce`.

    scores   s  [..., N]   larger is better; padding may hold anything, NaN included
    values   v  [..., N]   observed values, larger is better; broadcastable to scores
    mask        [..., N]   bool, True = a real entry, False = padding

A fit evaluates a loss hundreds of times on the same values, so `prepare` sorts the values once. A
list without real entries has loss 0 and gradient 0. Only the order of values counts; equal values
are never ordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dre_plugins.engine.plackett_luce import (
    list_mle_derivatives,
    list_mle_losses,
    prepare_list_mle,
)
from dre_plugins.engine.settings import require


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold what a loss precomputes from the values; made by `Loss.prepare`."""

    padding: Tensor | None  # True = padding `[..., N]`, or None if every entry is real
    parts: tuple[Tensor, ...]  # what `list_mle_losses` takes


@dataclass(frozen=True, slots=True)
class Loss:
    """Compute ListMLE with the position weights of a name of `plackett_luce.WEIGHTINGS`."""

    weighting: str

    def prepare(
        self, values: Tensor, mask: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Prepared:
        """Precompute all that depends on values `[..., N]` and mask `[..., N]` only.

        Without a mask all entries are real. Weights are of `dtype`. A ValueError says that a real
        value is NaN.
        """
        mask = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
        # Not `broadcast_shapes`, which imports SymPy: that takes a second.
        values, mask = torch.broadcast_tensors(values.detach(), mask)
        values = values.masked_fill(~mask, 0)
        require(not bool(values.isnan().any()), "values", "NaN", "numbers where mask is True")
        padding = None if bool(mask.all()) else ~mask
        return Prepared(padding, prepare_list_mle(self.weighting, values, mask, dtype))

    def __call__(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Return the loss of each list `[...]`, of scores `[..., N]`."""
        if prepared.padding is not None:
            scores = scores.masked_fill(prepared.padding, 0.0)
        losses: Tensor = _ClosedForm.apply(scores, *prepared.parts)  # type: ignore[no-untyped-call]
        return losses

    def gradient(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Return the derivatives of each list's loss by its scores `[..., N]`, 0 at padding."""
        if prepared.padding is None:
            return list_mle_derivatives(scores, *prepared.parts)
        scores = scores.masked_fill(prepared.padding, 0.0)
        return list_mle_derivatives(scores, *prepared.parts).masked_fill(prepared.padding, 0.0)


class _ClosedForm(torch.autograd.Function):
    """Give autograd the derivatives of the loss in closed form."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(scores, *parts)
        return list_mle_losses(scores, *parts)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, *parts = ctx.saved_tensors
        gradient = list_mle_derivatives(scores, *parts) * upstream[..., None]
        return gradient, *(None for _ in parts)


LOSSES: Mapping[str, Loss] = {
    "weighted-list-mle": Loss("inverse-log"),
    "weighted-list-mle-inverse-linear": Loss("inverse-linear"),
    "weighted-list-mle-position-attention": Loss("position-attention"),
    "list-mle": Loss("uniform"),
}
