"""Convert Optuna's distributions to domains, and parameters of trials to configurations."""

import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import groupby, islice
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.samplers import PartialFixedSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState as OptunaState

from dre_plugins.adapters.common.domains import choice_of
from dre_plugins.adapters.optuna.attributes import ENQUEUED_KEY
from dre_plugins.checks import is_real
from dre_plugins.recommend import define_by_run
from dre_plugins.recommend.trials import Trial, TrialState, number_of
from dre_plugins.space import Domain, Float, Integer, SearchSpace, UnsupportedDomainError
from dre_plugins.space.base import FARTHEST, UNIT_MAX, UNIT_MIN, Mask, match_key, naming_parameter

CLAIM_KEY = "dre:suggestion"
# A parameter that has had a single value in this many trials is a constant.
N_CONSTANT = 10
# Largest share of trials that are left out as too far from the newest range. If there are more,
# they count as clipped values, since models need some trials.
MAX_LEFT_OUT = 0.25

STATES: Mapping[OptunaState, TrialState] = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.FAIL: TrialState.FAILED,
    OptunaState.RUNNING: TrialState.RUNNING,
}


def domain_of(name: str, distribution: BaseDistribution, *, ordered: bool = True) -> Domain:
    """Return the domain that an Optuna distribution describes.

    An UnsupportedDomainError says that there is none, as for a range without end.
    """
    with naming_parameter(name):
        if not isinstance(name, str):  # Optuna itself takes any
            raise UnsupportedDomainError(f"its name must be a text, such as {str(name)!r}.")
        if isinstance(distribution, CategoricalDistribution):
            return choice_of(name, distribution.choices, ordered=ordered)
        if isinstance(distribution, FloatDistribution):
            scale = "log" if distribution.log else "linear"
            return Float(distribution.low, distribution.high, scale, distribution.step)
        if isinstance(distribution, IntDistribution):
            scale = "log" if distribution.log else "linear"
            return Integer(distribution.low, distribution.high, scale, distribution.step)
    raise UnsupportedDomainError(
        f"Parameter {name!r} has distribution {distribution!r}; DRESampler supports "
        "FloatDistribution, IntDistribution and CategoricalDistribution."
    )


def domains_in(
    distributions: Mapping[str, BaseDistribution], *, ordered: bool = True
) -> dict[str, Domain]:
    """Return the domains of parameters, without those that have one value or cannot be searched.

    An enqueued trial, or one added from elsewhere, may have parameters that cannot be searched.
    """
    domains: dict[str, Domain] = {}
    for name, distribution in distributions.items():
        with suppress(UnsupportedDomainError):
            if not distribution.single():
                domains[name] = domain_of(name, distribution, ordered=ordered)
    return domains


