"""A prior of past studies that a study has found by itself, in its memory: when it counts.

It takes even suggestions only: odd ones are in the turns of the universal prior, which finds most
of what a study gains in its first ten trials, so that past studies that mislead take the place of
space-filling points only (lab/2026-11-24-memory-harm.md). Of many past studies the first two even
suggestions are incumbents (lab/2026-11-24-memory-many-studies.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_plugins.recommend.ensemble.trust import agreement
from dre_plugins.recommend.lists import final_value, has_failed
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.schedule import is_universal_turn
from dre_plugins.recommend.trials import Trial
from dre_plugins.space import Domain
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# Random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256
# Before this number a portfolio, if there is one, has the prior's turns: one member is tried
# before anything can contradict it, one if the first two trials do not.
N_FIRST = 4
# Counts suggestions that do without past studies.
CONTRADICTED = "memory_contradicted"


class FirstTrials:
    """Be the portfolio of a prior of past studies, without the prior itself."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior

    def on(self, space: SearchSpace) -> AlignedPrior | None:
        """Return the prior for a search space; None if the two have nothing in common.

        Its favourites are the portfolio.
        """
        try:
            known = self._prior.on(space)
        except ValueError:
            return None
        members, origins = self._prior.first_trials(space), self._prior.portfolio_tasks
        return replace(known, favourites=members, origins=origins if len(members) else ())

    def knows(self, name: str, domain: Domain, beside: Mapping[str, Domain] | None = None) -> bool:
        """Say whether a parameter of a study is one of the prior's, see `Prior`."""
        return self._prior.knows(name, domain, beside)

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Fill up the parameters known of a study with the prior's own."""
        return self._prior.completed(domains)

    def favourite(self, domains: Mapping[str, Domain]) -> dict[str, Any]:
        """Return nothing: no branch of a space begins with what past studies favour."""
        return {}


def turns_of_memory(
    prior: Prior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
) -> tuple[int, int]:
    """Return how many suggestions are of the portfolio, and how many start from the prior.

    The others do without, and so do all as long as more pairs of trials contradict the prior than
    agree.

    Args:
        prior: What past studies taught.
        space: The search space of the study.
        history: Its trials, larger values are better.
        numbers: Numbers of the suggestions.
        stats: Counters of the study.
    """
    turns = [number for number in numbers if not is_universal_turn(number)]
    if turns and concordance(prior, space, history) < 0.0:
        stats[CONTRADICTED] += len(turns)
        return 0, 0
    end = 0 if prior.portfolio is None else N_FIRST
    n_first = sum(number < end for number in turns)
    return n_first, len(turns) - n_first


def concordance(prior: Prior, space: SearchSpace, history: Sequence[Trial]) -> float:
    """Return how far the trials of a study agree with what a prior leads to expect.

    It is a function of the trials only: further ones may change it.

    Args:
        prior: What past tasks taught.
        space: The search space of the study.
        history: Its trials, larger values are better; those without a value count if they failed.

    Returns:
        The concordance from -1 to 1, see `agreement`; 0 where there is nothing to compare.
    """
    ended = [trial for trial in history if final_value(trial) is not None or has_failed(trial)]
    if len(ended) < 2:
        return 0.0
    drawn = np.random.default_rng(0).random((N_REFERENCE, space.n_parameters))
    observed = space.to_units([trial.configuration for trial in ended])
    try:
        scores = prior.scores(space, np.concatenate([space.canonical(drawn), observed]))
    except ValueError:  # no parameter in common so far
        return 0.0
    reference, expected = scores[:N_REFERENCE], scores[N_REFERENCE:]
    shares = (reference[None, :] > expected[:, None]).mean(axis=1)
    finals = [final_value(trial) for trial in ended]
    values = np.array([-math.inf if value is None else value for value in finals])
    return agreement(shares, values)[0]
