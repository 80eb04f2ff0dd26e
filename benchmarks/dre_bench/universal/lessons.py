"""Lessons: what a search has seen of synthetic tasks, and what it is asked next.

Trials close in on what is good, as those of a search do; queries are anywhere and near the best.

Notation: `B` tasks, `N` trials, `Q` queries, `P` parameters, `D` features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dre_bench.universal.tasks import MAX_FEATURES, SyntheticTasks, draw_space
from dre_plugins.universal.targets import normal_scores, standardised

# Configurations whose children are tried, and how far these are from their parents.
N_ELITE = 5
STEPS = (0.3, 0.1, 0.03, 0.01)
# Of mutated coordinates, how many are drawn anew, and how many go to a bound.
DRAWN, BOUND = 0.1, 0.12
# Of later trials, how many are anywhere.
ANYWHERE = 0.25
# Of lessons, how many have trials that search; the others are anywhere.
SEARCHING = 0.8
LIMIT = 8.0


@dataclass(frozen=True, slots=True)
class Lesson:
    """Hold trials of some tasks of one space, and queries with their answers.

    Args:
        features: Of the trials `[B, N, D]`.
        targets: What was observed `[B, N]`.
        queries: Features of other configurations `[B, Q, D]`.
        answers: What is true of these, without noise, on the scale of the targets `[B, Q]`.
    """

    features: Tensor
    targets: Tensor
    queries: Tensor
    answers: Tensor


@dataclass(frozen=True, slots=True)
class Scale:
    """Hold how values of one or more tasks are read, to read those of other configurations.

    Args:
        values: Values of the trials in increasing order `[..., N]`.
        scores: Their standardised normal scores `[..., N]`.
        moments: Mean and deviation of the values, and of what they become, each `[..., 1]`.
    """

    values: Tensor
    scores: Tensor
    moments: tuple[Tensor, Tensor, Tensor, Tensor]

    def targets(self, queries: Tensor) -> Tensor:
        """Return what values of other configurations are on this scale `[..., Q]`.

        Their scores lie between those of the trials around them, and end with the trials'.
        """
        mean, deviation, centre, spread = self.moments
        last = self.values.shape[-1] - 1
        above = torch.searchsorted(self.values, queries.contiguous()).clamp(min(1, last), last)
        low, high = (self.values.gather(-1, at) for at in (above - min(1, last), above))
        worse, better = (self.scores.gather(-1, at) for at in (above - min(1, last), above))
        tiny = torch.finfo(queries.dtype).tiny
        share = ((queries - low) / (high - low).clamp_min(tiny)).clamp(0.0, 1.0)
        scores = worse + share * (better - worse)
        return (scores + (queries - mean) / deviation - centre) / spread

    @classmethod
    def of(cls, values: Tensor) -> tuple[Tensor, Scale]:
        """Return what the prior sees of some values `[..., N]`, and how to read others."""
        scores, _, _ = standardised(normal_scores(values))
        plain, mean, deviation = standardised(values)
        targets, centre, spread = standardised(scores + plain)
        ordered, places = values.sort(dim=-1)
        return targets, cls(ordered, scores.gather(-1, places), (mean, deviation, centre, spread))


def draw_lesson(
    rng: np.random.Generator,
    n_tasks: int,
    n_trials: int,
    n_queries: int,
    max_features: int = MAX_FEATURES,
) -> Lesson:
    """Draw a lesson of tasks on one random space."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    tasks = SyntheticTasks(draw_space(rng, max_features), n_tasks, generator)
    n_first = n_trials
    if rng.random() < SEARCHING:
        n_first = min(n_trials, int(rng.integers(4, 12)))
    units = tasks.units(n_first)
    values = tasks.values(units)
    at_once = max(4, (n_trials - n_first) // 4)
    while units.shape[1] < n_trials:
        n = min(n_trials - units.shape[1], at_once)
        children = _children(tasks, units, values, n)
        is_anywhere = torch.rand(n_tasks, n, 1, generator=generator) < ANYWHERE
        children = torch.where(is_anywhere, tasks.units(n), children)
        units = torch.cat([units, children], 1)
        values = torch.cat([values, tasks.values(children)], 1)
    near = _children(tasks, units, values, n_queries // 2)
    asked = torch.cat([tasks.units(n_queries - n_queries // 2), near], 1)
    targets, scale = Scale.of(values)
    answers = scale.targets(tasks.values(asked, is_noisy=False)).clamp(-LIMIT, LIMIT)
    return Lesson(tasks.features(units), targets, tasks.features(asked), answers)


def _children(tasks: SyntheticTasks, units: Tensor, values: Tensor, n: int) -> Tensor:
    """Return mutated copies `[B, n, P]` of the best configurations."""
    generator, n_tasks, n_parameters = tasks.generator, tasks.n_tasks, units.shape[-1]
    shape = n_tasks, n, n_parameters
    best = values.topk(min(N_ELITE, units.shape[1]), 1).indices
    drawn = torch.randint(0, best.shape[1], (n_tasks, n), generator=generator)
    parents = units.gather(1, best.gather(1, drawn)[..., None].expand(-1, -1, n_parameters))
    steps = torch.tensor(STEPS)[torch.randint(0, len(STEPS), (n_tasks, n, 1), generator=generator)]
    moved = parents + steps * torch.randn(*shape, generator=generator)
    kind = torch.rand(*shape, generator=generator)
    bounds = (torch.rand(*shape, generator=generator) < 0.5).float()
    moved = torch.where(kind < DRAWN + BOUND, bounds, moved)
    moved = torch.where(kind < DRAWN, torch.rand(*shape, generator=generator), moved)
    share = torch.rand(n_tasks, n, 1, generator=generator).clamp_min(1.5 / n_parameters)
    is_moved = torch.rand(*shape, generator=generator) < share
    return torch.where(is_moved, moved, parents).clamp(0.0, 1.0)