def union_of_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return all parameters of a study that can be searched, in order of first appearance.

    The range of a parameter is that of the newest trial that has it. If it has a single value
    there, as a range that depends on another parameter may, one of the trials before counts.
    """
    union: dict[str, BaseDistribution] = {}
    for trial in trials:
        union.update(trial.distributions)
    for name in [name for name, distribution in union.items() if distribution.single()]:
        asked = (t.distributions[name] for t in reversed(trials) if name in t.distributions)
        ranges = (d for d in islice(asked, N_CONSTANT) if not d.single())
        union[name] = next(ranges, union[name])
    return {name: union[name] for name in domains_in(union)}


def covering(
    distributions: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial]
) -> dict[str, BaseDistribution]:
    """Return the distributions, their numeric ranges widened to those of all trials."""
    covered = dict(distributions)
    for trial in trials:
        for name, distribution in trial.distributions.items():
            before = covered.get(name, distribution)
            # Categories are alike only if they are equal.
            if distribution != before and are_alike(distribution, before):
                covered[name] = _union_of(before, distribution)
    return covered


def _union_of(first: Any, second: Any) -> BaseDistribution:
    """Return a distribution that covers two; it has no step if theirs are not one grid."""
    step = first.step
    if step != second.step or (step and (first.low - second.low) % step):
        step = 1 if isinstance(first, IntDistribution) else None
    low, high = min(first.low, second.low), max(first.high, second.high)
    union: BaseDistribution = copy(first)  # a subclass may have a constructor of its own
    vars(union).update(low=low, high=high, step=step)
    return union


def are_alike(distribution: BaseDistribution, other: BaseDistribution) -> bool:
    """Return whether Optuna lets a parameter change from one distribution to the other.

    It raises where kind, scale or choices differ; ranges of numbers may.
    """
    if isinstance(distribution, CategoricalDistribution) or type(distribution) is not type(other):
        return distribution == other
    return getattr(distribution, "log", False) == getattr(other, "log", False)


def are_stored_alike(distribution: BaseDistribution, other: BaseDistribution) -> bool:
    """Return whether two lists of choices are the same to a storage, which has no tuples."""
    if {type(distribution), type(other)} != {CategoricalDistribution}:
        return False
    with suppress(TypeError):  # choices that only a storage in memory can hold
        return distribution_to_json(distribution) == distribution_to_json(other)
    return False


def choice_in(distribution: BaseDistribution, value: Any) -> Any:
    """Return the choice of a distribution that a storage returns as a value: it has no tuples."""
    if not isinstance(value, list):
        return value
    tuples = (choice for choice in getattr(distribution, "choices", ()) if type(choice) is tuple)
    text = json.dumps(value)
    return next((choice for choice in tuples if json.dumps(choice, default=repr) == text), value)


def internal_number(distribution: BaseDistribution, value: Any) -> float:
    """Return Optuna's internal representation, without confusing 1, 1.0 and True."""
    if isinstance(distribution, CategoricalDistribution):
        for index, choice in enumerate(distribution.choices):
            if choice is value or (type(choice) is type(value) and choice == value):
                return float(index)
    return distribution.to_internal_repr(value)


def internal_numbers(trial: FrozenTrial) -> dict[str, float]:
    """Return the parameters of a trial in internal representation, NaN where there is none.

    Those of a running trial include parameters that it has claimed and not asked for yet. A claim
    also distinguishes 1 from True, which Optuna's storages do not.
    """
    claim = trial.system_attrs.get(CLAIM_KEY)
    claims = claim.items() if isinstance(claim, Mapping) else ()  # else another program's
    claimed = {name: number_of(number) for name, number in claims if is_real(number)}
    numbers: dict[str, float] = {}
    for name, value in trial.params.items():
        distribution, number = trial.distributions[name], claimed.get(name, math.nan)
        if has_value(distribution, number) and distribution.to_external_repr(number) == value:
            numbers[name] = number
            continue
        try:
            numbers[name] = internal_number(distribution, value)
        except (ArithmeticError, TypeError, ValueError):  # a storage may hold anything
            numbers[name] = math.nan
    if trial.state is OptunaState.RUNNING:
        return {**claimed, **numbers}
    return numbers


def has_value(distribution: BaseDistribution, number: float) -> bool:
    """Return whether a number in internal representation stands for a value at all."""
    if isinstance(distribution, CategoricalDistribution):
        return 0 <= number < len(distribution.choices)
    return math.isfinite(number)


