"""Recognise which learner a study tunes, by the names, kinds and ranges of its parameters.

A wrong guess costs trials, so that only what is clear counts: the score of a learner is the sum of
the weights in `learners`, it must reach `THRESHOLD` and lead by `MARGIN`, most parameters must be
the learner's, and nothing may speak against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dre_plugins.space import Constant, Float, Integer
from dre_plugins.space.base import Domain
from dre_plugins.space.conditions import listed_values
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.learners import CHOICES, LEARNERS, RANGES, Learner
from dre_plugins.transfer.spaces.prefixes import change_of, learner_of_prefix, without_learner

if TYPE_CHECKING:
    from dre_plugins.recommend.prior import AlignedPrior
    from dre_plugins.transfer.prior import Prior

THRESHOLD = 3.0
MARGIN = 1.0
# As many parameters of a learner must be there, and as large a share of all must be the learner's.
FEWEST = 2
SHARE = 0.5
# What a prefix such as ``svm_`` adds to the weight of a name.
PREFIX = 1.0


def recognised(domains: Mapping[str, Domain]) -> str | None:
    """Return the learner that a search space tunes, a key of `LEARNERS`; None if that is unclear.

    Args:
        domains: The parameters of the study by name.

    >>> rate, leaves = Float(1e-3, 0.3, "log"), Integer(2, 256)
    >>> recognised({"learning_rate": rate, "num_leaves": leaves, "lambda_l1": Float(0.0, 1.0)})
    'lightgbm'
    >>> recognised({"learning_rate": rate, "gamma": Float(0.9, 0.999)}) is None
    True
    """
    scores = scores_of(domains)
    ranked = sorted(scores, key=lambda name: -scores[name])
    if not ranked or scores[ranked[0]] < THRESHOLD:
        return None
    if len(ranked) > 1 and scores[ranked[0]] - scores[ranked[1]] < MARGIN:
        return None
    return ranked[0]


def scores_of(domains: Mapping[str, Domain]) -> dict[str, float]:
    """Return how far each learner fits; those against which something speaks are left out."""
    searched = {name: part for name, part in domains.items() if not isinstance(part, Constant)}
    if len({learner_of_prefix(name) for name in searched} - {None}) > 1:
        return {}  # a prior of one learner would say nothing of the other branch
    scores = {}
    for key, learner in LEARNERS.items():
        known = _weights(key, learner, searched)
        names = {without_learner(name) for name in searched}
        is_possible = not names & learner.foreign and (not learner.needs or names & learner.needs)
        if is_possible and len(known) >= max(FEWEST, SHARE * len(searched)):
            scores[key] = sum(known.values())
    return scores


def _weights(key: str, learner: Learner, domains: Mapping[str, Domain]) -> dict[str, float]:
    """Return the weight of each parameter that is the learner's."""
    weights = {}
    for name, domain in domains.items():
        plain, named = without_learner(name), learner_of_prefix(name)
        if plain not in learner.weights or named not in (None, key):
            continue
        if _is_in_range(name, domain) and _has_choices(key, plain, domain):
            weights[name] = learner.weights[plain] + (PREFIX if named else 0.0)
    return weights


def _is_in_range(name: str, domain: Domain) -> bool:
    plain = without_learner(name)
    if not isinstance(domain, (Float, Integer)) or plain not in RANGES:
        return True
    ends, change = np.array([domain.low, domain.high], dtype=np.float64), change_of(name, plain)
    lowest, highest = sorted(ends if change is None else change(ends))
    low, high = RANGES[plain]
    return bool(low <= lowest and highest <= high)


def _has_choices(key: str, name: str, domain: Domain) -> bool:
    if (key, name) not in CHOICES:
        return True
    if isinstance(domain, (Float, Integer)):
        return False
    return bool({str(value).casefold() for value in listed_values(domain)} & CHOICES[key, name])


class AutoPrior:
    """Be the prior of the learner that a study turns out to tune, or none.

    It is what `prior="auto"` stands for. Where nothing is recognised, or no prior of the learner
    ships, a study goes on as with the universal prior alone.
    """

    def on(self, space: SearchSpace) -> AlignedPrior | None:
        """Return the recognised prior for a search space; None if there is none."""
        prior = self.prior_of(space.domains)
        return None if prior is None else prior.on(space)

    def knows(self, name: str, domain: Domain, beside: Mapping[str, Domain] | None = None) -> bool:
        """Say whether a parameter of a study is one of the recognised prior's, see `Prior`."""
        prior = self.prior_of({**(beside or {}), name: domain})
        return prior is not None and prior.knows(name, domain, beside)

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Fill up the parameters known of a study with those of the recognised prior."""
        prior = self.prior_of(domains)
        return SearchSpace(domains) if prior is None else prior.completed(domains)

    def prior_of(self, domains: Mapping[str, Domain]) -> Prior | None:
        """Return the prior of the learner that a search space tunes; None if there is none."""
        key = recognised(domains)
        if key is None:
            return None
        from dre_plugins.transfer.prior import Prior  # imports torch
        from dre_plugins.transfer.prior_file import names

        learner = LEARNERS[key]
        name = learner.prior or key
        if name not in names():
            return None
        remark = f"; these look like parameters of {learner.title}: if not, prior='universal'"
        return replace(Prior.load(name), remark=remark)
