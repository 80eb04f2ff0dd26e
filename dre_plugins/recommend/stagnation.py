"""When a search has settled, and what it looks at then.

Members that are all sure of one region or branch never return to another one, however long
nothing improves. So while a study stagnates, every third trial, if it is the ensemble's, is the
best of what is far from everything that was tried (docs/decisions.md). Beside the universal prior,
whose turns are the odd numbers, that is every sixth trial: 2, 8, 14, ….

Notation: `C` candidates, `N` trials, `D` features.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Trials without a new best after which a study stagnates.
PATIENCE = 8
# Of the trials of a stagnating study, one of so many explores where it is the ensemble's turn.
EVERY = 3
# Trials whose distances are computed at once: all of 5000 would take 30 MB in each thread.
BLOCK = 512


def is_exploration_due(n_since: int, index: int) -> bool:
    """Say whether a suggestion should explore.

    Args:
        n_since: Trials that have ended since the best one began; of several best, the first.
        index: Number of the suggestion.
    """
    return index % EVERY == EVERY - 1 and n_since >= PATIENCE


def far_half(features: Tensor, n_spread: int, observed: Tensor) -> Tensor:
    """Return which candidates are farther from all trials than half of the space is `[C]`.

    Never none: where nothing is farther, what is as far.

    Args:
        features: Candidates `[C, D]`.
        n_spread: How many of them, the first ones, are spread over the space.
        observed: What was tried `[N, D]`.
    """
    nearest = [torch.cdist(features, part).amin(1) for part in observed.split(BLOCK)]
    distance = torch.stack(nearest).amin(0)
    limit = distance[:n_spread].median()
    is_far = distance > limit
    return is_far if bool(is_far.any()) else distance >= limit
