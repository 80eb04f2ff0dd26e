"""The ensemble fitted to the trials of a study: `fit_ensemble` and its result.

An `Expectation` ranks by the trained priors alone, and says how far they are trusted. By that a
share of the ensemble's members starts from the priors, and the others are untrained. `Members`
start alike; `JointMembers` rank by all objectives, by `Members` for each. `fit_ensemble` fits
them, and a `Mixture` ranks by all of them together.

Notation: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from dre_plugins.engine.acquisition import ACQUISITIONS, rank_statistics
from dre_plugins.engine.settings import get_preset
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.ensemble.mixture import JointMembers, Members, Mixture
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.lists import TrialList, select_fantasies, with_fantasies
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.schedule import DISTRUSTED
from dre_plugins.recommend.search import N_PARENTS, CandidateSearch
from dre_plugins.recommend.sketch import MAX_FEATURES
from dre_plugins.space.base import Array, Units
from dre_plugins.space.candidates import with_fixed

# Share of the steps of a fit that are taken when fantasies are added to a fitted ensemble.
REFIT_SHARE = 0.25
# Largest number of members that rank by a single objective, over all objectives.
MAX_SINGLE = 20


@dataclass(frozen=True)
class FittedEnsemble:
    """Predict ranks of configurations, and improvements on the incumbent.

    In the first of the lists fantasies come after the trials.
    """

    inputs: ModelInputs
    groups: tuple[Members | JointMembers, ...]  # the fitted members
    lists: list[TrialList]
    units: Units  # canonical coordinates of the trials and of fantasies `[N + U, P]`
    n_fits: int = 1  # how often the members were fitted

    @property
    def n_reference(self) -> int:
        """Return the number of points that ranks are taken against."""
        return self._mixture.n_reference

    def ranks(self, units: Units) -> torch.Tensor:
        """Return ranks `[M, C]` of canonical coordinates `[C, P]` against the reference."""
        # Thompson sampling takes the first member: another one after each fit of a batch.
        return self._mixture.ranks(units).roll(1 - self.n_fits, dims=0)

    def predictions(self, candidates: Units) -> torch.Tensor:
        """Return ranks and, in the last row, logarithms of `GainWeights` `[M + 1, C]`."""
        units = self.inputs.search.space.canonical(candidates)
        log_weights = torch.from_numpy(self.inputs.gain_weights.logs_at(units)).float()
        return torch.cat([self.ranks(units), log_weights[None]])

    def acquisition(
        self, predictions: torch.Tensor, incumbent: torch.Tensor | None, index: int = 0
    ) -> torch.Tensor:
        """Return the acquisition values of candidates `[C]`, of `predictions` `[M + 1, C]`.

        Until a trial has met all constraints, the improvement is taken on the worst rank. While
        nothing is observed, the candidate with the best rank is chosen: the first suggestion by
        the mean of all members, the next ones by single members. `incumbent` has the ranks `[M]`
        of the incumbent.
        """
        ranks, log_weights = predictions[:-1], predictions[-1]
        settings, gain_weights = self.inputs.settings, self.inputs.gain_weights
        if incumbent is None and gain_weights.constraints:
            incumbent = ranks.new_full((len(ranks),), self.n_reference)
            # Far from feasible trials probabilities underflow.
            log_weights = log_weights - log_weights.max()
        if incumbent is None:
            return -ranks.mean(0) if index == 0 else -ranks[(index - 1) % len(ranks)]
        name = settings.acquisition or get_preset(settings.preset).acquisition
        gain = ACQUISITIONS[name](ranks, incumbent)
        if gain_weights.are_one:
            return gain
        # A small weight must not raise a negative acquisition.
        return (gain - gain.min().clamp_max(0.0)) * log_weights.exp()

    def incumbent_ranks(
        self, branch: Units | None = None, fixed: Units | None = None
    ) -> torch.Tensor | None:
        """Return the ranks `[M]` of the incumbent (section 3.4 of the paper), None without one.

        Of a branch, it is the best trial of that branch, if any is eligible, see
        `Evidence.incumbents`. With given coordinates `fixed` `[P]`, all eligible trials are moved
        there first.
        """
        evidence = self.inputs.evidence
        best = evidence.incumbents(branch)
        if not len(best):
            return None
        units = self.units[best]
        if fixed is not None and not np.isnan(fixed).all():
            eligible = evidence.lists[0].trials[evidence.may_be_incumbent]
            units = evidence.space.canonical(with_fixed(self.units[eligible], fixed))
        ranks = self.ranks(units)
        return ranks[:, ranks.mean(0).argmin()]

    def elite(self) -> Units:
        """Return the best trials and fantasies `[E, P]`, first those that may be the incumbent."""
        if not self.lists:
            return self.units[:0]
        first, is_observed = self.lists[0], np.zeros(0, dtype=np.bool_)
        if self.inputs.evidence.lists:
            is_observed = self.inputs.evidence.may_be_incumbent
        n_fantasies = len(first.trials) - len(is_observed)
        eligible = np.concatenate([is_observed, np.ones(n_fantasies, dtype=np.bool_)])
        return self.units[first.trials[np.lexsort([-first.ranks, ~eligible])[:N_PARENTS]]]

    # ---- what plots and reports ask

    def predicted(self, units: Units) -> tuple[Array, Array]:
        """Return mean ranks `[C]`, 1 = best of the reference, and their standard errors `[C]`.

        Members that were fitted to the same trials are overconfident: their disagreement is
        multiplied by a factor (`Preset.tempering`) that was measured on validation tasks.
        """
        return self.tempered(self.ranks(units))

    def tempered(self, ranks: torch.Tensor) -> tuple[Array, Array]:
        """Return mean `[C]` and standard error `[C]` of ranks `[M, C]`, see `predicted`."""
        mean, spread = rank_statistics(ranks)
        error = get_preset(self.inputs.settings.preset).tempering * spread
        return mean.numpy().astype(np.float64), error.numpy().astype(np.float64)

    def acquisition_values(self, units: Units) -> Array:
        """Return the acquisition `[C]`, constraints and costs included."""
        values = self.acquisition(self.predictions(units), self.incumbent_ranks())
        return values.numpy().astype(np.float64)

    # ---- fantasies

    def fantasized(self, pending: Units, rng: np.random.Generator) -> FittedEnsemble:
        """Return the ensemble fitted a little further, to pending trials at their predicted ranks.

        Of their canonical coordinates `[U, P]` at most `lists.MAX_FANTASIES` are taken.
        """
        pending = select_fantasies(pending, lambda units: -self._mixture.mean_ranks(units))
        positions = np.arange(len(self.units), len(self.units) + len(pending))
        units = np.concatenate([self.units, pending])
        lists = with_fantasies(self.lists, positions, units, self._mixture.mean_ranks)
        groups = tuple(
            group.with_fantasies(positions, units).fit(
                lists, units, int(rng.integers(2**63)), REFIT_SHARE
            )
            for group in self.groups
        )
        return replace(self, groups=groups, lists=lists, units=units, n_fits=self.n_fits + 1)

    @cached_property
    def _mixture(self) -> Mixture:
        return Mixture(self.groups, _reference(self.inputs.search, self.lists, self.units))


def fit_ensemble(inputs: ModelInputs, rng: np.random.Generator) -> FittedEnsemble:
    """Return an ensemble fitted to the trials; a FittingError says that the fit diverged."""
    lists, units = inputs.evidence.lists, inputs.evidence.units
    initial = _initial_members(inputs, _reference(inputs.search, lists, units), rng)
    fitted = [group.fit(lists, units, int(rng.integers(2**63)), 1.0) for group in initial]
    return FittedEnsemble(inputs, tuple(fitted), lists, units)


def _initial_members(
    inputs: ModelInputs, reference: Units, rng: np.random.Generator
) -> list[Members | JointMembers]:
    """Return members from the priors, as many as these are trusted, and untrained ones.

    Ranks of single objectives are taken against the reference points `[K, P]`.
    """
    evidence, expectation = inputs.evidence, inputs.expectation
    groups: list[Members | JointMembers] = []
    if expectation.n_trusted:
        groups.append(_members_of_priors(inputs, expectation.n_trusted, reference, rng))
    n_untrained = expectation.n_members - expectation.n_trusted
    weights, lists = evidence.weights, evidence.objective_lists
    if len(weights) > 1 and n_untrained > 1:
        # Half of them rank each objective alone and half all of them as one, which together is
        # better than either (docs/decisions/several-objectives.md).
        n_single = min(max(2, MAX_SINGLE // len(weights)), n_untrained - n_untrained // 2)
        by_objective = tuple(_untrained(inputs, n_single, rng) for _ in weights)
        groups.append(JointMembers(by_objective, lists, weights, reference))
        n_untrained //= 2
    if n_untrained:
        groups.append(_untrained(inputs, n_untrained, rng))
    return groups


def _members_of_priors(
    inputs: ModelInputs, n_members: int, reference: Units, rng: np.random.Generator
) -> Members | JointMembers:
    """Return members of the prior; with a prior for each objective, members that join them.

    Members of an objective whose prior is not trusted any more are untrained.
    """
    priors, evidence = inputs.priors, inputs.evidence
    if len(priors) == 1 and priors[0] is not None:
        return _members_of_prior(inputs, priors[0], n_members)
    trusts = inputs.expectation.trusts
    by_objective = tuple(
        _members_of_prior(inputs, prior, n_members)
        if prior is not None and trusts[place] >= DISTRUSTED
        else _untrained(inputs, n_members, rng)
        for place, prior in enumerate(priors)
    )
    weights = evidence.weights
    if not evidence.lists:  # nothing is known of the other objectives yet
        weights = weights * [prior is not None for prior in priors]
    return JointMembers(by_objective, evidence.objective_lists, weights, reference)


def _members_of_prior(inputs: ModelInputs, prior: AlignedPrior, n_members: int) -> Members:
    settings = inputs.settings
    ensemble = prior.ensemble.first(n_members).to(settings.device, settings.n_threads)
    return Members(ensemble, prior.encode, get_preset(settings.preset).from_prior)


def _untrained(inputs: ModelInputs, n_members: int, rng: np.random.Generator) -> Members:
    """Return members with random weights."""
    settings, preset = inputs.settings, get_preset(inputs.settings.preset)
    ensemble = DeepRankingEnsemble.initialise(
        replace(preset.scorer, n_members=n_members),
        min(inputs.evidence.space.n_features, MAX_FEATURES),
        seed=int(rng.integers(2**63)),
        first_slope=preset.first_slope,
        device=settings.device,
        n_threads=settings.n_threads,
    )
    return Members(ensemble, inputs.features, preset.from_random)


def _reference(search: CandidateSearch, lists: Sequence[TrialList], units: Units) -> Units:
    """Return the reference points `[K, P]` of fitted members."""
    observed = lists[0].trials if lists else np.empty(0, dtype=np.intp)
    return search.reference_with(units[observed])
