"""Which past tasks a study resembles: contexts are drawn by how well they explain its trials.

Each member of a prior imagines the study to be like one of the past tasks. A task whose context
makes the scorers order the observed trials as they came out is drawn more often, the more often
the more was observed; before that, the members' disagreement is the doubt about the task.

Notation: `T` contexts of past tasks, `N` trials, `M` members.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# How much an observed trial sharpens the weights: a task that orders a tenth more of all pairs
# wrongly weighs exp(-SHARPNESS · N / 10) as much.
SHARPNESS = 1.6


def disagreement(scores: Tensor, ranks: Tensor) -> Tensor:
    """Return the share of pairs of trials that each task's scores order wrongly `[T]`.

    Args:
        scores: Scores of the trials under each context `[T, N]`, larger is better.
        ranks: Observed ranks `[N]`, larger is better.
    """
    is_better = ranks[:, None] > ranks[None, :]
    is_wrong = is_better & (scores[:, :, None] < scores[:, None, :])
    return is_wrong.sum((1, 2)) / is_better.sum().clamp_min(1)


def draw_tasks(
    wrong: Tensor, n_trials: int, n_members: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw a past task for each member `[M]`, in proportion to the weights and a random order.

    Args:
        wrong: See `disagreement` `[T]`.
        n_trials: Number of observed trials N.
        n_members: Number of members M.
        rng: Source of randomness.
    """
    weights = torch.softmax(-SHARPNESS * n_trials * wrong.double(), dim=0).numpy()
    # Evenly spaced quantiles: ten independent draws would often leave out a likely task.
    quantiles = (np.arange(n_members) + rng.random()) / n_members
    drawn = np.searchsorted(weights.cumsum(), quantiles).clip(max=len(weights) - 1)
    return rng.permutation(drawn)
