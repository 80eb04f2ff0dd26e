"""The members of an ensemble before they are fitted: the priors' as far as they are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.engine.settings import get_preset
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.effort import of_objectives
from dre_plugins.recommend.joint import JointPart
from dre_plugins.recommend.lists import TrialList
from dre_plugins.recommend.mixture import Members, Part
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.retrieval import disagreement, draw_tasks
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trust import DISTRUSTED, trust
from dre_plugins.recommend.width import MAX_FEATURES, narrowed
from dre_plugins.space.search_space import SearchSpace

Units = NDArray[np.float64]


class InitialMembers:
    """Make the members that a fit starts from.

    Args:
        space: The search space.
        settings: The recommender's settings.
        units: Canonical coordinates of all trials `[N, P]`.
        lists: What is known of their order, of all objectives as one.
        objectives: The same of each objective alone; empty where there is one.
        priors: Meta-trained scorers: of all objectives as one, or of each of them, None for those
            without; empty where there is none at all.
        weights: Weights of the objectives `[O]`.
        is_table: Whether the candidates are given.
        is_constrained: Whether members of constraints are fitted beside them.
        rng: Source of randomness.
    """

    def __init__(
        self,
        space: SearchSpace,
        settings: RecommenderSettings,
        *,
        units: Units,
        lists: Sequence[TrialList],
        objectives: tuple[Sequence[TrialList], ...],
        priors: Sequence[AlignedPrior | None],
        weights: Units,
        is_table: bool,
        is_constrained: bool,
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._settings = settings
        self._preset = get_preset(settings.preset)
        self._units = units
        self._lists = lists
        self._objectives = objectives
        self._priors = priors
        self._weights = weights
        self._is_table = is_table
        calm = self._preset.under_constraints if is_constrained else None
        self._from_random = calm or self._preset.from_random
        self._rng = rng

    @property
    def n_members(self) -> int:
        """Return how many members the ensemble has: as many as the priors have in common."""
        known = [prior.ensemble.settings.n_members for prior in self._priors if prior]
        return min(known, default=self._preset.scorer.n_members)

    def trusts(self, expected: Units) -> list[float]:
        """Return how far each prior is trusted: by the order of its own objective.

        Args:
            expected: What `Expectation.shares` returned of all trials `[A, N]`.
        """
        own = [self._lists] if len(self._priors) == 1 else self._objectives
        known = [
            lists for lists, prior in zip(own, self._priors, strict=False) if prior is not None
        ]
        return [
            trust(one[lists[0].trials], lists[0].ranks) if lists else 1.0
            for one, lists in zip(expected, known, strict=False)
        ]

    def parts(self, n_trusted: int, trusts: Sequence[float], reference: Units) -> list[Members]:
        """Return the parts of the ensemble.

        Args:
            n_trusted: Members that come from the priors.
            trusts: What `trusts` returned.
            reference: Points that ranks of single objectives are taken against `[K, P]`.
        """
        parts: list[Members] = []
        if n_trusted:
            parts.append(self._from_priors(n_trusted, trusts, reference))
        n_fresh = self.n_members - n_trusted
        if len(self._weights) > 1 and n_fresh > 1:
            # Half of them rank each objective alone and half all of them as one, which together
            # is better than either (docs/decisions.md).
            n_alone = of_objectives(len(self._weights), n_fresh - n_fresh // 2)
            alone = tuple(self.fresh(n_alone) for _ in self._weights)
            parts.append(JointPart(alone, self._objectives, self._weights, reference))
            n_fresh //= 2
        if n_fresh:
            parts.append(self.fresh(n_fresh))
        return parts

    def fresh(self, n_members: int) -> Part:
        """Return members with random weights."""
        return self._random(n_members, self._preset.first_slope)

    def smooth(self, n_members: int) -> Part:
        """Return members with random weights that bend at few places before they are fitted."""
        return self._random(n_members, None)

    def _random(self, n_members: int, first_slope: float | None) -> Part:
        ensemble = DeepRankingEnsemble.initialise(
            replace(self._preset.scorer, n_members=n_members),
            min(self._space.n_features, MAX_FEATURES),
            seed=int(self._rng.integers(2**63)),
            first_slope=first_slope,
            device=self._settings.device,
            n_threads=self._settings.n_threads,
        )
        # Not snapped: what was observed outside today's range is taught where it was.
        return Part(ensemble, self.encode, self._from_random)

    def encode(self, units: Units) -> NDArray[np.float32]:
        """Return what fresh members read of canonical coordinates `[C, P]`, `[C, D]`."""
        return narrowed(self._space.features(units))

    def _from_priors(self, n_members: int, trusts: Sequence[float], reference: Units) -> Members:
        """Return members of the prior; of one for each objective, members that join them.

        Those of objectives whose own prior has lost its credit are fresh.
        """
        if len(self._priors) == 1 and self._priors[0] is not None:
            return self._from_prior(self._priors[0], n_members, self._lists)
        remaining = iter(trusts)
        parts = tuple(
            self._from_prior(prior, n_members, lists)
            if prior is not None and next(remaining) >= DISTRUSTED
            else self.fresh(n_members)
            for prior, lists in zip(self._priors, self._objectives, strict=True)
        )
        weights = self._weights
        if not self._lists:  # nobody knows anything of the others yet
            weights = weights * [prior is not None for prior in self._priors]
        return JointPart(parts, self._objectives, weights, reference)

    def _from_prior(self, prior: AlignedPrior, n_members: int, lists: Sequence[TrialList]) -> Part:
        """Return members of a prior; in a table, in contexts of past tasks that resemble it.

        In a whole space these lead to corners that no member leaves (docs/decisions.md).
        """
        ensemble = prior.ensemble.first(n_members)
        ensemble = ensemble.to(self._settings.device, self._settings.n_threads)
        if self._is_table and lists and prior.contexts is not None:
            main, contexts = lists[0], torch.from_numpy(prior.contexts)
            features = torch.from_numpy(prior.encode(self._units[main.trials]))
            scores = ensemble.scores_by_context(features, contexts)
            wrong = disagreement(scores, torch.from_numpy(main.ranks))
            drawn = draw_tasks(wrong, len(main.trials), n_members, self._rng)
            ensemble = ensemble.with_contexts(contexts[drawn])
            return Part(ensemble, prior.encode, self._preset.from_tasks)
        return Part(ensemble, prior.encode, self._preset.from_prior)
