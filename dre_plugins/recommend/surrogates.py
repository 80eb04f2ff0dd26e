"""The surrogates of one batch of suggestions: who proposes each of them, and where.

Notation: see docs/architecture.md. This module and what it imports need torch, so that it is
imported at the first suggestion that asks a model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dre_plugins.recommend.branches import branch_to_try
from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.ensemble.fitted import FittedEnsemble, fit_ensemble
from dre_plugins.recommend.prior import AlignedPrior, Universal
from dre_plugins.recommend.proposers import Batch, Proposer, Proposers, Request
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.proposers.space_filling import SpaceFilling
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.recommend.schedule import (
    TurnRules,
    is_branch_turn,
    is_contrast_due,
    proposer_for,
)
from dre_plugins.recommend.search import CandidateSearch
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.streams import Purpose, stream
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.seen import Seen

Units = NDArray[np.float64]


class Surrogates:
    """Say who proposes each suggestion of a batch, and fit the proposers when they are asked.

    Args:
        batch: What is wanted.
        rules: What the user chose about turns.
        priors: Meta-trained scorers of past tasks, see `Expectation`.
        universal: The universal prior.
        settings: The recommender's settings.
        seed: Seed of the study.

    Attributes:
        proposers: The proposers, by name.
    """

    def __init__(
        self,
        batch: Batch,
        rules: TurnRules,
        *,
        priors: Sequence[AlignedPrior | None],
        universal: Universal,
        settings: RecommenderSettings,
        seed: int,
    ) -> None:
        self._batch = batch
        self._rules = rules
        self._priors = priors
        self._universal = universal
        self._settings = settings
        self._seed = seed
        self._search = CandidateSearch(batch.evidence.space, batch.candidates, seed)
        self._expectation = Expectation(priors, self._search.reference, settings, batch.evidence)
        self.proposers = Proposers(
            {
                "space-filling": self._space_filling,
                "ensemble": self._ensemble_proposer,
                "universal-prior": self._universal_proposer,
            }
        )

    def ensemble(self) -> FittedEnsemble:
        """Return the fitted ensemble.

        Raises:
            FittingError: If the fit diverged.
        """
        rng = self._stream("ensemble")
        evidence, settings = self._batch.evidence, self._settings
        return fit_ensemble(evidence, self._expectation, self._search, settings, rng)

    def request(self, number: int, seen: Seen, chosen: Units) -> Request:
        """Return who is asked for the suggestion of a number, and where it must lie.

        Args:
            number: Number of the suggestion.
            seen: Configurations not to suggest again.
            chosen: Canonical coordinates of what the batch has chosen before `[T, P]`.
        """
        batch, branch = self._batch, self._branch(number, chosen)
        is_free = branch is None and bool(np.isnan(batch.fixed).all())
        turn = proposer_for(
            number,
            batch.evidence,
            self._rules,
            needs_contrast=self._needs_contrast(chosen),
            may_explore=is_free and self._search.table is None,
        )
        return Request(
            number,
            turn,
            seen,
            batch.fixed,
            branch,
            chosen if batch.shares_fit else None,
            self._expectation.prior_weight if turn == "contrast" else None,
        )

    def _branch(self, number: int, chosen: Units) -> Units | None:
        """Return the branch that a suggestion must look into, if any, see `branches`.

        Where values or candidates are given, there is no choice of branches; a prior of past
        tasks knows which of them are worth a trial (lab/2026-11-23-branches.md); and suggestions
        that share a fit are chosen from one pool.
        """
        batch = self._batch
        is_given = batch.candidates is not None or not np.isnan(batch.fixed).all()
        if is_given or self._priors or batch.shares_fit or not is_branch_turn(number):
            return None
        evidence = batch.evidence
        pending = [Trial({}, TrialState.RUNNING)] * len(chosen)
        units = np.concatenate([evidence.units, chosen])
        return branch_to_try(evidence.space, (*evidence.trials, *pending), units)

    def _needs_contrast(self, chosen: Units) -> bool:
        """Return whether too little is known of where the priors expect nothing, see `trust`."""
        batch = self._batch
        if not self._priors or (batch.shares_fit and len(chosen)):
            return False
        units = np.concatenate([batch.evidence.units, chosen])
        shares = self._expectation.shares(units).mean(0)
        return len(shares) > 0 and is_contrast_due(shares, self._expectation.trust)

    def _space_filling(self) -> Proposer:
        return SpaceFilling(self._batch.evidence.space, self._seed, self._batch.candidates)

    def _ensemble_proposer(self) -> Proposer:
        rng = self._stream("ensemble")
        evidence, settings = self._batch.evidence, self._settings
        return EnsembleProposer(evidence, self._expectation, self._search, settings, rng)

    def _universal_proposer(self) -> Proposer:
        rng, evidence = self._stream("universal-prior"), self._batch.evidence
        expectation, search = self._expectation, self._search
        return UniversalProposer(self._universal, evidence, expectation, search, rng)

    def _stream(self, purpose: Purpose) -> np.random.Generator:
        return stream(purpose, self._seed, self._batch.numbers[0])
