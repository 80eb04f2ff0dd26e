"""Ranking losses: pure functions of scores, bound to what they need to know of the values.

Notation (the last axis is the list; any number of batch axes before it):

    scores   s  [..., N]   larger is better; padding may hold anything, NaN included
    values   v  [..., N]   what was observed, larger is better; broadcastable to scores
    mask        [..., N]   bool, True = a real entry, False = padding
    k           [...]      real entries of a list
    position    1..k       1 = the best value, as in the paper
    tie group              the entries of a list that share a value

A fit evaluates a loss hundreds of times on the same values, so each loss has two halves:
`prepare` sorts the values once, and the loss itself reads the scores:

    >>> scores, values = torch.tensor([2.0, 0.0, 1.0]), torch.tensor([9.0, 1.0, 5.0])
    >>> float(list_mle(scores, values))  # values are prepared on the way
    0.720...
    >>> prepared = list_mle.prepare(values)
    >>> float(list_mle(scores, prepared))  # the same, without sorting again
    0.720...

Conventions that hold for every loss:

- A list in which nothing is real has loss 0 and gradient 0, and "mean" leaves it out.
- Equal values are never ordered: the result depends neither on chance nor on the order in which
  the entries come.
- All but `mse` read only the order of the values, so that any strictly increasing transformation
  of them changes nothing, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from dre_plugins.engine.settings import LOSS_NAMES, require

Reduction = Literal["mean", "sum"] | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold what a loss needs to know of the values; made by `Loss.prepare`, opaque to callers.

    Args:
        loss: Name of the loss that it was prepared for.
        padding: True = padding `[..., N]`, or None if every entry is real.
        has_entries: Lists with at least one real entry `[...]`, or None if all have.
        parts: Tensors that only the loss itself understands.
    """

    loss: str
    padding: Tensor | None
    has_entries: Tensor | None
    parts: tuple[Tensor, ...]


