"""Ranking losses: pure functions of scores, with a part that is precomputed from the values.

Notation (the last axis is the list; any number of batch axes before it):

    scores   s  [..., N]   larger is better; padding may hold anything, NaN included
    values   v  [..., N]   observed values, larger is better; broadcastable to scores
    mask        [..., N]   bool, True = a real entry, False = padding
    k           [...]      real entries of a list
    position    1..k       1 = the best value, as in the paper
    tie group              the entries of a list that share a value

A fit evaluates a loss hundreds of times on the same values, so each loss has two halves: `prepare`
sorts the values once, and the loss itself reads the scores.

Conventions that hold for every loss:

- A list without real entries has loss 0 and gradient 0, and "mean" leaves it out.
- Equal values are never ordered: the result depends neither on chance nor on the order in which
  the entries come.
- Only the order of the values counts: any strictly increasing transformation of them changes
  nothing, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from dre_plugins.engine.plackett_luce import (
    list_mle_derivatives,
    list_mle_losses,
    prepare_list_mle,
)
from dre_plugins.engine.settings import LOSS_NAMES, require

Reduction = Literal["mean", "sum"] | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold what a loss precomputes from the values; made by `Loss.prepare`, opaque to callers."""

    loss: str  # name of the loss that it was prepared for
    padding: Tensor | None  # True = padding `[..., N]`, or None if every entry is real
    has_entries: Tensor | None  # lists with a real entry `[...]`, or None if all have
    parts: tuple[Tensor, ...]  # tensors that only the loss itself understands


@dataclass(frozen=True, slots=True)
class Loss:
    """Bind the two halves of a loss. Padded values and scores are 0."""

    name: str
    # `(values, mask, dtype) -> parts`
    precompute: Callable[[Tensor, Tensor, torch.dtype], tuple[Tensor, ...]]
    per_list: Callable[..., Tensor]  # `(scores, *parts) -> [...]`
    derivatives: Callable[..., Tensor]  # `(scores, *parts) -> [..., N]`

    def prepare(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> Prepared:
        """Precompute all that depends on values `[..., N]` and mask `[..., N]` only.

        Weights and targets are of `dtype`. A ValueError says that a real value is NaN.
        """
        values = values.detach()
        mask = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
        # Not `broadcast_shapes`, which imports SymPy: that takes a second.
        values, mask = torch.broadcast_tensors(values, mask)
        values = values.masked_fill(~mask, 0)
        require(not bool(values.isnan().any()), "values", "NaN", "numbers where mask is True")
        return Prepared(
            loss=self.name,
            padding=None if bool(mask.all()) else ~mask,
            has_entries=None if bool(mask.any(-1).all()) else mask.any(-1),
            parts=self.precompute(values, mask, dtype),
        )

    def __call__(
        self,
        scores: Tensor,
        values: Tensor | Prepared,
        *,
        mask: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Compute the loss.

        Args:
            scores: Scores `[..., N]`, finite where real.
            values: Values `[..., N]` broadcastable to `scores`, or what `prepare` made of them.
            mask: Real entries `[..., N]`; belongs to values, so leave it out after `prepare`.
            reduction: "mean" over the lists that have real entries, "sum", or None.

        Returns:
            A scalar, or one value per list `[...]` for `reduction=None`.
        """
        if isinstance(values, Prepared):
            require(values.loss == self.name, "values", values.loss, f"prepared by {self.name!r}")
            require(mask is None, "mask", "a tensor", "None: prepared values know theirs")
            prepared = values
        else:
            shapes = tuple(tuple(t.shape[-1:]) for t in (values, mask) if t is not None)
            length = tuple(scores.shape[-1:])
            require(set(shapes) == {length}, "values and mask", shapes, f"{length} on last axes")
            # Half-precision scores meet float32 weights: products are then made in float32.
            dtype = torch.promote_types(scores.dtype, torch.float32)
            prepared = self.prepare(values, mask, dtype=dtype)
        if prepared.padding is not None:
            scores = scores.masked_fill(prepared.padding, 0.0)
        losses = _ClosedForm.apply(scores, self, *prepared.parts)  # type: ignore[no-untyped-call]
        return _reduce(losses, prepared.has_entries, reduction)

    def gradient(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Return the derivatives of each list's loss by its scores `[..., N]`, 0 at padding."""
        if prepared.padding is not None:
            scores = scores.masked_fill(prepared.padding, 0.0)
        gradient = self.derivatives(scores, *prepared.parts)
        if prepared.padding is None:
            return gradient
        return gradient.masked_fill(prepared.padding, 0.0)


class _ClosedForm(torch.autograd.Function):
    """Give autograd the derivatives of a loss that has them in closed form."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, loss: Loss, *parts: Tensor) -> Tensor:
        ctx.loss = loss
        ctx.save_for_backward(scores, *parts)
        losses: Tensor = loss.per_list(scores, *parts)
        return losses

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, *parts = ctx.saved_tensors
        gradient = ctx.loss.derivatives(scores, *parts) * upstream[..., None]
        return gradient, *(None for _ in range(1 + len(parts)))


def _reduce(losses: Tensor, has_entries: Tensor | None, reduction: Reduction) -> Tensor:
    """Reduce losses per list `[...]`, which are 0 where a list has no entries."""
    if reduction is None:
        return losses
    if reduction == "sum":
        return losses.sum()
    require(reduction == "mean", "reduction", reduction, "'mean', 'sum' or None")
    if has_entries is None:
        return losses.sum() / max(losses.numel(), 1)
    return losses.sum() / has_entries.expand(losses.shape).sum().clamp_min(1)


# ----------------------------------------------------------------------------------- public losses


def _named_list_mle(name: str, weighting: str) -> Loss:
    precompute = partial(prepare_list_mle, weighting)
    return Loss(name, precompute, list_mle_losses, list_mle_derivatives)


list_mle = _named_list_mle("list-mle", "uniform")
weighted_list_mle = _named_list_mle("weighted-list-mle", "inverse-log")

LOSSES: Mapping[str, Loss] = {
    loss.name: loss
    for loss in (
        weighted_list_mle,
        _named_list_mle("weighted-list-mle-inverse-linear", "inverse-linear"),
        _named_list_mle("weighted-list-mle-position-attention", "position-attention"),
        list_mle,
    )
}


def get_loss(name: str) -> Loss:
    """Return the loss of that name; a ValueError with all names says that there is none."""
    require(name in LOSSES, "loss", name, f"one of {LOSS_NAMES}")
    return LOSSES[name]
