"""The gradient of a fit in closed form, in a third to a half of autograd's time.

A fit takes hundreds of steps on tensors so small that autograd's bookkeeping costs more than the
arithmetic. The gradient of a multi-layer perceptron with a listwise loss is short, and all buffers
of a step can be allocated once. `tests/engine/test_gradients.py` compares it with autograd's.

Notation: see `scorers`; `R` rows of a product, B · N of them.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from dre_plugins.engine.losses import Loss, Prepared
from dre_plugins.engine.scorers import Parameters
from dre_plugins.engine.settings import ScorerSettings


class FlatParameters:
    """Hold a copy of parameters and their gradients as two vectors: an optimiser sees one tensor.

    `values` and `gradients` are views of `vector` and `gradient` by the names of the parameters.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self.vector = torch.cat([value.detach().reshape(-1) for value in parameters.values()])
        self.gradient = torch.zeros_like(self.vector)
        self.values = _views(self.vector, parameters)
        self.gradients = _views(self.gradient, parameters)


class FitGradient:
    """Compute the gradient of a fit's loss, again and again, for parameters that change in place.

    Args:
        flat: The parameters; their gradients are overwritten by `update`.
        scorer: The ensemble.
        features: Configurations `[M or 1, B, N, D]`.
        loss: The loss.
        prepared: What the loss has precomputed from the values `[M or 1, B, N]`.
        weights: Weight of each list `[B]`, or for each member `[M, B]`.
        quantiles: Rank-normalised values `[M or 1, B, N]`; None without a context.
        support: Support sets `[M, B, N]`; None without a context.
    """

    def __init__(
        self,
        flat: FlatParameters,
        scorer: ScorerSettings,
        features: Tensor,
        loss: Loss,
        prepared: Prepared,
        weights: Tensor,
        quantiles: Tensor | None = None,
        support: Tensor | None = None,
    ) -> None:
        _, self._n_lists, self._length, self._n_features = features.shape
        self._n_members = flat.values["scorer.0.weight"].shape[0]
        self._scorer = scorer
        self._loss = loss
        self._prepared = prepared
        self._weights = weights.expand(self._n_members, -1)[..., None]
        rows = features.reshape(features.shape[0], -1, self._n_features)
        rows = (2.0 * rows - 1.0 if scorer.centred else rows).expand(self._n_members, -1, -1)
        self._scores = _PerceptronGradient(flat, "scorer", rows, scorer.activation)
        self._context = None
        if quantiles is not None and support is not None:
            self._context = _ContextGradient(flat, scorer, features, quantiles, support)

    def update(self) -> None:
        """Overwrite the gradients by those at the present parameters."""
        shift = None if self._context is None else self._context.forward()
        raw = self._scores.forward(shift).view(self._n_members, self._n_lists, self._length)
        limit, slope = self._scorer.range_limit, self._scorer.range_slope
        scores = raw if limit is None else limit * torch.tanh(slope * raw)
        error = self._loss.gradient(scores, self._prepared) * self._weights
        if limit is not None:
            error *= slope * (limit - scores.square() / limit)
        first = self._scores.backward(error.view(self._n_members, -1, 1))
        if self._context is not None:
            by_list = first.view(self._n_members, self._n_lists, self._length, -1).sum(2)
            self._context.backward(by_list)


