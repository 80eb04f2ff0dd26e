"""The scorers of an ensemble, stacked: one tensor per layer, one batched product per layer.

Parameters are a flat dictionary, so that saving, copying and optimising them needs no class:

    scorer.{l}.weight  [M, in, out]     scorer.{l}.bias  [M, 1, out]
    phi.{l}.weight     [1, in, out]     phi.{l}.bias     [1, 1, out]     encoder of the Deep Set
    rho.{l}.weight     [1, in, out]     rho.{l}.bias     [1, 1, out]     decoder of the Deep Set

The Deep Set is shared by all members, as in the paper, hence its leading 1. The first layer of a
scorer reads [features, context], D + Z inputs.
"""

import math
from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor

from dre_plugins.engine.settings import ScorerSettings

Parameters = dict[str, Tensor]

_ACTIVATIONS = {"relu": torch.relu, "silu": torch.nn.functional.silu}


def layer_shapes(settings: ScorerSettings, n_features: int) -> dict[str, tuple[int, int, int]]:
    """Return the weight shape `[members, in, out]` of every layer, by layer name."""
    context, n_inputs = settings.context, n_features
    networks: dict[str, tuple[int, ...]] = {}  # widths of inputs, hidden layers and outputs
    if context is not None:
        n_inputs += context.size
        networks["phi"] = (n_features + 1, *[context.hidden] * 3)
        networks["rho"] = (*[context.hidden] * 3, context.size)
    networks["scorer"] = (n_inputs, *settings.hidden, 1)
    return {
        f"{name}.{layer}": (settings.n_members if name == "scorer" else 1, n_in, n_out)
        for name, widths in networks.items()
        for layer, (n_in, n_out) in enumerate(pairwise(widths))
    }


def initial_parameters(
    settings: ScorerSettings, n_features: int, generator: torch.Generator
) -> Parameters:
    """Draw float32 parameters, uniform within ±1/sqrt(fan-in) as `torch.nn.Linear` does.

    They are on the CPU, as is `generator`, so that all devices start alike.
    """
    parameters = {}
    for name, (n_members, n_in, n_out) in layer_shapes(settings, n_features).items():
        limit = 1.0 / math.sqrt(max(n_in, 1))
        for kind, shape in (("weight", (n_members, n_in, n_out)), ("bias", (n_members, 1, n_out))):
            draw = torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu")
            parameters[f"{name}.{kind}"] = (2.0 * draw - 1.0) * limit
    return parameters


def axis_aligned_layer(
    parameters: Mapping[str, Tensor],
    settings: ScorerSettings,
    n_features: int,
    slope: float,
    generator: torch.Generator,
) -> Parameters:
    """Draw a first layer whose units read one feature each and bend anywhere in its range.

    With random weights on all features, units bend along random directions and near the centre of
    the space. The effect of hyper-parameters is mostly along single ones, anywhere in their range
    (docs/decisions/first-layer.md). Weights are uniform within ± slope; those of the context are
    unchanged. Returns weight and bias of the first layer.
    """
    drawn = parameters["scorer.0.weight"]
    n_members, _, n_units = drawn.shape
    shape = (n_members, 1, n_units)

    def uniform() -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu")

    chosen = torch.randint(n_features, shape, generator=generator, device="cpu")
    steepness = slope * (2.0 * uniform() - 1.0)
    bend = uniform()
    if settings.centred:
        bend = 2.0 * bend - 1.0
    weight = drawn.clone()
    weight[:, :n_features] = 0.0
    weight.scatter_(1, chosen, steepness)
    return {"scorer.0.weight": weight, "scorer.0.bias": -steepness * bend}


def perceptron(
    parameters: Mapping[str, Tensor],
    prefix: str,
    x: Tensor,
    activation: str,
    shift: Tensor | None = None,
) -> Tensor:
    """Apply the stacked layers `prefix.0`, `prefix.1`, …; the last one is linear.

    The prefix is "scorer", "phi" or "rho". Takes inputs `[M or 1, R, in]`, returns `[M or 1, R,
    out]`. `shift` `[M, B, 1, out]` is added to the first layer, for all rows of a list: the share
    of its further inputs.
    """
    n_layers = sum(name.startswith(f"{prefix}.") for name in parameters) // 2
    for layer in range(n_layers):
        weight, bias = (parameters[f"{prefix}.{layer}.{kind}"] for kind in ("weight", "bias"))
        x = torch.baddbmm(bias, x.expand(len(weight), -1, -1), weight[:, : x.shape[-1]])
        if layer == 0 and shift is not None:
            x = (x.unflatten(1, (shift.shape[1], -1)) + shift).flatten(1, 2)
        if layer < n_layers - 1:
            x = _ACTIVATIONS[activation](x)
    return x


def context_vectors(
    parameters: Mapping[str, Tensor],
    features: Tensor,
    quantiles: Tensor,
    support: Tensor,
    activation: str,
) -> Tensor:
    """Summarise support sets by the Deep Set ρ(mean φ(x, y)), `[M or 1, B, Z]` (section 3.3).

    Args:
        features: Observed configurations `[1, B, N, D]`, or `[M, B, N, D]`.
        quantiles: Their rank-normalised values, same shape without D, in (−1, 1).
        support: Membership `[M or 1, B, N]`, bool; an empty support gives the mean 0.
    """
    n_owners, n_lists, length, _ = features.shape
    pairs = torch.cat([features, quantiles[..., None]], dim=-1)
    encoded = perceptron(parameters, "phi", pairs.reshape(1, -1, pairs.shape[-1]), activation)
    encoded = encoded.reshape(n_owners, n_lists, length, -1)
    member = support.to(encoded.dtype)[..., None, :]  # [M, B, 1, N]
    mean = (member @ encoded).squeeze(-2) / member.sum(-1).clamp_min(1.0)  # [M, B, H]
    decoded = perceptron(parameters, "rho", mean.reshape(1, -1, mean.shape[-1]), activation)
    return decoded.reshape(*mean.shape[:-1], -1)


def score(
    parameters: Mapping[str, Tensor],
    settings: ScorerSettings,
    features: Tensor,
    context: Tensor | None = None,
) -> Tensor:
    """Score configurations `[M or 1, B, N, D]` by every member, `[M, B, N]`, larger is better.

    k·tanh(α·s(x, z; θ)) (equation 5 of the paper), with context vectors `[M or 1, B, Z]` exactly
    when the ensemble has a context.
    """
    _, n_lists, length, n_features = features.shape
    rows = features.reshape(len(features), n_lists * length, n_features)
    rows = 2.0 * rows - 1.0 if settings.centred else rows
    shift = None
    if context is not None:
        # [x, z] W = x W_x + z W_z: the context enters once per list instead of once per entry.
        weight = parameters["scorer.0.weight"][:, n_features:]
        shift = torch.bmm(context.expand(len(weight), -1, -1), weight)[:, :, None]
    scores = perceptron(parameters, "scorer", rows, settings.activation, shift)
    scores = scores.view(len(scores), n_lists, length)
    if settings.range_limit is None:
        return scores
    return settings.range_limit * torch.tanh(settings.range_slope * scores)
