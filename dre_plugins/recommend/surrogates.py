"""The models of one batch of suggestions: construct proposers and let them choose.

Notation: see docs/architecture.md. This module needs torch, so it is imported only when a model
first proposes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend import schedule
from dre_plugins.recommend.branches import branch_to_try
from dre_plugins.recommend.ensemble.fitted import FittedEnsemble, fit_ensemble
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.past_tasks import PastTask
from dre_plugins.recommend.prior import AlignedPrior, Universal
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.proposers.hypervolume import HypervolumeProposer
from dre_plugins.recommend.proposers.past import PastProposer
from dre_plugins.recommend.proposers.space_filling import SpaceFilling
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.recommend.requests import Batch, Choice, Proposer, Purpose, Request, stream
from dre_plugins.recommend.schedule import Turn, TurnRules
from dre_plugins.recommend.search import CandidateSearch
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Units

# The proposer of each turn; the ensemble has all others.
SERVED_BY: Mapping[Turn, str] = {
    "random": "space-filling",
    "contrast": "space-filling",
    "universal-prior": "universal-prior",
    "past-studies": "past-studies",
}


@dataclass(eq=False)
class Surrogates:
    """Make the choices of a batch; a proposer is fitted on first use.

    A fit that diverges raises a FittingError.
    """

    batch: Batch
    rules: TurnRules
    priors: Sequence[AlignedPrior | None]
    past_tasks: Sequence[PastTask]
    universal: Universal
    settings: RecommenderSettings
    seed: int  # of the study

    def __post_init__(self) -> None:
        search = CandidateSearch(self.batch.rule, self.batch.candidates, self.seed)
        self._inputs = ModelInputs(
            self.batch.evidence, search, self.settings, self.priors, self.past_tasks
        )
        self._proposers: dict[str, Proposer] = {}
        pending = self.batch.evidence.pending
        self._pending = [pending] if len(pending) else []
        self._n_fantasized: Counter[str] = Counter()

    @property
    def contradicts_past_tasks(self) -> bool:
        """Whether the trials contradict all past studies, if there are any."""
        return len(self.past_tasks) > 0 and self._inputs.past_gains is None

    def choices(self) -> list[Choice]:
        """Return the choices of the batch one after the other, different from each other."""
        batch, seen, chosen = self.batch, self.batch.seen(), self.batch.evidence.units[:0]
        choices: list[Choice] = []
        # Isolates ranks and acquisitions, too: with several threads an operation on such small
        # tensors can wait for 10 ms, and the user's default device may be any.
        with isolated("cpu", self.settings.n_threads):
            rules = self.rules
            if self.contradicts_past_tasks:
                rules = replace(rules, has_past_tasks=False)
            for number in batch.numbers:
                branch = self._branch(number, chosen)
                turn = self._turn(number, chosen, rules, is_in_branch=branch is not None)
                taken = chosen if batch.shares_fit else None
                choice = self._choice(Request(number, turn, seen, batch.fixed, branch, taken))
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
        return fit_ensemble(self._inputs, self._stream("ensemble"))

    # ---- turns and branches

    def _turn(self, number: int, chosen: Units, rules: TurnRules, *, is_in_branch: bool) -> Turn:
        is_free = not is_in_branch and bool(np.isnan(self.batch.fixed).all())
        return schedule.proposer_for(
            number,
            self.batch.evidence,
            rules,
            needs_contrast=self._needs_contrast(chosen),
            may_explore=is_free and self._inputs.search.table is None,
        )

    def _branch(self, number: int, chosen: Units) -> Units | None:
        """Return the branch that a suggestion must look into, if any, see `branches`.

        There is none if values or candidates are given, if suggestions share a fit and so a pool,
        or with a trained prior, which knows the good branches (lab/2026-11-23-branches.md).
        """
        batch = self.batch
        is_given = batch.candidates is not None or not np.isnan(batch.fixed).all()
        if is_given or self.priors or batch.shares_fit or not schedule.is_branch_turn(number):
            return None
        evidence = batch.evidence
        pending = [Trial({}, TrialState.RUNNING)] * len(chosen)
        units = np.concatenate([evidence.units, chosen])
        trials = (*evidence.trials, *pending)
        return branch_to_try(evidence.space, trials, units, batch.rule.may_hold)

    def _needs_contrast(self, chosen: Units) -> bool:
        """Return whether a trial of which the priors expect little is due, see `schedule`."""
        batch = self.batch
        if not self.priors or (batch.shares_fit and len(chosen)):
            return False
        units = np.concatenate([batch.evidence.units, chosen])
        expectation = self._inputs.expectation
        shares = expectation.shares(units).mean(0)
        return len(shares) > 0 and schedule.is_contrast_due(shares, expectation.trust)

    # ---- proposers

    def _choice(self, request: Request) -> Choice:
        """Return the choice of the proposer whose turn it is, in the branch if it has new ones."""
        proposer = self._proposer(SERVED_BY.get(request.turn, "ensemble"))
        choice = proposer.propose(request)
        if request.branch is not None and not choice.is_new:
            choice = proposer.propose(replace(request, branch=None))
        if request.turn == "contrast":  # the explanation names the prior that is tested
            weight = self._inputs.expectation.prior_weight
            choice = replace(choice, explanation=replace(choice.explanation, prior_weight=weight))
        return choice

    def _proposer(self, name: str) -> Proposer:
        """Return a fitted proposer that knows all pending trials as fantasies."""
        if name not in self._proposers:
            self._proposers[name] = self._new_proposer(name)
        for pending in self._pending[self._n_fantasized[name] :]:
            self._proposers[name].fantasize(pending)
        self._n_fantasized[name] = len(self._pending)
        return self._proposers[name]

    def _new_proposer(self, name: str) -> Proposer:
        if name == "space-filling":
            return SpaceFilling(self.batch, self.seed)
        if name == "ensemble":
            rng = self._stream("ensemble")
            return EnsembleProposer(fit_ensemble(self._inputs, rng), rng)
        gains = self._inputs.past_gains
        if name == "past-studies" and gains is not None:
            filling = SpaceFilling(self.batch, self.seed)
            return PastProposer(gains, self._inputs, filling, self._stream("past-studies"))
        is_single = self.batch.evidence.n_objectives == 1
        proposer = UniversalProposer if is_single else HypervolumeProposer
        return proposer(self.universal, self._inputs, self._stream("universal-prior"))

    def _stream(self, purpose: Purpose) -> np.random.Generator:
        return stream(purpose, self.seed, self.batch.numbers[0])
