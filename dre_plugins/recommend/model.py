"""The surrogate's side of a suggestion: lists → fit → candidates → acquisition → choice.

Notation: see docs/architecture.md. Of `recommend/`, only this file, `universal_model.py` and what
they alone use (`initial_members.py`, `expectation.py`, `mixture.py`, `joint.py`, `feasibility.py`,
`search.py`) import torch, at the first suggestion that needs them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.engine.acquisition import get_acquisition, rank_statistics
from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.effort import of_constraints
from dre_plugins.recommend.expectation import Expectation
from dre_plugins.recommend.feasibility import Feasibility, constraints_of
from dre_plugins.recommend.initial_members import InitialMembers
from dre_plugins.recommend.lists import TrialList, leading, trial_lists, with_believed
from dre_plugins.recommend.mixture import Members, Mixture, fit_all
from dre_plugins.recommend.noise import repetition_keys, without_noise
from dre_plugins.recommend.pareto import objective_alone
from dre_plugins.recommend.pending import believed
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.search import (
    N_PARENTS,
    CandidateSearch,
    Choice,
    Value,
    bred,
)
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.stagnation import is_exploration_due
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.recommend.trust import is_contrast_due
from dre_plugins.space.candidates import (
    recombine,
    with_fixed,
)
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen, distinct

Units = NDArray[np.float64]

# While nothing is observed, mixtures of what was best in past tasks take the place of the search.
N_MIXINGS = 2
N_MIXTURES = 256
N_MIXED = 8
# A believed pending trial needs a nudge, not a new fit.
REFIT_SHARE = 0.25


class RankingModel:
    """Choose configurations by a fitted ensemble.

    Args:
        space: The search space.
        settings: The recommender's settings.
        history: Trials of all states, larger values are better.
        units: Canonical coordinates of their configurations `[N, P]`.
        priors: Meta-trained scorers to start from: of all objectives as one, or of each of them,
            None for those without; empty starts from random weights, which needs at least one
            trial that can be ranked.
        weights: Weights of the objectives `[O]`.
        candidates: All that may be chosen `[C, P]`; None searches the space.
        reference_seed: Seed of the reference points: the same for all suggestions of a study.
        rng: Source of all other randomness of this suggestion.

    Attributes:
        prior_weight: Share of the members that came from the priors; None without any.
    """

    # The pool of the last choice, and its judgement, until the members are fitted again.
    _kept: tuple[Units, torch.Tensor] | None

    def __init__(
        self,
        space: SearchSpace,
        settings: RecommenderSettings,
        history: Sequence[Trial],
        units: Units,
        *,
        priors: Sequence[AlignedPrior | None],
        weights: Units,
        candidates: Units | None = None,
        reference_seed: int,
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._settings = settings
        self._rng = rng
        self._preset = get_preset(settings.preset)
        self._acquisition = get_acquisition(settings.acquisition or self._preset.acquisition)
        self._lists = trial_lists(history, failed=settings.failed, max_length=settings.max_history)
        self._units = units
        self._n_observed = len(units)
        self._n_fits = 0
        self._search = CandidateSearch(space, candidates, rng)
        self._reference = self._search.reference(reference_seed)
        self._priors = priors
        self._weights = weights
        self._objectives = tuple(
            trial_lists(
                without_noise(objective_alone(history, k), repetition_keys(units)),
                failed=settings.failed,
                max_length=settings.max_history,
            )
            for k in range(len(weights) if len(weights) > 1 else 0)
        )
        self._constraints = [one for one in constraints_of(history) if not one.is_met.all()]
        # Of the trials of the first list; those that are believed later come after them.
        self._leads = leading(history, self._lists[0]) if self._lists else np.empty(0, np.bool_)
        has_ended = [trial.state is not TrialState.RUNNING for trial in history]
        self._has_ended = np.array(has_ended, dtype=np.bool_)
        self._feasibilities: list[Feasibility] = []
        self._initial = InitialMembers(
            space,
            settings,
            units=units,
            lists=self._lists,
            objectives=self._objectives,
            priors=priors,
            weights=weights,
            is_table=candidates is not None,
            is_constrained=bool(self._constraints),
            rng=rng,
        )
        self._expectation = Expectation(priors, self._reference, settings)
        self._expected = self._expectation.shares(units)
        # Running trials join when they are believed, so that each trial counts once.
        self._scheduled = self._expected[:, self._has_ended]
        parts = self._initial_parts()
        # Members of constraints are fitted once, in one batch with fresh ones of the objective.
        # Their boundary is one surface: members that bend at many places doubt all of it.
        n_members, length = self._constraint_effort()
        fresh = [self._initial.smooth(n_members) for _ in self._constraints]
        violations = [[constraint.list(length)] for constraint in self._constraints]
        lists = [self._lists] * len(parts)
        most = settings.max_history
        if any(length < min(len(each.trials), most) for each in self._constraints):
            # One batch would pad lists that were shortened, see `effort`.
            fitted = self._fitted(parts, lists, 1.0) + self._fitted(fresh, violations, 1.0)
        else:
            fitted = self._fitted([*parts, *fresh], lists + violations, 1.0)
        self._use(fitted[: len(parts)])
        self._feasibilities = [
            Feasibility(constraint, units, [members], self._reference)
            for constraint, members in zip(self._constraints, fitted[len(parts) :], strict=True)
        ]

    @property
    def needs_contrast(self) -> bool:
        """Whether too little is known of where the prior expects nothing, see `trust`."""
        expected = self._scheduled.mean(0) if len(self._scheduled) else np.empty(0)
        return len(expected) > 0 and is_contrast_due(expected, self._trust())

    @property
    def n_reference(self) -> int:
        """Return the number of points that ranks are taken against."""
        return self._mixture.n_reference

    @property
    def _has_observed(self) -> bool:
        """Whether any trial could be ranked."""
        return any((one.trials < self._n_observed).any() for one in self._lists)

    def believe(self, units: Units) -> None:
        """Believe unfinished trials at their predicted ranks, and fit a little further.

        Args:
            units: Canonical coordinates of the unfinished trials `[U, P]`, of which at most
                `pending.N_BELIEVED` are believed.

        Raises:
            FittingError: If the fit diverged.
        """
        units = believed(units, lambda all_units: -self._mixture.mean_ranks(all_units))
        positions = np.arange(len(self._units), len(self._units) + len(units))
        self._units = np.concatenate([self._units, units])
        shares = self._expectation.shares(units)
        self._scheduled = np.concatenate([self._scheduled, shares], axis=1)
        self._lists = with_believed(
            self._lists, positions, lambda at: self._mixture.mean_ranks(self._units[at])
        )
        parts = [part.believing(positions, self._units) for part in self._parts]
        self._use(self._fitted(parts, [self._lists] * len(parts), REFIT_SHARE))

    def choose(
        self,
        seen: Seen,
        fixed: Units,
        index: int,
        *,
        taken: Units | None = None,
        branch: Units | None = None,
    ) -> Choice:
        """Choose the candidate of the largest acquisition.

        Args:
            index: Number of the suggestion. While nothing is observed, the first one is the
                favourite of all members, the next ones are those of single members.
            seen: Configurations not to suggest again.
            fixed: Coordinates that every candidate must have `[P]`, NaN where it is free.
            taken: Canonical coordinates of what was chosen since the last fit `[T, P]`; then all
                are chosen from one pool.

        Raises:
            FloatingPointError: If the ensemble's scores are not finite.
        """
        value = self._value(self.incumbent(branch), index)
        is_free = branch is None and bool(np.isnan(fixed).all())
        explores, is_new = is_free and self._is_exploration_due(index), False
        if explores:
            pool = self._search.far(self._elite(), self._units[: self._n_observed])
            units, judged, is_new = self._best(pool, self._judge(pool), value, seen, fixed, taken)
        if not is_new:  # nothing to explore, or all that is far was tried
            explores = False
            if branch is not None or taken is None or self._kept is None:
                self._kept = self._pool(value, seen, fixed, branch)
            units, judged, is_new = self._best(*self._kept, value, seen, fixed, taken)
        mean, spread = self._tempered(judged[:-1])
        source = "exploration" if explores else "model" if self._has_observed else "prior"
        return Choice(units, float(mean[0]), float(spread[0]), is_new, source)

    def _best(
        self,
        pool: Units,
        judged: torch.Tensor,
        value: Value,
        seen: Seen,
        fixed: Units,
        taken: Units | None,
    ) -> tuple[Units, torch.Tensor, bool]:
        """Return the best new candidate of a pool, see `CandidateSearch.best`."""
        return self._search.best(
            pool, judged, self._judge, value, seen=seen, fixed=fixed, taken=taken
        )

    def predicted(self, units: Units) -> tuple[Units, Units]:
        """Return what ranks configurations are expected to have, and the standard error.

        Members that were fitted to the same trials agree more than they are right: their
        disagreement is tempered by a factor that was measured on validation tasks.

        Args:
            units: Canonical coordinates `[C, P]`.

        Returns:
            Mean ranks `[C]`, 1 = best of the reference, and standard errors `[C]`.
        """
        return self._tempered(self._ranks(units))

    def member_ranks(self, units: Units) -> Units:
        """Return the ranks `[M, C]` that each member gives, of canonical coordinates `[C, P]`."""
        return self._ranks(units).numpy().astype(np.float64)

    def worth(self, units: Units) -> Units:
        """Return the acquisition `[C]`, with the chance to meet all constraints.

        Args:
            units: Canonical coordinates `[C, P]`.
        """
        return self._value(self.incumbent(), 0)(self._judge(units)).numpy().astype(np.float64)

    def _tempered(self, ranks: torch.Tensor) -> tuple[Units, Units]:
        mean, spread = rank_statistics(ranks)
        error = self._preset.tempering * spread
        return mean.numpy().astype(np.float64), error.numpy().astype(np.float64)

    def _trust(self) -> float:
        """Return how far the priors are trusted after what was observed, on average."""
        trusts = self._initial.trusts(self._expected)
        return sum(trusts) / len(trusts) if trusts else 0.0

    def _constraint_effort(self) -> tuple[int, int]:
        """Return members and list length of each constraint."""
        n_members, longest = self._preset.scorer.n_members, self._settings.max_history
        if not self._constraints:
            return n_members, longest
        length = min(longest, max(len(constraint.trials) for constraint in self._constraints))
        n_others = self._initial.n_members * (1 + len(self._weights)) // 2
        return of_constraints(len(self._constraints), n_members, length, n_others)

    def _initial_parts(self) -> list[Members]:
        """Return the members before they are fitted: the prior's as far as it is trusted."""
        n_members = self._initial.n_members
        n_trusted = round(self._trust() * n_members) if self._priors else 0
        self.prior_weight = n_trusted / n_members if self._priors else None
        trusts = self._initial.trusts(self._expected)
        return self._initial.parts(n_trusted, trusts, self._resolving_reference())

    def _fitted(
        self, parts: Sequence[Members], lists: Sequence[list[TrialList]], share: float
    ) -> list[Members]:
        """Return parts fitted to lists, each to its own."""
        return fit_all(parts, lists, self._units, [self._seed() for _ in parts], share)

    def _use(self, parts: list[Members]) -> None:
        """Rank by these parts, against the reference points as they score them."""
        self._parts = parts
        self._kept = None
        self._mixture = Mixture(parts, self._resolving_reference())
        # Thompson sampling takes the first member: another one after each fit of a batch.
        self._n_fits += 1

    def _resolving_reference(self) -> Units:
        """Return the reference points `[K, P]` of fitted members."""
        observed = self._lists[0].trials if self._lists else np.empty(0, dtype=np.intp)
        return self._search.resolving(self._reference, self._units[observed])

    def _value(self, incumbent: torch.Tensor | None, index: int) -> Value:
        """Return what turns judgements `[M + 1, C]` into what candidates are worth `[C]`.

        Until something met all constraints, the chance to meet them is all that counts.
        """
        if incumbent is not None:
            return lambda judged: self._constrained(
                self._acquisition(judged[:-1], incumbent), judged[-1]
            )
        if self._feasibilities:
            return lambda judged: judged[-1]
        if index == 0:
            return lambda judged: -judged[:-1].mean(0)
        return lambda judged: -judged[(index - 1) % (len(judged) - 1)]

    def _constrained(self, value: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
        """Return the expected constrained improvement `[C]`."""
        if not self._feasibilities:
            return value
        # Some acquisitions are negative, of which a small share would be a gain.
        return (value - value.min().clamp_max(0.0)) * chance

    def _pool(
        self, value: Value, seen: Seen, fixed: Units, branch: Units | None
    ) -> tuple[Units, torch.Tensor]:
        """Return candidates `[C, P]` and their judgement `[M + 1, C]`."""
        favourites = self._favourites()
        # The favourites of one objective alone are no compromise with the others.
        is_prior_alone = not self._has_observed and len(self._priors) == 1
        if is_prior_alone and self._search.table is None:
            pool = with_fixed(favourites, fixed)
            pool = pool[distinct(self._space.canonical(pool), seen)]
            if len(pool):
                # What many tasks agree on, one by one, is better than what any single one had.
                def mixtures(parents: Units) -> Units:
                    return with_fixed(recombine(parents, pool, N_MIXTURES, self._rng), fixed)

                return bred(pool, self._judge, value, N_MIXINGS, N_MIXED, mixtures)
        elite = self._elite()
        if branch is not None:
            elite = elite[is_within(elite, branch)]
        return self._search.pool(
            self._judge, value, elite=elite, favourites=favourites, fixed=fixed, branch=branch
        )

    def _is_exploration_due(self, index: int) -> bool:
        # The best of several objectives is another one for each suggestion, and far from what
        # was tried is where constraints are least known (docs/decisions.md).
        if self._search.table is not None or len(self._weights) > 1 or self._constraints:
            return False
        best = self._incumbents()
        if not len(best):
            return False
        return is_exploration_due(int(self._has_ended[best.min() + 1 :].sum()), index)

    def _favourites(self) -> Units:
        """Return what was best in past tasks `[F, P]`, with draws where the prior says nothing."""
        favourites = [prior.favourites for prior in self._priors if prior is not None]
        known = np.concatenate([np.empty((0, self._space.n_parameters)), *favourites])
        return np.where(np.isnan(known), self._rng.random(known.shape), known)

    def incumbent(self, branch: Units | None = None) -> torch.Tensor | None:
        """Return the ranks `[M]` of the best observed configuration (section 3.4), if any.

        Args:
            branch: Where it must lie, if any trial that counts does, see `branches`.
        """
        best = self._incumbents(branch)
        if not len(best):
            return None
        ranks = self._ranks(self._units[best])
        return ranks[:, ranks.mean(0).argmin()]

    def _incumbents(self, branch: Units | None = None) -> NDArray[np.intp]:
        """Return positions of the best trials that may lead, see `lists.leading`.

        Args:
            branch: Where they must lie, if any that may lead does.
        """
        if not self._leads.any():
            return np.empty(0, dtype=np.intp)
        main, n_observed = self._lists[0], len(self._leads)
        trials, ranks, leads = main.trials[:n_observed], main.ranks[:n_observed], self._leads
        if branch is not None:
            within = leads & is_within(self._units[trials], branch)
            leads = within if within.any() else leads
        best: NDArray[np.intp] = trials[leads & (ranks == ranks[leads].max())]
        return best

    def _elite(self) -> Units:
        """Return the best trials of the first list `[E, P]`, first those that may lead."""
        if not self._lists:
            return self._units[:0]
        main = self._lists[0]
        n_believed = len(main.trials) - len(self._leads)
        leads = np.concatenate([self._leads, np.ones(n_believed, dtype=np.bool_)])
        return self._units[main.trials[np.lexsort([-main.ranks, ~leads])[:N_PARENTS]]]

    def _judge(self, pool: Units) -> torch.Tensor:
        """Return ranks, and last the chances to meet all constraints, `[M + 1, C]`."""
        units = self._space.canonical(pool)
        chance = torch.ones(len(pool), dtype=torch.float32)
        for one in self._feasibilities:
            chance = chance * one.probability(units)
        return torch.cat([self._ranks(units), chance[None]])

    def _ranks(self, units: Units) -> torch.Tensor:
        """Return ranks `[M, C]` of canonical coordinates `[C, P]` against the reference."""
        return self._mixture.ranks(units).roll(1 - self._n_fits, dims=0)

    def _seed(self) -> int:
        return int(self._rng.integers(2**63))