class Loss(Protocol):
    """Describe what every loss offers (for type checking; do not subclass)."""

    def prepare(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> Prepared:
        """Precompute all that depends on values and mask alone.

        Args:
            values: Values `[..., N]`, larger is better.
            mask: Real entries `[..., N]`; all of them by default.
            dtype: Precision of weights and targets.

        Raises:
            ValueError: If a real value is NaN.
        """

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

    def gradient(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Compute the derivatives of each list's loss by its scores.

        Args:
            scores: Scores `[..., N]`, finite where real.
            prepared: What `prepare` made of the values.

        Returns:
            Derivatives `[..., N]`, 0 at padding.
        """


@dataclass(frozen=True, slots=True)
class RankingLoss:
    """Bind the two halves of a loss into one that satisfies the protocol `Loss`.

    Args:
        name: Name in the registry.
        precompute: `(values, mask, dtype) -> parts`; padded values are 0.
        per_list: `(scores, *parts) -> [...]`; padded scores are 0.
        derivatives: `(scores, *parts) -> [..., N]`, in closed form; None leaves it to autograd.
    """

    name: str
    precompute: Callable[[Tensor, Tensor, torch.dtype], tuple[Tensor, ...]]
    per_list: Callable[..., Tensor]
    derivatives: Callable[..., Tensor] | None = None

    def prepare(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> Prepared:
        """Precompute all that depends on values and mask alone, see `Loss.prepare`."""
        values = values.detach()
        mask = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
        # Not `broadcast_shapes`, which imports SymPy: a second, and a warnings filter (R10).
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
        """Compute the loss, see `Loss.__call__`."""
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
        losses: Tensor = self.per_list(scores, *prepared.parts)
        return _reduce(losses, prepared.has_entries, reduction)

    def gradient(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Compute the derivatives of each list's loss, see `Loss.gradient`."""
        if prepared.padding is not None:
            scores = scores.masked_fill(prepared.padding, 0.0)
        if self.derivatives is not None:
            found: Tensor = self.derivatives(scores, *prepared.parts)
        else:
            with torch.enable_grad():
                leaf = scores.detach().requires_grad_()
                (found,) = torch.autograd.grad(self.per_list(leaf, *prepared.parts).sum(), leaf)
        return found if prepared.padding is None else found.masked_fill(prepared.padding, 0.0)


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


# ----------------------------------------------------------------------------- the order of values


def _ascending(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Sort lists worst first, padding last.

    Returns:
        The order `[..., N]`, and the index of the tie group at each sorted place `[..., N]`.
    """
    order = values.argsort(dim=-1, stable=True)
    # A second stable sort moves padding to the end without a value that stands for padding.
    order = order.gather(-1, (~mask).gather(-1, order).byte().argsort(dim=-1, stable=True))
    ordered, real = values.gather(-1, order), mask.gather(-1, order)
    starts = torch.ones_like(real)
    starts[..., 1:] = (ordered[..., 1:] != ordered[..., :-1]) | (real[..., 1:] != real[..., :-1])
    return order, starts.long().cumsum(-1) - 1


def _group_sums(entries: Tensor, group: Tensor) -> Tensor:
    """Give every entry `[..., N]` the sum of its tie group."""
    return torch.zeros_like(entries).scatter_add(-1, group, entries).gather(-1, group)


def rank_normalised(values: Tensor, mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normalise values by rank into (-1, 1): (entries below - entries above) / k.

    Args:
        values: Values `[..., N]`, larger is better.
        mask: Real entries `[..., N]`.
        dtype: Type of the result.

    Returns:
        Targets `[..., N]`, equal for equal values, 0 for the median; 0 where masked.
    """
    order, group = _ascending(values, mask)
    k = mask.sum(-1, keepdim=True).to(dtype)
    place = torch.arange(values.shape[-1], device=values.device).to(dtype).expand(values.shape)
    mean_place = _group_sums(place, group) / _group_sums(torch.ones_like(place), group)
    targets = (2.0 * mean_place - (k - 1.0)) / k.clamp_min(1.0)
    return targets.gather(-1, order.argsort(dim=-1)).masked_fill(~mask, 0.0)


# --------------------------------------------------------------------------------------- list-wise

# Position weights w(j, k) of position j in a list of k entries (appendix C of Khazi et al. 2023).
WEIGHTINGS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "uniform": lambda j, k: torch.ones_like(j),
    "inverse-log": lambda j, k: 1.0 / (j + 1.0).log(),
    "inverse-linear": lambda j, k: 1.0 / j,
    "position-attention": lambda j, k: (k - j + 1.0) / (0.5 * k * (k + 1.0)),
}


def _prepare_list_mle(weighting: str) -> Callable[..., tuple[Tensor, ...]]:
    """Return the function that sorts lists and shares position weights among ties."""

    def precompute(values: Tensor, mask: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
        order, group = _ascending(values, mask)
        inverse = order.argsort(dim=-1)
        real = mask.gather(-1, order)
        k = mask.sum(-1, keepdim=True).to(dtype)
        place = torch.arange(values.shape[-1], device=values.device).to(dtype)
        position = torch.where(real, k - place, 1.0)
        weights = WEIGHTINGS[weighting](position, k).masked_fill(~real, 0.0)
        sums = _group_sums(weights, group)
        item_weights = (sums / _group_sums(torch.ones_like(weights), group)).gather(-1, inverse)
        ends = torch.ones_like(real)
        ends[..., :-1] = group[..., 1:] != group[..., :-1]
        mirrored = values.shape[-1] - 1 - inverse
        return order, mirrored, item_weights, sums.masked_fill(~ends, 0.0)

    return precompute


def _widest(dtype: torch.dtype) -> float:
    """Return the spread of scores up to which their exponentials can be added: 71 or 567."""
    return 0.8 * math.log(torch.finfo(dtype).max)


def _plackett_luce(
    scores: Tensor, order: Tensor, mirrored: Tensor, end_weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return s less its largest, L in sorted order, and exp(s_j) sum_{i >= j} W_i / exp(L_i).

    See `_ListMLE` for the arguments and the notation; all `[..., N]`.
    """
    order, mirrored = order.expand(scores.shape), mirrored.expand(scores.shape)
    s = scores - scores.amax(-1, keepdim=True)
    # On a GPU, asking for the spread would wait for the device.
    spread = math.inf if s.is_cuda else -float(s.amin()) if s.numel() else 0.0
    if spread >= _widest(s.dtype):
        s = s.double()
    if spread < _widest(s.dtype):
        # No exp(s) vanishes and no W / exp(L) overflows, and sums of positive numbers are exact
        # to rounding: no logcumsumexp (28 us each way).
        exps = s.exp()
        sums = exps.gather(-1, order).cumsum(-1)
        log_sums = sums.log()
        pulls = exps * (end_weights / sums).flip(-1).cumsum(-1).gather(-1, mirrored)
    else:
        # float64, because s_j - L_i is a difference of large numbers. ln 0 = -inf becomes a
        # large finite number, which exp turns into 0 as well, but which subtracts without NaN.
        log_sums = s.gather(-1, order).logcumsumexp(-1)
        shares = end_weights.double().log().clamp_min(-1e300) - log_sums
        pulls = (s + shares.flip(-1).logcumsumexp(-1).gather(-1, mirrored)).exp()
    return s, log_sums, pulls


class _ListMLE(torch.autograd.Function):
    """Compute weighted ListMLE and, on the way, its gradient in closed form.

    Sorted worst first (padding last), with L_i = ln sum_{j <= i} exp(s_j), the mean weight w_i of
    the positions that the tie group of i takes, and their sum W_i at the group's last place, 0 at
    the others:

        loss             = sum_i W_i L_i - w_i s_i
        d loss / d s_j   = exp(s_j) sum_{i >= j} W_i / exp(L_i)  -  w_j

    Why not autograd: forward and backward through gather, logcumsumexp and sum take 191 us at
    [10, 1, 100] on one thread, this 118 us. And the gradient of torch 2.13's logcumsumexp is NaN
    at leading -inf, the usual way to mask.

    Args:
        scores: Scores `[..., N]`, 0 at padding.
        order: Indices `[..., N]` that sort a list.
        mirrored: Where each entry is found, counted from the end of the sorted list `[..., N]`.
        item_weights: w `[..., N]`, unsorted.
        end_weights: W `[..., N]`, sorted.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        order: Tensor,
        mirrored: Tensor,
        item_weights: Tensor,
        end_weights: Tensor,
    ) -> Tensor:
        shifted, log_sums, pulls = _plackett_luce(scores, order, mirrored, end_weights)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward((pulls - item_weights).to(scores.dtype))
        losses = torch.addcmul(end_weights * log_sums, item_weights, shifted, value=-1.0).sum(-1)
        return losses.to(scores.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * upstream[..., None], None, None, None, None


def _list_mle(scores: Tensor, *parts: Tensor) -> Tensor:
    """Return the negative log-likelihood of the order under Plackett-Luce (Xia et al. 2008).

    sum_j w(j) (ln sum_{i at positions >= j} exp(s_i) - s_j); the weights w(j) put the first
    positions first (Khazi et al. 2023, equation 1 with the logarithm of the published code).
    Ties follow Breslow's form of Cox's partial likelihood (Breslow 1974): every entry of a tie
    group is divided by all entries of at most its value, and has the group's mean weight. So a
    group wants equal scores, whereas any order imposed on it would pull its scores apart.
    """
    if scores.numel() == 0:
        return scores.sum(-1)
    losses: Tensor = _ListMLE.apply(scores, *parts)  # type: ignore[no-untyped-call]
    return losses


def _list_mle_derivatives(
    scores: Tensor, order: Tensor, mirrored: Tensor, item_weights: Tensor, end_weights: Tensor
) -> Tensor:
    """Return the derivatives of `_list_mle` `[..., N]`."""
    _, _, pulls = _plackett_luce(scores, order, mirrored, end_weights)
    return (pulls - item_weights).to(scores.dtype)


def _prepare_list_net(values: Tensor, mask: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return target probabilities, and what removes padding from a softmax when added."""
    lowest = torch.finfo(dtype).min / 2  # finite: 0 * -inf would be NaN
    barrier = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, lowest)
    target = (rank_normalised(values, mask, dtype) + barrier).softmax(-1).masked_fill(~mask, 0.0)
    return target, barrier


def _list_net(scores: Tensor, target: Tensor, barrier: Tensor) -> Tensor:
    """Return the cross entropy of top-one probabilities, ListNet (Cao et al. 2007).

    - sum_i p_i ln softmax(s)_i. The original takes p = softmax(v), which depends on the scale of
      the values; here p = softmax(`rank_normalised(v)`) depends on their order alone. Its logits
      lie in (-1, 1), within the range ±2 of the paper's range controller.
    """
    return -(target * (scores + barrier).log_softmax(-1)).sum(-1)


# ---------------------------------------------------------------------------- pair- and point-wise


def _prepare_rank_net(values: Tensor, mask: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return `[..., N, N]`: 1 / number of pairs where row i is better than column j, else 0."""
    real = mask[..., :, None] & mask[..., None, :]
    pairs = ((values[..., :, None] > values[..., None, :]) & real).to(dtype)
    return (pairs / pairs.sum((-2, -1), keepdim=True).clamp_min(1.0),)


def _rank_net(scores: Tensor, pair_weights: Tensor) -> Tensor:
    """Return the mean of ln(1 + exp(s_j - s_i)) over pairs v_i > v_j (Burges et al. 2005).

    Averaged within each list, so that a long list does not outweigh a short one; the published
    code averages over all pairs of the batch. Equal values make no pair.
    """
    margins = scores[..., :, None] - scores[..., None, :]
    return -(pair_weights * torch.nn.functional.logsigmoid(margins)).sum((-2, -1))


def _entry_weights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `[..., N]`: 1 / k where real, 0 where masked."""
    return mask.to(dtype) / mask.sum(-1, keepdim=True).clamp_min(1).to(dtype)


def _prepare_subset_regression(
    values: Tensor, mask: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Return what is regressed onto: the rank, in (-1, 1) (Cossock and Zhang 2006).

    The published "pointwise" loss is the root mean square of v - N s, on raw values: it depends
    on their scale, and has no finite gradient where the fit is perfect. Neither holds here.
    """
    return rank_normalised(values, mask, dtype), _entry_weights(mask, dtype)


def _prepare_mse(values: Tensor, mask: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return what is regressed onto: the value itself, the baseline without ranks."""
    return values.to(dtype), _entry_weights(mask, dtype)


def _squared_error(scores: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Return the mean squared error per list."""
    return (weights * (scores - target).square()).sum(-1)


# ----------------------------------------------------------------------------------- public losses


def _named_list_mle(name: str, weighting: str) -> RankingLoss:
    return RankingLoss(name, _prepare_list_mle(weighting), _list_mle, _list_mle_derivatives)


list_mle = _named_list_mle("list-mle", "uniform")
weighted_list_mle = _named_list_mle("weighted-list-mle", "inverse-log")
list_net = RankingLoss("list-net", _prepare_list_net, _list_net)
rank_net = RankingLoss("rank-net", _prepare_rank_net, _rank_net)
subset_regression = RankingLoss("subset-regression", _prepare_subset_regression, _squared_error)
mse = RankingLoss("mse", _prepare_mse, _squared_error)

LOSSES: Mapping[str, Loss] = {
    loss.name: loss
    for loss in (
        weighted_list_mle,
        _named_list_mle("weighted-list-mle-inverse-linear", "inverse-linear"),
        _named_list_mle("weighted-list-mle-position-attention", "position-attention"),
        list_mle,
        list_net,
        rank_net,
        subset_regression,
        mse,
    )
}


def get_loss(name: str) -> Loss:
    """Return the loss of that name.

    Raises:
        ValueError: If there is no loss of that name; the message lists all names.
    """
    require(name in LOSSES, "loss", name, f"one of {LOSS_NAMES}")
    return LOSSES[name]
