"""The choices of a batch: whose turn each suggestion is, and what that proposer proposes.

This module needs torch, so it is imported only when a model first proposes.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend import schedule
from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.branches import branch_to_try
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.proposers.past import PastProposer
from dre_plugins.recommend.proposers.space_filling import SpaceFilling
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.recommend.schedule import Choice, Proposer, Request, Turn
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Units

PROPOSERS: Mapping[Turn, Callable[[Batch], Proposer]] = {
    "random": SpaceFilling,
    "contrast": SpaceFilling,
    "past-studies": PastProposer,
    "universal-prior": UniversalProposer,
    "prior": EnsembleProposer,
    "model": EnsembleProposer,
    "exploration": EnsembleProposer,
}


def choices_of(batch: Batch) -> list[Choice]:
    """Return the choices of a batch one after the other, different from each other.

    A proposer is fitted on first use; pending trials and earlier choices are its fantasies.
    """
    choices: list[Choice] = []
    seen, chosen, fantasies = batch.seen(), batch.evidence.units[:0], [batch.evidence.pending]
    proposers: dict[Callable[[Batch], Proposer], Proposer] = {}
    n_told: Counter[Callable[[Batch], Proposer]] = Counter()  # of the fantasies, by proposer
    # Isolates ranks and acquisitions, too: with several threads an operation on such small
    # tensors can wait for 10 ms, and the user's default device may be any.
    with isolated("cpu", batch.settings.n_threads):
        turns = batch.turns
        if batch.past_tasks and batch.past_gains is None:  # the trials contradict all of them
            turns = replace(turns, has_past_tasks=False)
        for number in batch.numbers:
            branch = _branch(batch, number, chosen)
            is_free = branch is None and bool(np.isnan(batch.fixed).all())
            turn = schedule.proposer_for(
                number,
                batch.evidence,
                turns,
                needs_contrast=_needs_contrast(batch, chosen),
                may_explore=is_free and batch.search.table is None,
            )

            make = PROPOSERS[turn]
            if make not in proposers:
                proposers[make] = make(batch)
            proposer = proposers[make]
            for units in fantasies[n_told[make] :]:
                if len(units):
                    proposer.fantasize(units)
            n_told[make] = len(fantasies)

            taken = chosen if batch.shares_fit else None
            request = Request(number, turn, seen, batch.fixed, branch, taken)
            choice = proposer.propose(request)
            if branch is not None and not choice.is_new:
                choice = proposer.propose(replace(request, branch=None))
            choices.append(choice)
            new = batch.space.canonical(choice.units[None])
            chosen = np.concatenate([chosen, new])
            if not batch.shares_fit:
                fantasies.append(new)
            if not batch.settings.allow_duplicates:
                seen.include(new)
    return choices


def _branch(batch: Batch, number: int, chosen: Units) -> Units | None:
    """Return the branch that a suggestion must look into, if any, see `branches`.

    There is none if values or candidates are given, if suggestions share a fit and so a pool, or
    with a trained prior, which knows the good branches (lab/2026-11-23-branches.md).
    """
    is_given = batch.candidates is not None or not np.isnan(batch.fixed).all()
    if is_given or batch.priors or batch.shares_fit or not schedule.is_branch_turn(number):
        return None
    evidence = batch.evidence
    pending = [Trial({}, TrialState.RUNNING)] * len(chosen)
    units = np.concatenate([evidence.units, chosen])
    return branch_to_try(batch.space, (*evidence.trials, *pending), units, batch.rule.may_hold)


def _needs_contrast(batch: Batch, chosen: Units) -> bool:
    """Return whether a trial of which the priors expect little is due, see `schedule`."""
    if not batch.priors or (batch.shares_fit and len(chosen)):
        return False
    units = np.concatenate([batch.evidence.units, chosen])
    expectation = batch.expectation
    shares = expectation.shares(units).mean(0)
    return len(shares) > 0 and schedule.is_contrast_due(shares, expectation.trust)
