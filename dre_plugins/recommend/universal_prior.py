"""The universal prior on a search space, and its processes, conditioned on one objective.

Notation: see docs/architecture.md; `H` processes of the prior's mixture.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from scipy.special import erfcx, ndtr

from dre_plugins.recommend.lists import largest_of
from dre_plugins.recommend.prior import UNIVERSAL, Universal, UniversalFile
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space.base import Array, Units
from dre_plugins.space.candidates import is_mostly_around_zero
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.universal.derivatives import DifferentiablePosterior, logsumexp_and_shares
from dre_plugins.universal.file import load_network
from dre_plugins.universal.processes import BLOCK, PosteriorMeans, Processes
from dre_plugins.universal.targets import Targets, both_targets, normal_scores, standardised

Network = Callable[..., tuple[Processes, torch.Tensor]]
# From means and variances of processes to logarithms of what they expect, all `[H, C]`.
Logs = Callable[[Array, Array], Array]

# From MIN_TRIALS trials on, some configurations that break the rule count as failed trials:
# N_BROKEN of N_MUTANTS mutants of the N_FAVOURED best trials. Without them the prior may expect an
# optimum beyond the border of the rule, and the search stays on the border. The ensemble does not
# get them, as it would miss an optimum on the border (lab/2026-11-24-valid-border.md).
MIN_TRIALS = 10
N_FAVOURED = 5
N_MUTANTS = 256
N_BROKEN = 4


def process_features(space: SearchSpace, units: Units) -> torch.Tensor:
    """Return the features that the prior's processes read, of canonical coordinates, `[C, D]`."""
    return torch.from_numpy(sketched(space.features(units))).double()


def network_for(space: SearchSpace, prior: Universal = UNIVERSAL) -> Network:
    """Return the prior's network with what it knows of a space, see `UniversalPrior.forward`."""
    network = prior.network if isinstance(prior, UniversalFile) else load_network()
    is_sketch = space.n_features > MAX_FEATURES
    return partial(
        network,
        is_limited=is_mostly_around_zero(space),
        categories=() if is_sketch else space.category_features,
    )


