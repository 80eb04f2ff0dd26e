"""Recognise which learner a study tunes, by the names, kinds and ranges of its parameters.

A wrong guess costs trials, so only a clear one counts. The score of a learner is the sum of the
weights in `learners`. It must reach `THRESHOLD` and lead by `MARGIN`, most parameters must be the
learner's, and none may exclude it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dre_plugins.recommend.prior import Portfolio
from dre_plugins.space import Constant, Domain, Float, Integer, SearchSpace
from dre_plugins.space.base import Array
from dre_plugins.transfer.learners import CHOICES, LEARNERS, RANGES, RATES, SURE, Learner
from dre_plugins.transfer.spaces.conversion import parsed_number
from dre_plugins.transfer.spaces.prefixes import change_of, learner_of_prefix, without_learner

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# What these recognise in 330 spaces of public code: lab/2026-11-26-public-spaces.md#recognition.
THRESHOLD = 3.0
MARGIN = 1.0
# Unless a prefix names the learner, a space must have at least this many of its parameters, and
# these must be at least this share of all parameters of the space.
FEWEST = 2
SHARE = 0.5
# Added to the weight of a name with a prefix such as ``svm_``, which identifies the learner.
PREFIX = SURE
# Distance of a first trial from the ends of a range, where a wrong prior costs most
# (lab/2026-11-24-auto-rules-between.md).
MARGIN_OF_FIRST = 0.1


def recognised(domains: Mapping[str, Domain]) -> str | None:
    """Return the learner that a search space tunes, a key of `LEARNERS`; None if that is unclear.

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
    """Return the score of each learner, without learners that a parameter excludes."""
    searched = {name: part for name, part in domains.items() if not isinstance(part, Constant)}
    prefixed = {name: key for name in searched if (key := learner_of_prefix(name))}
    if len({*prefixed.values()}) > 1:
        return {}  # a prior of one learner would say nothing of the other branch
    # If a prefix names the learner, other parameters may belong to any part of a pipeline.
    parts = {name: searched[name] for name in prefixed} or searched
    scores = {}
    for key in {*prefixed.values()} or LEARNERS:
        learner = LEARNERS[key]
        if learner.needs_prefix and not prefixed:
            continue
        weights = _weights(key, learner, searched)
        n_known = len(weights.keys() & parts.keys())
        is_many = n_known >= max(1 if prefixed else FEWEST, SHARE * len(parts))
        if is_many and _is_possible(learner, parts, is_named=bool(prefixed)):
            scores[key] = sum(weights.values())
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


def _is_possible(learner: Learner, domains: Mapping[str, Domain], *, is_named: bool) -> bool:
    """Return whether no parameter excludes a learner, and those that it needs are present."""
    names = {without_learner(name) for name in domains}
    rates = [_ends(name, domains[name]) for name in domains if without_learner(name) in RATES]
    has_needs = is_named or not learner.needs or not names.isdisjoint(learner.needs.split())
    return (
        has_needs
        and names.isdisjoint(learner.foreign.split())
        and all(ends is None or ends[1] >= learner.least_rate for ends in rates)
    )


def _is_in_range(name: str, domain: Domain) -> bool:
    plain = without_learner(name)
    ends = _ends(name, domain) if plain in RANGES else None
    if ends is None:
        return True
    low, high = RANGES[plain]
    return low <= ends[0] and ends[1] <= high


def _ends(name: str, domain: Domain) -> tuple[float, float] | None:
    """Return the range of numbers, converted if their name stands for a logarithm or inverse."""
    if isinstance(domain, (Float, Integer)):
        ends = np.array([domain.low, domain.high], dtype=np.float64)
    else:
        ends = np.array([parsed_number(value) for value in domain.all_values()])
        if not ends.size or np.isnan(ends).any():
            return None
    change = change_of(name, without_learner(name))
    ends = ends if change is None else change(ends)
    return float(ends.min()), float(ends.max())


def _has_choices(key: str, name: str, domain: Domain) -> bool:
    if (key, name) not in CHOICES:
        return True
    if isinstance(domain, (Float, Integer)):
        return False
    return bool({str(value).casefold() for value in domain.all_values()} & CHOICES[key, name])


def _inside(space: SearchSpace, first: Array) -> Array:
    """Return first trials `[F, P]` as values of the space, numbers away from the ends."""
    domains = [space.domains[name] for name in space.names]
    is_number = [isinstance(domain, (Float, Integer)) for domain in domains]
    inside = first.clip(MARGIN_OF_FIRST, 1.0 - MARGIN_OF_FIRST)
    moved = np.where(is_number, inside, first)
    # Between listed values, a first trial would not be found among those that were tried.
    snapped = [domain.snap(units) for domain, units in zip(domains, moved.T, strict=True)]
    return np.stack(snapped, axis=1)


class AutoPrior:
    """Find the prior of the learner that a study tunes: `prior="auto"`.

    If none is recognised, all is as with the universal prior alone.
    """

    def portfolio_on(self, space: SearchSpace) -> Portfolio | None:
        """Return the portfolio of the learner that a search space tunes.

        None means that no learner is recognised, or that no value of its prior is in the space.
        """
        key = recognised(space.domains)
        if key is None:
            return None
        learner, prior = LEARNERS[key].title, _prior_of(key)
        try:
            aligned = prior.on(space)
        except ValueError:  # shared names without shared values
            return None
        return Portfolio(learner, _inside(space, prior.first_trials(space)), aligned.summary)

    def knows(self, name: str, domains: Mapping[str, Domain]) -> bool:
        """Return whether the recognised prior knows one of a study's parameters."""
        key = recognised(domains)
        return key is not None and _prior_of(key).knows(name, domains)

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return a space with the given parameters and the others of the recognised prior."""
        key = recognised(domains)
        return SearchSpace(domains) if key is None else _prior_of(key).completed(domains)


def _prior_of(key: str) -> Prior:
    """Return the prior of a learner, by its key of `LEARNERS`."""
    from dre_plugins.transfer.prior import Prior  # imports torch

    learner = LEARNERS[key]
    remark = f"; these look like parameters of {learner.title}: if not, prior='universal'"
    return replace(Prior.load(learner.prior or key), remark=remark)