class _PerceptronGradient:
    """Apply stacked layers as `scorers.perceptron` does, and take their gradient back.

    The layers are `prefix.0`, `prefix.1`, …; rows are inputs `[M, R, in]`, and further inputs of
    the first layer are the caller's.
    """

    def __init__(self, flat: FlatParameters, prefix: str, rows: Tensor, activation: str) -> None:
        names = [name for name in flat.values if name.startswith(f"{prefix}.")]
        layers = range(len(names) // 2)
        self._weights = [flat.values[f"{prefix}.{layer}.weight"] for layer in layers]
        self._biases = [flat.values[f"{prefix}.{layer}.bias"] for layer in layers]
        self._by_weights = [flat.gradients[f"{prefix}.{layer}.weight"] for layer in layers]
        self._by_biases = [flat.gradients[f"{prefix}.{layer}.bias"] for layer in layers]
        for of_layer in (self._weights, self._by_weights):
            of_layer[0] = of_layer[0][:, : rows.shape[-1]]
        self._is_silu = activation == "silu"
        self._one = rows.new_ones(())
        shapes = [(*rows.shape[:2], weight.shape[-1]) for weight in self._weights]
        # Few buffers, so that those of a step stay in a core's cache.
        self._sums = [rows.new_empty(shape) for shape in shapes]
        self._slopes = [rows.new_empty(shape) for shape in shapes[:-1]]
        self._errors = [rows.new_empty(shape) for shape in shapes[:-1]]
        self._below = [rows, *self._sums[:-1]]

    def forward(self, shift: Tensor | None = None) -> Tensor:
        """Return the outputs `[M, R, out]`, which the next call overwrites.

        `shift` `[M, B, 1, out]` is added to the first layer, for all rows of a list.
        """
        for layer, (below, total) in enumerate(zip(self._below, self._sums, strict=True)):
            torch.baddbmm(self._biases[layer], below, self._weights[layer], out=total)
            if layer == 0 and shift is not None:
                total.view(*shift.shape[:2], -1, shift.shape[-1]).add_(shift)
            if layer < len(self._slopes):
                self._activate(total, self._slopes[layer])
        return total

    def backward(self, error: Tensor) -> Tensor:
        """Write the gradients of the layers; return derivatives by the first sums `[M, R, out]`.

        `error` has the derivatives of the loss by the outputs `[M, R, out]`.
        """
        for layer in reversed(range(len(self._weights))):
            below, by_weight = self._below[layer], self._by_weights[layer]
            is_column = error.shape[-1] == 1  # as a row it is multiplied in a fifth of the time
            if is_column:
                torch.bmm(error.mT, below, out=by_weight.mT)
            else:
                torch.bmm(below.mT, error, out=by_weight)
            torch.sum(error, 1, keepdim=True, out=self._by_biases[layer])
            if layer:
                product = torch.mul if is_column else torch.bmm
                product(error, self._weights[layer].mT, out=self._errors[layer - 1])
                error = self._errors[layer - 1].mul_(self._slopes[layer - 1])
        return error

    def _activate(self, total: Tensor, slope: Tensor) -> None:
        """Replace the sums of a layer by its outputs, and write the slopes of its activation."""
        if not self._is_silu:
            slope.copy_(total > 0.0)
            total.mul_(slope)
            return
        torch.sigmoid(total, out=slope)
        total.mul_(slope)
        # silu'(x) = σ + x σ (1 − σ): from σ towards 1 by the output; loses nothing for large x
        torch.lerp(slope, self._one, total, out=slope)


class _ContextGradient:
    """Apply the Deep Set as `scorers.context_vectors` does, and take its gradient back.

    The shapes of `features`, `quantiles` and `support` are those of `FitGradient`.
    """

    def __init__(
        self,
        flat: FlatParameters,
        scorer: ScorerSettings,
        features: Tensor,
        quantiles: Tensor,
        support: Tensor,
    ) -> None:
        n_features = features.shape[-1]
        pairs = torch.cat([features, quantiles[..., None]], dim=-1)
        rows = pairs.reshape(1, -1, n_features + 1)
        self._phi = _PerceptronGradient(flat, "phi", rows, scorer.activation)
        self._input_weight = flat.values["rho.0.weight"]
        n_hidden = self._input_weight.shape[1]
        self._means = rows.new_empty((1, support.shape[0] * support.shape[1], n_hidden))
        self._rho = _PerceptronGradient(flat, "rho", self._means, scorer.activation)
        self._encoded_shape = (*features.shape[:3], n_hidden)
        member = support.to(rows.dtype)[..., None, :]  # [M, B, 1, N]
        self._shares = member / member.sum(-1, keepdim=True).clamp_min(1.0)
        self._weight = flat.values["scorer.0.weight"][:, n_features:]
        self._by_weight = flat.gradients["scorer.0.weight"][:, n_features:]

    def forward(self) -> Tensor:
        """Return the share of the context in the scorers' first layer `[M, B, 1, out]`."""
        encoded = self._phi.forward().view(self._encoded_shape)
        self._means.copy_((self._shares @ encoded).view(self._means.shape))
        self._vectors = self._rho.forward().view(*self._shares.shape[:2], -1)  # [M, B, Z]
        return torch.bmm(self._vectors, self._weight)[:, :, None]

    def backward(self, by_list: Tensor) -> None:
        """Write the gradients of the Deep Set and of the scorers' weights of the context.

        `by_list` has the derivatives by what `forward` returned `[M, B, out]`.
        """
        torch.bmm(self._vectors.mT, by_list, out=self._by_weight)
        by_vectors = torch.bmm(by_list, self._weight.mT)
        first = self._rho.backward(by_vectors.reshape(1, -1, by_vectors.shape[-1]))
        by_means = torch.bmm(first, self._input_weight.mT).view(*self._shares.shape[:2], 1, -1)
        by_entries = self._shares.mT @ by_means  # [M, B, N, H]
        if self._encoded_shape[0] == 1:
            by_entries = by_entries.sum(0)
        self._phi.backward(by_entries.reshape(1, -1, by_entries.shape[-1]))


def _views(vector: Tensor, parameters: Mapping[str, Tensor]) -> Parameters:
    parts = vector.split([value.numel() for value in parameters.values()])
    return {
        name: part.view_as(value)
        for part, (name, value) in zip(parts, parameters.items(), strict=True)
    }