@dataclass(frozen=True)
class Conditioned:
    """Hold a mixture of processes, conditioned on targets of the trials; larger is better."""

    targets: torch.Tensor  # of the trials `[N]`
    processes: Processes
    log_weights: torch.Tensor  # logarithms of the weights of the processes `[H, 1]`

    @classmethod
    def on(
        cls, network: Network, features: torch.Tensor, values: Array, ranks: Array
    ) -> Conditioned:
        """Return the processes that a network outputs for trials with features `[N, D]`.

        Values and ranks `[N]` are those of `possible_targets`, of which the likeliest count.
        """
        possible = possible_targets(values, ranks)
        targets = torch.stack([part.values for part in possible])
        log_factors = targets.new_tensor([part.log_factor for part in possible])
        mean_variance = targets.new_tensor([part.mean_variance for part in possible])
        with torch.inference_mode():
            repeated = features.expand(len(possible), -1, -1)
            processes, log_weights = network(repeated, targets, mean_variance)
            # log likelihoods of targets, as densities of the standardised values
            likeliest = int((log_factors + processes.mixture_log_likelihood).argmax())
            return cls(targets[likeliest], *processes.likely(log_weights, likeliest))

    def with_fantasies(self, features: torch.Tensor, targets: torch.Tensor) -> Conditioned:
        """Return the processes conditioned on further targets `[U]`.

        Features are of all trials `[N + U, D]`.
        """
        extended = torch.cat([self.targets, targets])
        hypotheses = self.processes.hypotheses
        processes = Processes.conditioned(hypotheses, features[None], extended[None])
        return Conditioned(extended, processes, self.log_weights)

    def posterior(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return means and standard deviations `[H, C]` of noise-free targets."""
        means, variances = self.processes.posterior(features[None])
        return means[0], variances[0].sqrt()

    @cached_property
    def differentiable(self) -> DifferentiablePosterior:
        """Return what predicts with derivatives."""
        return DifferentiablePosterior(self.processes)

    @cached_property
    def means(self) -> PosteriorMeans:
        """Return what predicts the means of all processes `[H, C]`, fast."""
        return PosteriorMeans(self.processes)

    def expected(self, features: torch.Tensor) -> torch.Tensor:
        """Return the mean of the mixture `[C]`."""
        expected: torch.Tensor = (self.log_weights.exp() * self.means(features)).sum(0)
        return expected

    def log_mean(self, features: torch.Tensor, logs_of: Logs) -> Array:
        """Return the logarithm of what the mixture expects at features `[C, D]`, `[C]`.

        `logs_of` returns the logarithms of what each process expects.
        """
        parts = []
        for part in features.split(BLOCK):
            means, variances = self.processes.posterior(part[None])
            logs = logs_of(means[0].numpy(), variances[0].numpy())
            parts.append(logsumexp_and_shares(logs + self.log_weights.numpy())[0])
        return np.concatenate(parts)

    def log_improvements(self, features: torch.Tensor, best: float | Array) -> Array:
        """Return logarithms of the improvement on a target that the mixture expects `[C]`."""
        return self.log_mean(
            features, lambda means, variances: log_improvements(means, variances, best)[0]
        )

    def log_improvements_with_derivatives(
        self, features: Array, best: float
    ) -> tuple[Array, Array]:
        """Return `log_improvements`, and their derivatives by the features `[C, D]`."""
        means, variances, derivatives = self.differentiable(features)
        logs, by_mean, by_variance = log_improvements(means, variances, best)
        total, shares = logsumexp_and_shares(logs + self.log_weights.numpy())
        return total, derivatives(shares * by_mean, shares * by_variance)


def log_improvements(
    means: Array, variances: Array, best: float | Array
) -> tuple[Array, Array, Array]:
    """Return ln(σ (φ(u) + u Φ(u))) with u = (μ − best) / σ, and its derivatives by μ and σ².

    This is the logarithm of the expected improvement, which still tells candidates apart where the
    expected improvement underflows (Ament et al., 2023). Below u = −1 the difference of φ(u) and
    −u Φ(u) is computed by the scaled complementary error function. All are `[..., C]`.
    """
    deviations = np.sqrt(variances)
    u = (means - best) / deviations
    near, far = np.maximum(u, -1.0), np.minimum(u, -1.0)
    chance = ndtr(near)
    of_near = np.exp(-0.5 * np.square(near)) / math.sqrt(2.0 * math.pi) + near * chance
    scaled = math.sqrt(math.pi / 2.0) * erfcx(-far / math.sqrt(2.0))  # Φ / φ
    # 1 + u Φ / φ falls as 1 / u², which replaces it where it is lost in rounding.
    of_far = np.where(far > -1e4, 1.0 + far * scaled, 1.0 / np.square(far))
    log_far = np.log(of_far) - 0.5 * np.square(far) - 0.5 * math.log(2.0 * math.pi)
    is_near = u > -1.0
    logs = np.where(is_near, np.log(of_near), log_far) + np.log(deviations)
    by_u = np.where(is_near, chance / of_near, scaled / of_far)
    by_variance = 0.5 * (1.0 - u * by_u) / np.square(deviations)
    return logs, by_u / deviations, by_variance


def possible_targets(values: Array, ranks: Array) -> tuple[Targets, ...]:
    """Return the targets that the processes can be conditioned on, see `universal.targets`.

    Values alone are among them only if they tell apart all that the order does. Final values `[N]`
    are NaN for failures, and `ranks` are dense. Infinities count as the largest or smallest finite
    value, failures as the smallest.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return (Targets(standardised(normal_scores(torch.from_numpy(ranks)))[0]),)
    low, high = finite.min(), finite.max()
    clipped = np.clip(np.where(np.isnan(values), low, values), low, high)
    # Divided by the largest first, as sums and squares of 1e300 overflow.
    scaled = clipped / largest_of(values)
    both = both_targets(torch.from_numpy(ranks), torch.from_numpy(scaled))
    # Values alone do not tell a failure from the worst trial, nor pruned trials from each other.
    is_told_by_values = len(np.unique(scaled)) == len(np.unique(ranks))
    return both if is_told_by_values else both[:1]


def with_broken(units: Units, rule: Rule, elite: Units, rng: np.random.Generator) -> Units:
    """Return the coordinates of trials `[N, P]`, followed by some that break the rule.

    `elite` has the coordinates of the best trials `[E, P]`, best first.
    """
    if len(units) < MIN_TRIALS:
        return units
    broken = rule.broken(elite[:N_FAVOURED], N_MUTANTS, rng)[:N_BROKEN]
    return np.concatenate([units, rule.space.canonical(broken)])
