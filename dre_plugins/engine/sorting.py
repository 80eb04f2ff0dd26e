"""The order of values: lists sorted with padding last, tie groups, and normalised ranks.

Notation: `[..., N]` lists of N entries, with any number of batch axes before; `k` real entries of
a list, the others are padding.
"""

from __future__ import annotations

import torch
from torch import Tensor


def ascending(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Sort lists worst first, padding last: order, and tie group of each place, `[..., N]`."""
    order = values.argsort(dim=-1, stable=True)
    # A second stable sort moves padding to the end without a value that stands for padding.
    order = order.gather(-1, (~mask).gather(-1, order).byte().argsort(dim=-1, stable=True))
    ordered, real = values.gather(-1, order), mask.gather(-1, order)
    starts = torch.ones_like(real)
    starts[..., 1:] = (ordered[..., 1:] != ordered[..., :-1]) | (real[..., 1:] != real[..., :-1])
    return order, starts.long().cumsum(-1) - 1


def group_sums(entries: Tensor, group: Tensor) -> Tensor:
    """Give every entry `[..., N]` the sum of its tie group."""
    return torch.zeros_like(entries).scatter_add(-1, group, entries).gather(-1, group)


def rank_normalised(values: Tensor, mask: Tensor) -> Tensor:
    """Normalise values `[..., N]` by rank into (-1, 1): (entries below - entries above) / k.

    Targets are equal for equal values, 0 for the median, and 0 where masked.
    """
    order, group = ascending(values, mask)
    k = mask.sum(-1, keepdim=True).float()
    place = torch.arange(values.shape[-1], device=values.device).float().expand(values.shape)
    mean_place = group_sums(place, group) / group_sums(torch.ones_like(place), group)
    targets = (2.0 * mean_place - (k - 1.0)) / k.clamp_min(1.0)
    return targets.gather(-1, order.argsort(dim=-1)).masked_fill(~mask, 0.0)
