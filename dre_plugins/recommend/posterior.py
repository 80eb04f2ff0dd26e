"""The universal prior's posterior of noise-free values, in the unit of the metric.

The universal prior's proposals use targets that mix values and their order. Here the posterior is
one of values, so the targets are the values themselves. Values far below the median say nothing
about the best ones: they are clipped to lie no further below the median than the best lies above.

This module needs torch, so it is imported only when a model is first used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch

from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend.lists import joint_list, largest_of
from dre_plugins.recommend.schedule import Request
from dre_plugins.recommend.search import N_PARENTS, CandidateSearch
from dre_plugins.recommend.trials import Observed, Trial
from dre_plugins.recommend.universal_prior import Conditioned, network_for, process_features
from dre_plugins.space.base import Array, Units
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen

MAX_HISTORY = 128


@dataclass(frozen=True)
class ValuePosterior:
    """Hold the processes of the universal prior, conditioned on the values of one task."""

    space: SearchSpace
    conditioned: Conditioned
    centre: float  # value whose target is 0
    scale: float  # difference of values whose targets differ by 1

    @classmethod
    def of(cls, space: SearchSpace, history: Sequence[Trial]) -> ValuePosterior:
        """Return the posterior given the trials of one objective, larger values are better.

        `history` is as `observed_trials` returns it, with at least one complete trial. Pruned
        trials have imputed values, failed ones are left out. Of more than 128 trials the best and
        a spread of the others are used.
        """
        ranked, values = joint_list(history, failed="ignore", max_length=MAX_HISTORY)
        units = space.to_units([history[trial].configuration for trial in ranked.trials])
        # Divided by the largest first, as sums and squares of 1e300 overflow.
        size = largest_of(values)
        values = _clipped_below(values / size)
        mean, deviation = float(values.mean()), float(values.std())
        deviation = deviation if deviation > 4.0 * np.finfo(np.float64).eps else 1.0
        targets = torch.from_numpy((values - mean) / deviation)
        features = process_features(space, units)
        processes, log_weights = network_for(space)(features[None], targets[None])
        conditioned = Conditioned(targets, processes, log_weights[0, :, None])
        return cls(space, conditioned, mean * size, deviation * size)

    @property
    def noise_share(self) -> float:
        """Return the variance of the noise as a share of that of the values."""
        shares = self.conditioned.processes.hypotheses.noises[0].exp()[:, None]
        return float((self.conditioned.log_weights.exp() * shares).sum())

    @property
    def noise(self) -> float:
        """Return the standard deviation of the noise of one evaluation."""
        return self.scale * math.sqrt(self.noise_share)

    def predicted(self, units: Units) -> tuple[Array, Array]:
        """Return expected values without noise `[C]`, and their standard deviations `[C]`."""
        features = process_features(self.space, units)
        means, variances = self.conditioned.processes.posterior(features[None])
        weights = self.conditioned.log_weights.exp()
        mean = (weights * means[0]).sum(0)
        variance = (weights * (variances[0] + (means[0] - mean).square())).sum(0)
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):  # the model may expect more than any float
            expected = np.clip(self.centre + self.scale * mean.numpy(), -largest, largest)
            return expected, self.scale * variance.sqrt().numpy()


def best_improvement(rule: Rule, observed: Observed) -> float:
    """Return the largest expected improvement of a candidate that may be tried, by a rule.

    It is in the unit of the metric. Each process measures it from the largest posterior mean among
    the valid trials, so that noise in the best observed value does not count.
    """
    space, history, valid = rule.space, observed.history, observed.valid_trials
    with isolated():
        posterior = ValuePosterior.of(space, history)
        units = space.to_units([trial.configuration for trial in valid])
        conditioned = posterior.conditioned
        means, _ = conditioned.posterior(process_features(space, units))
        best = means.max(-1, keepdim=True).values.numpy()

        def predict(candidates: Units) -> torch.Tensor:
            features = process_features(space, space.canonical(candidates))
            return torch.from_numpy(conditioned.log_improvements(features, best))[None]

        values = np.array([trial.value for trial in valid], dtype=np.float64)
        elite = units[np.argsort(-values, kind="stable")[:N_PARENTS]]
        free = np.full(space.n_parameters, np.nan)
        request = Request(len(history), "universal-prior", Seen(), free)
        rng = np.random.default_rng(len(history))
        search = CandidateSearch(rule, None, seed=0)
        pool = search.pool(predict, itemgetter(0), request, rng, elite=elite, favourites=units[:0])
        return posterior.scale * float(pool.predictions.max().exp())


def _clipped_below(values: Array) -> Array:
    """Return finite values `[N]`, no further below the median than the best is above it."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.zeros(len(values))
    low, best = finite.min(), finite.max()
    clipped = np.clip(values, low, best)
    median = np.median(clipped)
    far = median - (best - median)
    return np.where(clipped < far, far, clipped)
