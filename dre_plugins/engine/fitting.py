"""Fit the stacked scorers to lists: full batch, Adam, cosine annealing, always on a copy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.optim.adam import adam

from dre_plugins.checks import require
from dre_plugins.engine.gradients import FitGradient, FlatParameters
from dre_plugins.engine.losses import LOSSES
from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.scorers import Parameters
from dre_plugins.engine.settings import FittingError, FittingSettings, ScorerSettings

# Below this length a list is too short to be split: all of it is support and query (section 2 of
# the paper).
MIN_LENGTH_TO_SPLIT = 5


@dataclass(frozen=True, slots=True)
class RankingLists:
    """Hold lists of evaluated configurations, whose values may have different scales.

    Args:
        features: Configurations `[M or 1, B, N, D]`; a leading 1 shares the lists among members.
        values: Observed values `[M or 1, B, N]`, larger is better. Only the order within a list
            counts for ranking losses.
        mask: Real entries `[M or 1, B, N]`, bool.
        weights: Weight of each list in the loss `[B]`, or for each member `[M, B]`.
    """

    features: Tensor
    values: Tensor
    mask: Tensor
    weights: Tensor

    def __post_init__(self) -> None:
        shape = tuple(self.features.shape)
        require(len(shape) == 4, "features", shape, "of shape [M or 1, B, N, D]")
        for name in ("values", "mask"):
            actual = tuple(getattr(self, name).shape)
            require(actual == shape[:3], name, actual, f"of shape {shape[:3]}")
        actual = tuple(self.weights.shape)
        require(actual in (shape[1:2], shape[:2]), "weights", actual, f"of shape {shape[1:2]}")

    @classmethod
    def single(cls, features: Tensor, values: Tensor) -> RankingLists:
        """Wrap one list: features `[N, D]`, values `[N]`."""
        return cls(
            features=features[None, None],
            values=values[None, None],
            mask=torch.ones_like(values, dtype=torch.bool)[None, None],
            weights=torch.ones(1, dtype=torch.float32, device=features.device),
        )

    def to(self, device: str | torch.device) -> RankingLists:
        """Return the lists on `device`."""
        return RankingLists(*(getattr(self, name).to(device) for name in self.__slots__))


def stacked_lists(lists: Sequence[RankingLists], n_members: Sequence[int]) -> RankingLists:
    """Give each of several groups of members its own lists, padded to one shape."""
    n_lists = max(group.features.shape[1] for group in lists)
    length = max(group.features.shape[2] for group in lists)
    features, values, mask, weights = [], [], [], []
    for group, n in zip(lists, n_members, strict=True):
        _, b, k, _ = group.features.shape
        more = (0, length - k, 0, n_lists - b)
        features.append(pad(group.features, (0, 0, *more)).expand(n, -1, -1, -1))
        values.append(pad(group.values, more).expand(n, -1, -1))
        mask.append(pad(group.mask, more).expand(n, -1, -1))
        weights.append(pad(group.weights, (0, n_lists - b)).expand(n, -1))
    return RankingLists(*(torch.cat(parts) for parts in (features, values, mask, weights)))


def split_support(
    mask: Tensor, n_members: int, share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw each member's own support sets; the rest of a list is its query, `[M, B, N]` each.

    A support is a share of the real entries of `mask` `[M or 1, B, N]`, rounded up.
    """
    mask = mask.expand(n_members, -1, -1)
    keys = torch.rand(mask.shape, generator=generator, dtype=torch.float32, device="cpu")
    keys = keys.to(mask.device).masked_fill(~mask, 2.0)
    order = keys.argsort(dim=-1).argsort(dim=-1)
    length = mask.sum(-1, keepdim=True)
    support = mask & (order < (share * length.float()).ceil())
    short = length < MIN_LENGTH_TO_SPLIT
    return torch.where(short, mask, support), mask & (short | ~support)


def fit(
    parameters: Mapping[str, Tensor],
    scorer: ScorerSettings,
    fitting: FittingSettings,
    lists: RankingLists,
    generator: torch.Generator,
) -> Parameters:
    """Return a copy of the parameters, fitted to the lists (Algorithm 2, line 4).

    All are on one device; `generator`, of the support sets, is on the CPU. A FittingError says
    that a fitted parameter is not finite.
    """
    with torch.inference_mode():  # takes a tenth less time than `torch.no_grad`
        flat = FlatParameters(parameters)
        loss = LOSSES[fitting.loss]
        quantiles = support = None
        query = lists.mask
        if scorer.context is not None:
            quantiles = rank_normalised(lists.values, lists.mask)
            support, query = split_support(
                lists.mask, scorer.n_members, fitting.support_share, generator
            )
        prepared = loss.prepare(lists.values, query)
        weights = lists.weights / (lists.weights.sum(-1, keepdim=True) * scorer.n_members)
        gradient = FitGradient(
            flat, scorer, lists.features, loss, prepared, weights, quantiles, support
        )
        moments = [torch.zeros_like(flat.vector)], [torch.zeros_like(flat.vector)]
        count = torch.zeros((), dtype=torch.float32, device=flat.vector.device)
        longest = int(lists.mask.sum(-1).max())
        n_steps = math.ceil(fitting.n_steps * min(longest / fitting.full_length, 1.0))
        for step in range(n_steps):
            rate = fitting.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))
            gradient.update()
            adam_step([flat.vector], [flat.gradient], *moments, [count], rate, fitting.beta2)
    for name, value in flat.values.items():
        if not bool(torch.isfinite(value).all()):
            raise FittingError(f"{name} is not finite after {n_steps} fitting steps.")
    # Copies made here, as autograd refuses tensors of inference mode.
    return {name: value.clone() for name, value in flat.values.items()}


def adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    counts: list[Tensor],
    learning_rate: float,
    beta2: float = 0.999,
) -> None:
    """Take a step of Adam in place, on parameters, moments of their gradients, and steps so far.

    `torch.optim.Adam` itself would import torch's compiler. That takes seconds, and leaves an
    environment variable and a warnings filter behind.
    """
    adam(
        parameters,
        gradients,
        means,
        squares,
        [],
        counts,
        fused=True,
        amsgrad=False,
        beta1=0.9,
        beta2=beta2,
        lr=learning_rate,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    )