def configuration_of(
    trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """Return the values that a trial has of the parameters in the search space.

    A ValueError says that it has one that its parameter cannot have.
    """
    numbers = internal_numbers(trial)
    configuration: dict[str, Any] = {}
    for name, distribution in search_space.items():
        if name not in numbers:
            continue
        number, is_asked = numbers[name], name in trial.params
        asked = trial.distributions[name] if is_asked else distribution
        is_alike = asked is distribution or are_alike(asked, distribution)
        if is_alike or are_stored_alike(asked, distribution):
            asked = distribution  # to Optuna 1 and True are the same choice: take the newest
        if has_value(asked, number):
            value = asked.to_external_repr(number)
            if asked is distribution or _can_be(distribution, value):
                configuration[name] = value
                continue
        if is_asked:  # an invalid claim is ignored
            raise ValueError(f"its parameter {name!r} is {trial.params[name]!r}")
    return configuration


def _can_be(distribution: BaseDistribution, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return match_key(value) in {match_key(choice) for choice in distribution.choices}
    return is_real(value) and abs(value) <= sys.float_info.max


def learnt_space(
    search_space: Mapping[str, BaseDistribution],
    trials: Sequence[FrozenTrial],
    history: Sequence[Trial],
    ordered: bool = True,
) -> tuple[SearchSpace, Mask]:
    """Return the search space with conditions, see `define_by_run.learnt_space`."""
    domains = {
        name: domain_of(name, distribution, ordered=ordered)
        for name, distribution in search_space.items()
    }
    asked = [  # without what a running trial has claimed and not asked for yet
        {name: value for name, value in converted.configuration.items() if name in trial.params}
        for trial, converted in zip(trials, history, strict=True)
    ]
    return define_by_run.learnt_space(domains, asked, [STATES[trial.state] for trial in trials])


def spanning(
    space: SearchSpace, trials: Sequence[FrozenTrial], history: Sequence[Trial]
) -> tuple[SearchSpace, Mask]:
    """Return the space with features that span the values of trials, and which trials count `[N]`.

    A user may move the range of a number. Candidates come from the newest range, and trials of
    earlier ones tell the models of what lies around it; features span it if they would be clipped.
    Trials that are more than `FARTHEST` widths away are left out if they are few. A range that
    comes and goes may depend on another parameter, and changes nothing, see `_has_settled`.
    """
    units = space.to_units([converted.configuration for converted in history])
    is_outside = np.any((units < UNIT_MIN) | (units > UNIT_MAX), axis=0)
    columns = zip(space.names, is_outside.tolist(), strict=True)
    is_settled = [outside and _has_settled(name, trials) for name, outside in columns]
    far = np.any(((units <= -FARTHEST) | (units >= 1.0 + FARTHEST)) & is_settled, axis=1)
    low = np.fmin.reduce(units[~far], axis=0, initial=0.0).tolist()
    high = np.fmax.reduce(units[~far], axis=0, initial=1.0).tolist()
    ends = zip(space.names, is_settled, low, high, strict=True)
    spans = {
        name: (first, last)
        for name, settled, first, last in ends
        if settled and (first < UNIT_MIN or last > UNIT_MAX)
    }
    if spans:
        space = SearchSpace(space.domains, space.conditions, space.optional, spans)
    return space, ~far if far.sum() <= MAX_LEFT_OUT * len(far) else np.ones_like(far)


def _has_settled(name: str, trials: Sequence[FrozenTrial]) -> bool:
    """Return whether the two newest trials that have a parameter asked for the same range.

    A range that has come back is not settled, as where branches have ranges of their own.
    """
    distributions = [t.distributions[name] for t in trials if name in t.distributions]
    ranges = [repr(distribution) for distribution, _ in groupby(distributions)]
    return distributions[-2:-1] == distributions[-1:] and len(ranges) == len(set(ranges))


def given_to(trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that a trial has before the sampler suggests any.

    An enqueued trial has them in an attribute, the retry of a dead worker's trial as parameters.
    """
    enqueued = trial.system_attrs.get(ENQUEUED_KEY)
    return {**trial.params, **(enqueued if isinstance(enqueued, Mapping) else {})}


def fixed_by_sampler(
    study: Study, trial: FrozenTrial, names: Collection[str], trials: Sequence[FrozenTrial]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the parameters of trials that a `PartialFixedSampler` fixes, but those of some names.

    They are returned as values and in internal representation.
    """
    values: dict[str, Any] = {}
    numbers: dict[str, float] = {}
    if isinstance(study.sampler, PartialFixedSampler):
        for name, distribution in union_of_distributions(trials).items():
            if name not in names:
                # A value that is no choice matters only if the trial asks for it.
                with suppress(ValueError):
                    value = study.sampler.sample_independent(study, trial, name, distribution)
                    numbers[name] = internal_number(distribution, value)
                    values[name] = value
    return values, numbers
