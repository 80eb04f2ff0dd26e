"""From scores to ranks, on which the members of an ensemble are comparable."""

from __future__ import annotations

import torch
from torch import Tensor

# Keeps ranks positive: exp(-50) is far below any difference that members agree about.
MAX_LEAD = 50.0

# Beyond the best reference point, the unit of the lead in scores is the distance from the best
# reference point to the one this many places behind; the rank falls by a factor e for each unit.
LEAD_PLACES = 8

# Scores ranked at once: the 64-bit positions of a million candidates would take a gigabyte.
CHUNK = 2**16


def ranks_against(scores: Tensor, reference: Tensor) -> Tensor:
    """Rank each score `[M, C]` within the reference scores `[M, K]` of the same member, `[M, C]`.

    rank = #better + (#equal + 1) / 2. For a score that is itself in the reference (a finite table)
    this is exactly the average rank of the paper; for others it lies between ranks. Scores beyond
    the best reference point would all tie at 1/2; their ranks decrease towards 0 with the lead.
    """
    return ranks_among(scores, sorted_reference(reference))


def sorted_reference(reference: Tensor) -> Tensor:
    """Return the reference scores `[M, K]` as `ranks_among` takes them, to sort them once."""
    return reference.sort(dim=-1).values.contiguous()


def ranks_among(scores: Tensor, reference: Tensor) -> Tensor:
    """Rank each score as `ranks_against` does, within what `sorted_reference` returned."""
    chunks = [_ranks(chunk.contiguous(), reference) for chunk in scores.split(CHUNK, dim=-1)]
    return chunks[0] if len(chunks) == 1 else torch.cat(chunks, dim=-1)


def _ranks(scores: Tensor, ascending: Tensor) -> Tensor:
    below = torch.searchsorted(ascending, scores, right=False)
    not_above = torch.searchsorted(ascending, scores, right=True)
    better = ascending.shape[-1] - not_above
    ranks = better + 0.5 * (not_above - below + 1)
    best = ascending[:, -1:]
    behind = ascending[:, max(ascending.shape[-1] - 1 - LEAD_PLACES, 0), None]
    lead = (scores - best).clamp_min(0.0) / (best - behind).clamp_min(
        torch.finfo(scores.dtype).tiny
    )
    return torch.where(scores > best, 0.5 * torch.exp(-lead.clamp_max(MAX_LEAD)), ranks)
