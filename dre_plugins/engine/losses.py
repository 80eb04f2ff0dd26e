"""Ranking losses: ListMLE with position weights, and its gradient in closed form.

    scores   s  [..., N]   larger is better; padding may hold anything, NaN included
    values   v  [..., N]   observed values, larger is better; broadcastable to scores
    mask        [..., N]   bool, True = a real entry, False = padding

A fit evaluates a loss hundreds of times on the same values, so `prepare` sorts the values once. A
list without real entries has loss 0 and gradient 0. Only the order of values counts; equal values
are never ordered.

A list is sorted worst first, padding last. With L_i = ln sum_{j <= i} exp(s_j), the mean weight
w_i of the positions that the tie group of i takes, and their sum W_i at the group's last place, 0
at the others:

    loss             = sum_i W_i L_i - w_i s_i
    d loss / d s_j   = exp(s_j) sum_{i >= j} W_i / exp(L_i)  -  w_j

Autograd through gather, logcumsumexp and sum takes 191 us forward and backward at [10, 1, 100] on
one thread, the closed form 118 us. Also, the gradient of logcumsumexp of torch 2.13 is NaN at
leading -inf, the usual way to mask.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dre_plugins.checks import require
from dre_plugins.engine.ranks import ascending, group_sums


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold what a loss precomputes from the values, all `[..., N]`; made by `Loss.prepare`."""

    padding: Tensor | None  # True = padding, or None if every entry is real
    order: Tensor  # indices that sort a list
    mirrored: Tensor  # where each entry lies, counted from the end of the sorted list
    item_weights: Tensor  # w, unsorted
    end_weights: Tensor  # W, sorted


@dataclass(frozen=True, slots=True)
class Loss:
    """Compute minus the log-likelihood of orders under Plackett-Luce (ListMLE, Xia et al. 2008).

    sum_j w(j) (ln sum_{i at positions >= j} exp(s_i) - s_j); the weights w(j) are largest at the
    first positions (Khazi et al. 2023, equation 1 with the logarithm of the published code). Ties
    follow Breslow's form of Cox's partial likelihood (Breslow 1974): every entry of a tie group is
    compared with all entries of at most its value, and has the group's mean weight. So the loss is
    smallest for equal scores in a group; an order imposed on it would pull its scores apart.
    """

    # weights w(j, k) of position j in a list of k entries (appendix C of Khazi et al. 2023)
    weighting: Callable[[Tensor, Tensor], Tensor]

    def prepare(
        self, values: Tensor, mask: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Prepared:
        """Sort the values `[..., N]` and share position weights, of `dtype`, among ties.

        Without a mask all entries are real. A ValueError says that a real value is NaN.
        """
        mask = torch.ones_like(values, dtype=torch.bool) if mask is None else mask
        # Not `broadcast_shapes`, which imports SymPy: that takes a second.
        values, mask = torch.broadcast_tensors(values.detach(), mask)
        values = values.masked_fill(~mask, 0)
        require(not bool(values.isnan().any()), "values", "NaN", "numbers where mask is True")
        order, group = ascending(values, mask)
        inverse = order.argsort(dim=-1)
        real = mask.gather(-1, order)
        k = mask.sum(-1, keepdim=True).to(dtype)
        place = torch.arange(values.shape[-1], device=values.device).to(dtype)
        position = torch.where(real, k - place, 1.0)
        weights = self.weighting(position, k).masked_fill(~real, 0.0)
        sums = group_sums(weights, group)
        item_weights = (sums / group_sums(torch.ones_like(weights), group)).gather(-1, inverse)
        ends = torch.ones_like(real)
        ends[..., :-1] = group[..., 1:] != group[..., :-1]
        padding = None if bool(mask.all()) else ~mask
        mirrored = values.shape[-1] - 1 - inverse
        return Prepared(padding, order, mirrored, item_weights, sums.masked_fill(~ends, 0.0))

    def __call__(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Return the loss of each list `[...]`, of scores `[..., N]`."""
        if prepared.padding is not None:
            scores = scores.masked_fill(prepared.padding, 0.0)
        if scores.numel() == 0:
            return scores.sum(-1)
        constant = scores.detach()
        s, log_sums, pulls = _plackett_luce(constant, prepared)
        weights = prepared.item_weights
        terms = torch.addcmul(prepared.end_weights * log_sums, weights, s, value=-1.0)
        # A sum of zeros, by which autograd gets the derivatives in closed form.
        linear = (scores - constant) * (pulls - weights).to(scores.dtype)
        return terms.sum(-1).to(scores.dtype) + linear.sum(-1)

    def gradient(self, scores: Tensor, prepared: Prepared) -> Tensor:
        """Return the derivatives of each list's loss by its scores `[..., N]`, 0 at padding."""
        padding = prepared.padding
        if padding is not None:
            scores = scores.masked_fill(padding, 0.0)
        _, _, pulls = _plackett_luce(scores, prepared)
        derivatives = (pulls - prepared.item_weights).to(scores.dtype)
        return derivatives if padding is None else derivatives.masked_fill(padding, 0.0)


def _plackett_luce(scores: Tensor, prepared: Prepared) -> tuple[Tensor, Tensor, Tensor]:
    """Return s less its centre, L in sorted order, and exp(s_j) sum_{i >= j} W_i / exp(L_i)."""
    order, mirrored = prepared.order.expand(scores.shape), prepared.mirrored.expand(scores.shape)
    low, high = scores.aminmax(dim=-1, keepdim=True)
    s = scores - 0.5 * (high + low)
    # On a GPU, asking for the size would wait for the device.
    size = math.inf if s.is_cuda else 0.5 * float((high - low).amax())
    if size >= _largest(s.dtype):
        s = s.double()
    if size < _largest(s.dtype):
        # No exp(s) and no W / exp(L) underflows or overflows, and sums of positive numbers are
        # exact to rounding, so logcumsumexp (28 us each way) is not needed.
        exps = s.exp()
        sums = exps.gather(-1, order).cumsum(-1)
        log_sums = sums.log()
        pulls = exps * (prepared.end_weights / sums).flip(-1).cumsum(-1).gather(-1, mirrored)
    else:
        # float64, because s_j - L_i is a difference of large numbers. ln 0 = -inf becomes a
        # large finite number, which exp turns into 0 as well, but which subtracts without NaN.
        log_sums = s.gather(-1, order).logcumsumexp(-1)
        shares = prepared.end_weights.double().log().clamp_min(-1e300) - log_sums
        pulls = (s + shares.flip(-1).logcumsumexp(-1).gather(-1, mirrored)).exp()
    return s, log_sums, pulls


def _largest(dtype: torch.dtype) -> float:
    """Return the size of numbers up to which their exponentials can be added: 71 or 567."""
    return 0.8 * math.log(torch.finfo(dtype).max)


LOSSES: Mapping[str, Loss] = {
    "weighted-list-mle": Loss(lambda j, k: 1.0 / (j + 1.0).log()),
    "weighted-list-mle-inverse-linear": Loss(lambda j, k: 1.0 / j),
    "weighted-list-mle-position-attention": Loss(
        lambda j, k: (k - j + 1.0) / (0.5 * k * (k + 1.0))
    ),
    "list-mle": Loss(lambda j, k: torch.ones_like(j)),
}
