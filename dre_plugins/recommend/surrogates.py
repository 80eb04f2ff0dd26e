"""The models of one batch of suggestions: make proposers and let them choose.

Notation: see docs/architecture.md. This module needs torch, so it is imported only when a model
first proposes.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend import schedule
from dre_plugins.recommend.branches import branch_to_try
from dre_plugins.recommend.ensemble.fitted import FittedEnsemble, fit_ensemble
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.proposers.past import PastProposer
from dre_plugins.recommend.proposers.space_filling import SpaceFilling
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.recommend.requests import Choice, Proposer, Purpose, Request, stream
from dre_plugins.recommend.schedule import Turn, TurnRules
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Units
from dre_plugins.space.seen import Seen

# The ensemble has all turns but those of another model's name, and those of space-filling points.
MODELS: Mapping[Purpose, Callable[[ModelInputs, np.random.Generator], Proposer]] = {
    "ensemble": EnsembleProposer,
    "universal-prior": UniversalProposer,
    "past-studies": PastProposer,
}


class Surrogates:
    """Make the choices of a batch; a proposer is fitted on first use.

    A fit that diverges raises a FittingError.
    """

    def __init__(self, inputs: ModelInputs, rules: TurnRules) -> None:
        self.inputs, self._rules, self._batch = inputs, rules, inputs.batch
        self._proposers: dict[Purpose, Proposer] = {}
        pending = self._batch.evidence.pending
        self._pending = [pending] if len(pending) else []
        self._n_fantasized: Counter[Purpose] = Counter()

    def choices(self) -> list[Choice]:
        """Return the choices of the batch one after the other, different from each other."""
        batch, seen, chosen = self._batch, self._batch.seen(), self._batch.evidence.units[:0]
        choices: list[Choice] = []
        # Isolates ranks and acquisitions, too: with several threads an operation on such small
        # tensors can wait for 10 ms, and the user's default device may be any.
        with isolated("cpu", self.inputs.settings.n_threads):
            for number in batch.numbers:
                request = self._request(number, seen, chosen)
                proposer = self._proposer(request.turn)
                choice = proposer.propose(request)
                if request.branch is not None and not choice.is_new:
                    choice = proposer.propose(replace(request, branch=None))
                choices.append(choice)
                new = batch.evidence.space.canonical(choice.units[None])
                chosen = np.concatenate([chosen, new])
                if not batch.shares_fit:
                    self._pending.append(new)
                if not batch.may_repeat:
                    seen.include(new)
        return choices

    def fitted_ensemble(self) -> FittedEnsemble:
        """Return the ensemble fitted to the evidence."""
        return fit_ensemble(self.inputs, self._stream("ensemble"))

    # ---- what is asked for: whose turn it is, and in which branch

    def _request(self, number: int, seen: Seen, chosen: Units) -> Request:
        batch, branch = self._batch, self._branch(number, chosen)
        is_free = branch is None and bool(np.isnan(batch.fixed).all())
        rules = self._rules
        if self.inputs.contradicts_past_tasks:
            rules = replace(rules, has_past_tasks=False)
        turn = schedule.proposer_for(
            number,
            batch.evidence,
            rules,
            needs_contrast=self._needs_contrast(chosen),
            may_explore=is_free and self.inputs.search.table is None,
        )
        taken = chosen if batch.shares_fit else None
        return Request(number, turn, seen, batch.fixed, branch, taken)

    def _branch(self, number: int, chosen: Units) -> Units | None:
        """Return the branch that a suggestion must look into, if any, see `branches`.

        There is none if values or candidates are given, if suggestions share a fit and so a pool,
        or with a trained prior, which knows the good branches (lab/2026-11-23-branches.md).
        """
        batch = self._batch
        is_given = batch.candidates is not None or not np.isnan(batch.fixed).all()
        has_priors = bool(self.inputs.priors)
        if is_given or has_priors or batch.shares_fit or not schedule.is_branch_turn(number):
            return None
        evidence = batch.evidence
        pending = [Trial({}, TrialState.RUNNING)] * len(chosen)
        units = np.concatenate([evidence.units, chosen])
        trials = (*evidence.trials, *pending)
        return branch_to_try(evidence.space, trials, units, batch.rule.may_hold)

    def _needs_contrast(self, chosen: Units) -> bool:
        """Return whether a trial of which the priors expect little is due, see `schedule`."""
        batch = self._batch
        if not self.inputs.priors or (batch.shares_fit and len(chosen)):
            return False
        units = np.concatenate([batch.evidence.units, chosen])
        expectation = self.inputs.expectation
        shares = expectation.shares(units).mean(0)
        return len(shares) > 0 and schedule.is_contrast_due(shares, expectation.trust)

    # ---- proposers

    def _proposer(self, turn: Turn) -> Proposer | SpaceFilling:
        """Return the proposer of a turn, fitted; it knows all pending trials as fantasies."""
        if turn == "random":
            return SpaceFilling(self._batch)
        if turn == "contrast":
            return SpaceFilling(self._batch, self.inputs.expectation.prior_weight)
        name: Purpose = "ensemble"
        if turn == "universal-prior" or turn == "past-studies":
            name = turn
        if name not in self._proposers:
            self._proposers[name] = MODELS[name](self.inputs, self._stream(name))
        proposer = self._proposers[name]
        for pending in self._pending[self._n_fantasized[name] :]:
            proposer.fantasize(pending)
        self._n_fantasized[name] = len(self._pending)
        return proposer

    def _stream(self, purpose: Purpose) -> np.random.Generator:
        return stream(purpose, self._batch.seed, self._batch.numbers[0])
