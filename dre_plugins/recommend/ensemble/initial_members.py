"""The members of an ensemble before they are fitted: a share from the priors, by their trust.

Notation: see docs/architecture.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from dre_plugins.engine.settings import get_preset
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.ensemble.mixture import JointPart, Members, Part
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.schedule import DISTRUSTED
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space.base import Features, Units

# Largest number of members that rank by a single objective, over all objectives.
MAX_SINGLE = 20


@dataclass(frozen=True, eq=False)
class InitialMembers:
    """Make the members that a fit starts from."""

    inputs: ModelInputs
    rng: np.random.Generator

    def parts(self, reference: Units) -> list[Members]:
        """Return the ensemble's parts: the priors' as far as they are trusted, and untrained ones.

        Ranks of single objectives are taken against the reference points `[K, P]`.
        """
        evidence, expectation = self.inputs.evidence, self.inputs.expectation
        n_members, n_trusted = expectation.n_members, expectation.n_trusted
        parts: list[Members] = []
        if n_trusted:
            parts.append(self._from_priors(n_trusted, reference))
        n_untrained = n_members - n_trusted
        weights, lists = evidence.weights, evidence.objective_lists
        if len(weights) > 1 and n_untrained > 1:
            # Half of them rank each objective alone and half all of them as one, which together
            # is better than either (docs/decisions/several-objectives.md).
            n_single = min(max(2, MAX_SINGLE // len(weights)), n_untrained - n_untrained // 2)
            by_objective = tuple(self.untrained(n_single) for _ in weights)
            parts.append(JointPart(by_objective, lists, weights, reference))
            n_untrained //= 2
        if n_untrained:
            parts.append(self.untrained(n_untrained))
        return parts

    def untrained(self, n_members: int) -> Part:
        """Return members with random weights."""
        settings = self.inputs.settings
        preset = get_preset(settings.preset)
        ensemble = DeepRankingEnsemble.initialise(
            replace(preset.scorer, n_members=n_members),
            min(self.inputs.evidence.space.n_features, MAX_FEATURES),
            seed=int(self.rng.integers(2**63)),
            first_slope=preset.first_slope,
            device=settings.device,
            n_threads=settings.n_threads,
        )
        # Units are not snapped: observations outside the present range keep their place.
        return Part(ensemble, self.encode, preset.from_random)

    def encode(self, units: Units) -> Features:
        """Return what untrained members read of canonical coordinates `[C, P]`, `[C, D]`."""
        return sketched(self.inputs.evidence.space.features(units))

    def _from_priors(self, n_members: int, reference: Units) -> Members:
        """Return members of the prior; with a prior for each objective, members that join them.

        Members of an objective whose prior is not trusted any more are untrained.
        """
        priors, evidence = self.inputs.priors, self.inputs.evidence
        if len(priors) == 1 and priors[0] is not None:
            return self._from_prior(priors[0], n_members)
        trusts = self.inputs.expectation.trusts
        parts = tuple(
            self._from_prior(prior, n_members)
            if prior is not None and trusts[place] >= DISTRUSTED
            else self.untrained(n_members)
            for place, prior in enumerate(priors)
        )
        weights = evidence.weights
        if not evidence.lists:  # nothing is known of the other objectives yet
            weights = weights * [prior is not None for prior in priors]
        return JointPart(parts, evidence.objective_lists, weights, reference)

    def _from_prior(self, prior: AlignedPrior, n_members: int) -> Part:
        settings = self.inputs.settings
        ensemble = prior.ensemble.first(n_members).to(settings.device, settings.n_threads)
        return Part(ensemble, prior.encode, get_preset(settings.preset).from_prior)
