"""The members of an ensemble before they are fitted: a share from the priors, by their trust.

In a table, each member of a prior reads the context of one past task. Tasks are drawn with larger
probability the better the scorers, in their context, order the observed trials, and the more so
the more trials there are. With few trials the tasks vary, so that the members' disagreement
expresses the uncertainty about the task.

Notation: see docs/architecture.md; `T` contexts of past tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from dre_plugins.engine.settings import get_preset
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.ensemble.mixture import JointPart, Members, Part
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.lists import TrialList
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.schedule import DISTRUSTED
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space.base import Features, Positions, Units

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
            return self._from_prior(priors[0], n_members, evidence.lists)
        objective_lists, trusts = evidence.objective_lists, self.inputs.expectation.trusts
        parts = tuple(
            self._from_prior(prior, n_members, lists)
            if prior is not None and trusts[place] >= DISTRUSTED
            else self.untrained(n_members)
            for place, (prior, lists) in enumerate(zip(priors, objective_lists, strict=True))
        )
        weights = evidence.weights
        if not evidence.lists:  # nothing is known of the other objectives yet
            weights = weights * [prior is not None for prior in priors]
        return JointPart(parts, objective_lists, weights, reference)

    def _from_prior(self, prior: AlignedPrior, n_members: int, lists: Sequence[TrialList]) -> Part:
        """Return members of a prior; in a table, in contexts of past tasks that resemble it.

        In a whole space these lead to corners that no member leaves
        (docs/decisions/table-contexts.md).
        """
        settings, is_table = self.inputs.settings, self.inputs.search.candidates is not None
        preset, ensemble = get_preset(settings.preset), prior.ensemble.first(n_members)
        ensemble = ensemble.to(settings.device, settings.n_threads)
        if is_table and lists and prior.contexts is not None:
            main, contexts = lists[0], torch.from_numpy(prior.contexts)
            features = torch.from_numpy(prior.encode(self.inputs.evidence.units[main.trials]))
            scores = ensemble.scores_by_context(features, contexts)
            wrong = disagreement(scores, torch.from_numpy(main.ranks))
            drawn = draw_tasks(wrong, len(main.trials), n_members, self.rng)
            ensemble = ensemble.with_contexts(contexts[drawn])
            return Part(ensemble, prior.encode, preset.from_tasks)
        return Part(ensemble, prior.encode, preset.from_prior)


# How much each observed trial sharpens the weights of tasks: with a tenth more of all pairs in the
# wrong order, the weight is multiplied by exp(-SHARPNESS · N / 10).
SHARPNESS = 1.6


def disagreement(scores: torch.Tensor, ranks: torch.Tensor) -> torch.Tensor:
    """Return the share of pairs of trials that each task's scores order wrongly `[T]`.

    Scores under each context `[T, N]` and observed ranks `[N]` are larger is better.
    """
    is_better = ranks[:, None] > ranks[None, :]
    is_wrong = is_better & (scores[:, :, None] < scores[:, None, :])
    return is_wrong.sum((1, 2)).float() / is_better.sum().clamp_min(1)


def draw_tasks(
    wrong: torch.Tensor, n_trials: int, n_members: int, rng: np.random.Generator
) -> Positions:
    """Draw a past task for each member `[M]`, more often the fewer pairs it orders wrongly.

    `wrong` is the `disagreement` of each task `[T]`. The order of the result is random.
    """
    weights = torch.softmax(-SHARPNESS * n_trials * wrong.double(), dim=0).numpy()
    # Evenly spaced quantiles: ten independent draws would often leave out a likely task.
    quantiles = (np.arange(n_members) + rng.random()) / n_members
    drawn = np.searchsorted(weights.cumsum(), quantiles).clip(max=len(weights) - 1)
    return rng.permutation(drawn)
