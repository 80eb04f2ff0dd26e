"""The surrogate: a deep ranking ensemble, bound to its settings and, once fitted, its support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dre_plugins.engine.fitting import RankingLists, fit, stacked_lists
from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.scorers import (
    Parameters,
    axis_aligned_layer,
    context_vectors,
    initial_parameters,
    score,
)
from dre_plugins.engine.settings import FittingSettings, ScorerSettings

# Candidates scored at once: hidden activations of 10 members × 32 units stay in the cache (10 ms
# for 4096 candidates on one CPU thread, 15 ms in one piece).
CHUNK = 512
# On a GPU the time to launch a product dominates; 10 members × 32 units take 170 MB. An H100 takes
# 15 ms for a million candidates (lab/2026-11-27-gpu.md).
GPU_CHUNK = 2**17

__all__ = ["DeepRankingEnsemble", "RankingLists", "fit_together"]


@dataclass(frozen=True)
class DeepRankingEnsemble:
    """Score configurations by an ensemble of scorers; immutable: fitting returns a new one.

    Args:
        settings: The ensemble's shape.
        n_features: Number of features D.
        parameters: Stacked parameters, see `engine.scorers`.
        support: The list whose entries the context is computed from, set by `fit`.
        n_threads: Intra-op threads while computing.
    """

    settings: ScorerSettings
    n_features: int
    parameters: Parameters
    support: RankingLists | None = None
    n_threads: int = 1

    @classmethod
    def initialise(
        cls,
        settings: ScorerSettings,
        n_features: int,
        *,
        seed: int,
        first_slope: float | None = None,
        device: str = "cpu",
        n_threads: int = 1,
    ) -> DeepRankingEnsemble:
        """Draw an ensemble with random weights (DRE-RI).

        Args:
            first_slope: Steepness of a first layer along single features, see
                `scorers.axis_aligned_layer`; None leaves it as random as the others.
            device: Where to compute: "cpu", "cuda", "cuda:1", …
        """
        generator = torch.Generator(device="cpu").manual_seed(seed)
        with isolated("cpu", n_threads):
            parameters = initial_parameters(settings, n_features, generator)
            if first_slope is not None:
                along = axis_aligned_layer(
                    parameters, settings, n_features, first_slope, generator
                )
                parameters |= along
            parameters = {name: value.to(device) for name, value in parameters.items()}
        return cls(settings, n_features, parameters, n_threads=n_threads)

    @property
    def device(self) -> torch.device:
        """Where the ensemble computes."""
        return self.parameters["scorer.0.weight"].device

    def first(self, n_members: int) -> DeepRankingEnsemble:
        """Return an ensemble of the first members only; the Deep Set belongs to all."""
        return replace(
            self,
            settings=replace(self.settings, n_members=n_members),
            parameters={
                name: value[:n_members] if name.startswith("scorer.") else value
                for name, value in self.parameters.items()
            },
        )

    def with_extra_features(self, n_extra: int) -> DeepRankingEnsemble:
        """Return an ensemble that reads `n_extra` further features, with weights of 0 for them."""
        extended = dict(self.parameters)
        for name in {"scorer.0.weight", "phi.0.weight"} & extended.keys():
            features, others = extended[name].tensor_split([self.n_features], dim=1)
            zeros = features.new_zeros((len(features), n_extra, features.shape[-1]))
            extended[name] = torch.cat([features, zeros, others], dim=1)
        return replace(self, n_features=self.n_features + n_extra, parameters=extended)

    def to(self, device: str | torch.device, n_threads: int) -> DeepRankingEnsemble:
        """Return an ensemble that computes on `device` with `n_threads`."""
        parameters = {name: value.to(device) for name, value in self.parameters.items()}
        return replace(self, parameters=parameters, n_threads=n_threads)

    def fit(
        self, lists: RankingLists, fitting: FittingSettings, *, seed: int
    ) -> DeepRankingEnsemble:
        """Return an ensemble fitted to the lists, starting from this one's weights.

        Args:
            lists: What to fit. The context of the fitted ensemble is all of the first list.

        Raises:
            FittingError: If the fit diverged.
        """
        generator = torch.Generator(device="cpu").manual_seed(seed)
        with isolated(self.device, self.n_threads):
            lists = lists.to(self.device)
            fitted = fit(self.parameters, self.settings, fitting, lists, generator)
        return replace(self, parameters=fitted, support=lists)

    def scores(self, features: Tensor) -> Tensor:
        """Score configurations `[C, D]` by every member: `[M, C]`, larger is better."""
        size = CHUNK if self.device.type == "cpu" else GPU_CHUNK
        with isolated(self.device, self.n_threads), torch.no_grad():
            context = self._context()
            # Filled in place: small results between large freed buffers would fragment the heap
            # (1.1 GB instead of 0.4 GB for a million candidates).
            shape = (self.settings.n_members, len(features))
            scores = torch.empty(shape, dtype=torch.float32, device=self.device)
            chunks = features.to(self.device, torch.float32).split(size)
            for chunk, place in zip(chunks, scores.split(size, dim=1), strict=True):
                place[:] = score(self.parameters, self.settings, chunk[None, None], context)[:, 0]
            return scores

    def _context(self) -> Tensor | None:
        """Return the context `[M or 1, 1, Z]` of the support; of the empty set before a fit."""
        if self.settings.context is None:
            return None
        if self.support is None:
            values = torch.zeros((1, 1, 1), dtype=torch.float32)
            features, mask = values.expand(1, 1, 1, self.n_features), values.bool()
        else:
            whole = self.support
            features, values, mask = whole.features[:, :1], whole.values[:, :1], whole.mask[:, :1]
        quantiles, activation = rank_normalised(values, mask), self.settings.activation
        return context_vectors(self.parameters, features, quantiles, mask, activation)


def fit_together(
    ensembles: Sequence[DeepRankingEnsemble],
    lists: Sequence[RankingLists],
    fitting: FittingSettings,
) -> list[DeepRankingEnsemble]:
    """Fit several ensembles, each to its own lists, in one batch: hardly slower than one fit.

    They differ in weights and number of members only, and have no context. A FittingError says
    that the fit diverged.
    """
    sizes = [ensemble.settings.n_members for ensemble in ensembles]
    first = ensembles[0]
    settings = replace(first.settings, n_members=sum(sizes))
    names = first.parameters
    stacked = {
        name: torch.cat([ensemble.parameters[name] for ensemble in ensembles]) for name in names
    }
    joint = replace(first, settings=settings, parameters=stacked)
    # No context: nothing is drawn.
    fitted = joint.fit(stacked_lists(lists, sizes), fitting, seed=0).parameters
    parts = {name: value.split(sizes) for name, value in fitted.items()}
    return [
        replace(
            ensemble,
            parameters={name: parts[name][place].clone() for name in names},
            support=lists[place],
        )
        for place, ensemble in enumerate(ensembles)
    ]
