"""Ranks: of observed values in lists with ties and padding, and of scores among reference points.

Lists `[..., N]` have any number of batch axes; `k` of their entries are real, the others padding.
"""

import torch
from torch import Tensor

# Keeps ranks positive: exp(-50) is far below any difference that members agree about.
MAX_LEAD = 50.0

# Beyond the best reference point, the unit of the lead in scores is the distance from the best
# reference point to the one this many places behind; the rank falls by a factor e for each unit.
LEAD_PLACES = 8

# Scores ranked at once: the 64-bit positions of a million candidates would take a gigabyte.
CHUNK = 2**16


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


def ranks_against(scores: Tensor, reference: Tensor) -> Tensor:
    """Rank each score `[M, C]` within the reference scores `[M, K]` of the same member, `[M, C]`.

    rank = #better + (#equal + 1) / 2, by which members are comparable. For a score that is itself
    in the reference (a finite table) this is exactly the average rank of the paper; for others it
    lies between ranks. Scores beyond the best reference point would all tie at 1/2; their ranks
    decrease towards 0 with the lead.
    """
    return ranks_among(scores, sorted_reference(reference))


def sorted_reference(reference: Tensor) -> Tensor:
    """Return the reference scores `[M, K]` as `ranks_among` takes them, to sort them once."""
    return reference.sort(dim=-1).values.contiguous()


def ranks_among(scores: Tensor, reference: Tensor) -> Tensor:
    """Rank each score as `ranks_against` does, within what `sorted_reference` returned."""
    chunks = [_ranks(chunk.contiguous(), reference) for chunk in scores.split(CHUNK, dim=-1)]
    return chunks[0] if len(chunks) == 1 else torch.cat(chunks, dim=-1)


def _ranks(scores: Tensor, reference: Tensor) -> Tensor:
    below = torch.searchsorted(reference, scores, right=False)
    not_above = torch.searchsorted(reference, scores, right=True)
    better = reference.shape[-1] - not_above
    ranks = better + 0.5 * (not_above - below + 1).to(scores.dtype)
    best = reference[:, -1:]
    behind = reference[:, max(reference.shape[-1] - 1 - LEAD_PLACES, 0), None]
    lead = (scores - best).clamp_min(0.0) / (best - behind).clamp_min(
        torch.finfo(scores.dtype).tiny
    )
    return torch.where(scores > best, 0.5 * torch.exp(-lead.clamp_max(MAX_LEAD)), ranks)
