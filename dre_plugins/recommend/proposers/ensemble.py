"""The proposals of a ranking ensemble that is fitted to the trials.

Its `members` start alike, from a trained prior or from random weights. `JointMembers` rank by all
objectives, by `Members` for each. A `Mixture` ranks by all of them together.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from dre_plugins.engine.acquisition import ACQUISITIONS, rank_statistics
from dre_plugins.engine.settings import get_preset
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.lists import select_fantasies, with_fantasies
from dre_plugins.recommend.members import JointMembers, Members, Mixture
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.schedule import DISTRUSTED, Choice, Request, stream
from dre_plugins.recommend.search import N_PARENTS, Acquisition, CandidatePool, evolved
from dre_plugins.recommend.sketch import MAX_FEATURES
from dre_plugins.space.base import Array, Units
from dre_plugins.space.candidates import recombine, with_fixed
from dre_plugins.space.seen import distinct

# Share of the steps of a fit that are taken when fantasies are added to a fitted ensemble.
REFIT_SHARE = 0.25
# Largest number of members that rank by a single objective, over all objectives.
MAX_SINGLE = 20
# While nothing is observed, recombinations of the best configurations of past tasks replace the
# search: the numbers of rounds, and of children and parents in each round.
N_ROUNDS = 2
N_CHILDREN = 256
N_DONORS = 8


class EnsembleProposer:
    """Propose the candidate of the largest acquisition of an ensemble fitted to the trials.

    A fit that diverges raises a FittingError. The pool is kept for further choices of one fit.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch, self._search = batch, batch.search
        self._rng = stream("ensemble", batch.seed, batch.numbers[0])
        # In the first of the lists fantasies come after the trials, as in the coordinates.
        self._lists, self._units = batch.evidence.lists, batch.evidence.units
        self._n_fits = 0
        self._pool: CandidatePool | None = None
        self._fit(_initial_members(batch, self._reference, self._rng), 1.0)

    def _fit(self, members: Iterable[Members | JointMembers], share: float) -> None:
        self._members = [
            group.fit(self._lists, self._units, int(self._rng.integers(2**63)), share)
            for group in members
        ]
        self._mixture = Mixture(self._members, self._reference)
        self._n_fits += 1
        self._pool = None

    @property
    def _reference(self) -> Units:
        """Return the points `[K, P]` that ranks are taken against."""
        ranked = self._units[self._lists[0].trials] if self._lists else self._units[:0]
        return self._search.reference_with(ranked)

    def fantasize(self, pending: Units) -> None:
        """Fit a little further, to pending trials `[U, P]` at their predicted ranks.

        At most `lists.MAX_FANTASIES` of them are used.
        """
        mean_ranks = self._mixture.mean_ranks
        pending = select_fantasies(pending, lambda units: -mean_ranks(units))
        positions = np.arange(len(self._units), len(self._units) + len(pending))
        self._units = np.concatenate([self._units, pending])
        self._lists = with_fantasies(self._lists, positions, self._units, mean_ranks)
        extended = [group.with_fantasies(positions, self._units) for group in self._members]
        self._fit(extended, REFIT_SHARE)

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest acquisition."""
        acquisition = partial(
            self._acquisition,
            incumbent=self._incumbent_ranks(request.branch, request.fixed),
            index=request.index,
        )
        if request.turn == "exploration":
            far = self._search.far(self._elite, self._batch.evidence.units, self._rng)
            pool = CandidatePool(far, self._predictions(far))
            choice = self._best(pool, acquisition, request)
            if choice.is_new:
                return choice
            request = replace(request, turn="model")
        if self._pool is None or request.taken is None or request.branch is not None:
            self._pool = self._new_pool(acquisition, request)
        return self._best(self._pool, acquisition, request)

    # ---- what plots and reports ask

    @property
    def n_reference(self) -> int:
        """Return the number of points that ranks are taken against."""
        return self._mixture.n_reference

    def ranks(self, units: Units) -> torch.Tensor:
        """Return ranks `[M, C]` of canonical coordinates `[C, P]` against the reference."""
        # Thompson sampling takes the first member: another one after each fit of a batch.
        return self._mixture.ranks(units).roll(1 - self._n_fits, dims=0)

    def predicted(self, units: Units) -> tuple[Array, Array]:
        """Return mean ranks `[C]`, 1 = best of the reference, and their standard errors `[C]`.

        Members that were fitted to the same trials are overconfident: their disagreement is
        multiplied by a factor (`Preset.tempering`) that was measured on validation tasks.
        """
        return self._tempered(self.ranks(units))

    def acquisition_values(self, units: Units) -> Array:
        """Return the acquisition `[C]`, constraints and costs included."""
        values = self._acquisition(self._predictions(units), self._incumbent_ranks())
        return values.numpy().astype(np.float64)

    def _tempered(self, ranks: torch.Tensor) -> tuple[Array, Array]:
        """Return mean `[C]` and standard error `[C]` of ranks `[M, C]`, see `predicted`."""
        mean, spread = rank_statistics(ranks)
        error = get_preset(self._batch.settings.preset).tempering * spread
        return mean.numpy().astype(np.float64), error.numpy().astype(np.float64)

    # ---- acquisition

    def _predictions(self, candidates: Units) -> torch.Tensor:
        """Return ranks and, in the last row, logarithms of `GainWeights` `[M + 1, C]`."""
        units = self._batch.space.canonical(candidates)
        log_weights = torch.from_numpy(self._batch.gain_weights.logs_at(units)).float()
        return torch.cat([self.ranks(units), log_weights[None]])

    def _acquisition(
        self, predictions: torch.Tensor, incumbent: torch.Tensor | None, index: int = 0
    ) -> torch.Tensor:
        """Return the acquisition values of candidates `[C]`, of `_predictions` `[M + 1, C]`.

        Until a trial has met all constraints, the improvement is taken on the worst rank. While
        nothing is observed, the candidate with the best rank is chosen: the first suggestion by
        the mean of all members, the next ones by single members. `incumbent` has the ranks `[M]`
        of the incumbent.
        """
        ranks, log_weights = predictions[:-1], predictions[-1]
        settings, gain_weights = self._batch.settings, self._batch.gain_weights
        if incumbent is None and gain_weights.constraints:
            incumbent = ranks.new_full((len(ranks),), self.n_reference)
            # Far from feasible trials probabilities underflow.
            log_weights = log_weights - log_weights.max()
        if incumbent is None:
            return -ranks.mean(0) if index == 0 else -ranks[(index - 1) % len(ranks)]
        name = settings.acquisition or get_preset(settings.preset).acquisition
        gain = ACQUISITIONS[name](ranks, incumbent)
        if not gain_weights.models:
            return gain
        # A small weight must not raise a negative acquisition.
        return (gain - gain.min().clamp_max(0.0)) * log_weights.exp()

    def _incumbent_ranks(
        self, branch: Units | None = None, fixed: Units | None = None
    ) -> torch.Tensor | None:
        """Return the ranks `[M]` of the incumbent (section 3.4 of the paper), None without one.

        Of a branch, it is the best trial of that branch, if any is eligible, see
        `Evidence.incumbents`. With given coordinates `fixed` `[P]`, all eligible trials are moved
        there first.
        """
        evidence = self._batch.evidence
        best = evidence.incumbents(branch)
        if not len(best):
            return None
        units = self._units[best]
        if fixed is not None and not np.isnan(fixed).all():
            eligible = evidence.lists[0].trials[evidence.may_be_incumbent]
            units = evidence.space.canonical(with_fixed(self._units[eligible], fixed))
        ranks = self.ranks(units)
        return ranks[:, ranks.mean(0).argmin()]

    # ---- candidates

    def _best(self, pool: CandidatePool, acquisition: Acquisition, request: Request) -> Choice:
        units, predictions, is_new = self._search.best(
            pool, self._predictions, acquisition, request, self._rng
        )
        mean, error = self._tempered(predictions[:-1])
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            float(mean[0]),
            float(error[0]),
            self.n_reference,
            self._batch.expectation.prior_weight,
            expected_cost=self._batch.gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    def _new_pool(self, acquisition: Acquisition, request: Request) -> CandidatePool:
        none = np.empty((0, self._batch.space.n_parameters))
        of_priors = [prior.favourites for prior in self._batch.priors if prior is not None]
        favourites = np.concatenate([none, *of_priors])
        drawn = self._rng.random(favourites.shape)
        favourites = np.where(np.isnan(favourites), drawn, favourites)
        # The favourites of a single objective are no compromise with the others.
        is_blind = not self._batch.evidence.lists and len(self._batch.priors) == 1
        if is_blind and self._search.table is None:
            recombined = self._recombined(favourites, acquisition, request)
            if recombined is not None:
                return recombined
        return self._search.pool(
            self._predictions,
            acquisition,
            request,
            self._rng,
            elite=self._elite,
            favourites=favourites,
        )

    def _recombined(
        self, favourites: Units, acquisition: Acquisition, request: Request
    ) -> CandidatePool | None:
        """Return recombinations of the best configurations of past tasks; None if all were tried.

        Values that many tasks agree on, parameter by parameter, are better than the best
        configuration of any one task.
        """
        fixed, space, rule = request.fixed, self._batch.space, self._batch.rule
        donors = rule.kept(with_fixed(favourites, fixed))
        donors = donors[distinct(space.canonical(donors), request.seen)]
        if not len(donors):
            return None

        def children(parents: Units) -> Units:
            return rule.kept(with_fixed(recombine(parents, donors, N_CHILDREN, self._rng), fixed))

        return evolved(donors, self._predictions, acquisition, N_ROUNDS, N_DONORS, children)

    @property
    def _elite(self) -> Units:
        """Return the best trials and fantasies `[E, P]`, first those that may be the incumbent."""
        if not self._lists:
            return self._units[:0]
        first, is_observed = self._lists[0], np.zeros(0, dtype=np.bool_)
        if self._batch.evidence.lists:
            is_observed = self._batch.evidence.may_be_incumbent
        n_fantasies = len(first.trials) - len(is_observed)
        eligible = np.concatenate([is_observed, np.ones(n_fantasies, dtype=np.bool_)])
        return self._units[first.trials[np.lexsort([-first.ranks, ~eligible])[:N_PARENTS]]]


# ---- members before a fit


def _initial_members(
    batch: Batch, reference: Units, rng: np.random.Generator
) -> list[Members | JointMembers]:
    """Return members from the priors, as many as these are trusted, and untrained ones.

    Ranks of single objectives are taken against the reference points `[K, P]`.
    """
    evidence, expectation = batch.evidence, batch.expectation
    groups: list[Members | JointMembers] = []
    if expectation.n_trusted:
        groups.append(_members_of_priors(batch, expectation.n_trusted, reference, rng))
    n_untrained = expectation.n_members - expectation.n_trusted
    weights, lists = evidence.weights, evidence.objective_lists
    if len(weights) > 1 and n_untrained > 1:
        # Half of them rank each objective alone and half all of them as one, which together is
        # better than either (docs/decisions/several-objectives.md).
        n_single = min(max(2, MAX_SINGLE // len(weights)), n_untrained - n_untrained // 2)
        by_objective = tuple(_untrained(batch, n_single, rng) for _ in weights)
        groups.append(JointMembers(by_objective, lists, weights, reference))
        n_untrained //= 2
    if n_untrained:
        groups.append(_untrained(batch, n_untrained, rng))
    return groups


def _members_of_priors(
    batch: Batch, n_members: int, reference: Units, rng: np.random.Generator
) -> Members | JointMembers:
    """Return members of the prior; with a prior for each objective, members that join them.

    Members of an objective whose prior is not trusted any more are untrained.
    """
    priors, evidence = batch.priors, batch.evidence
    if len(priors) == 1 and priors[0] is not None:
        return _members_of_prior(batch, priors[0], n_members)
    trusts = batch.expectation.trusts
    by_objective = tuple(
        _members_of_prior(batch, prior, n_members)
        if prior is not None and trusts[place] >= DISTRUSTED
        else _untrained(batch, n_members, rng)
        for place, prior in enumerate(priors)
    )
    weights = evidence.weights
    if not evidence.lists:  # nothing is known of the other objectives yet
        weights = weights * [prior is not None for prior in priors]
    return JointMembers(by_objective, evidence.objective_lists, weights, reference)


def _members_of_prior(batch: Batch, prior: AlignedPrior, n_members: int) -> Members:
    settings = batch.settings
    ensemble = prior.ensemble.first(n_members).to(settings.device, settings.n_threads)
    return Members(ensemble, prior.encode, get_preset(settings.preset).from_prior)


def _untrained(batch: Batch, n_members: int, rng: np.random.Generator) -> Members:
    """Return members with random weights."""
    settings, preset = batch.settings, get_preset(batch.settings.preset)
    ensemble = DeepRankingEnsemble.initialise(
        replace(preset.scorer, n_members=n_members),
        min(batch.space.n_features, MAX_FEATURES),
        seed=int(rng.integers(2**63)),
        first_slope=preset.first_slope,
        device=settings.device,
        n_threads=settings.n_threads,
    )
    return Members(ensemble, batch.features, preset.from_random)
