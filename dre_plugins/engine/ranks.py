"""From scores to ranks: what makes members of an ensemble comparable."""

from __future__ import annotations

import torch
from torch import Tensor


def ranks_against(scores: Tensor, reference: Tensor) -> Tensor:
    """Rank each score within the reference scores of the same member.

    rank = #better + (#equal + 1) / 2. For a score that is itself in the reference (a finite
    table) this is exactly the average rank of the paper; for others it lies between ranks.

    Args:
        scores: Scores `[M, C]`, larger is better.
        reference: Scores of the reference points `[M, K]`.

    Returns:
        Ranks `[M, C]`, from 0.5 (better than all of the reference) to K + 0.5.
    """
    ascending = reference.sort(dim=-1).values.contiguous()
    scores = scores.contiguous()
    below = torch.searchsorted(ascending, scores, right=False)
    not_above = torch.searchsorted(ascending, scores, right=True)
    better = reference.shape[-1] - not_above
    equal = not_above - below
    return better + 0.5 * (equal + 1)
