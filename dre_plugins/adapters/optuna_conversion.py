"""Between Optuna's terms and ours: pure functions of distributions and frozen trials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from dre_plugins.recommend.define_by_run import evidence_of
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.conditions import infer_conditions
from dre_plugins.space.domains import (
    Categorical,
    Domain,
    Float,
    Integer,
    UnsupportedDomainError,
    ordered_choices,
)
from dre_plugins.space.search_space import SearchSpace

CLAIM_KEY = "dre:suggestion"
CONSTRAINTS_KEY = "constraints"  # where Optuna's own samplers keep them

STATES: Mapping[OptunaState, TrialState] = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.FAIL: TrialState.FAILED,
    OptunaState.RUNNING: TrialState.RUNNING,
}
ENDED = (OptunaState.COMPLETE, OptunaState.PRUNED)
_FIXED_KEY = "fixed_params"  # where Optuna keeps the values of an enqueued trial


def domain_of(
    name: str, distribution: BaseDistribution, *, order_numeric_choices: bool = True
) -> Domain:
    """Return the domain that an Optuna distribution describes.

    Args:
        name: Name of the parameter, for the error message.
        distribution: A float, int or categorical distribution.
        order_numeric_choices: Whether choices that are numbers in ascending order become an
            ordinal domain.

    Raises:
        UnsupportedDomainError: If there is no such domain, such as a range without end.
    """
    try:
        if isinstance(distribution, CategoricalDistribution):
            choices = distribution.choices
            return ordered_choices(choices) if order_numeric_choices else Categorical(choices)
        if isinstance(distribution, FloatDistribution):
            scale = "log" if distribution.log else "linear"
            return Float(distribution.low, distribution.high, scale, distribution.step)
        if isinstance(distribution, IntDistribution):
            scale = "log" if distribution.log else "linear"
            return Integer(distribution.low, distribution.high, scale, distribution.step)
    except UnsupportedDomainError as error:
        raise UnsupportedDomainError(f"Parameter {name!r}: {error}") from error
    raise UnsupportedDomainError(
        f"Parameter {name!r} has distribution {distribution!r}; DRESampler supports "
        "FloatDistribution, IntDistribution and CategoricalDistribution."
    )


def union_of_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return all parameters of a study that have a choice, in order of first appearance.

    The newest trial that has a parameter says what its range is.
    """
    union: dict[str, BaseDistribution] = {}
    for trial in trials:
        union.update(trial.distributions)
    return {name: one for name, one in union.items() if not one.single()}


def number_of(distribution: BaseDistribution, value: Any) -> float:
    """Return Optuna's internal representation, without confusing 1, 1.0 and True."""
    if isinstance(distribution, CategoricalDistribution):
        for index, choice in enumerate(distribution.choices):
            if choice is value or (type(choice) is type(value) and choice == value):
                return float(index)
    return distribution.to_internal_repr(value)


def numbers_of(trial: FrozenTrial) -> dict[str, float]:
    """Return the parameters of a trial in internal representation.

    Those of a running trial include what it has claimed and not asked for yet. A claim also tells
    1 from True, which Optuna's storages do not.
    """
    claimed = claimed_by(trial)
    numbers: dict[str, float] = {}
    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        if name in claimed and distribution.to_external_repr(claimed[name]) == value:
            numbers[name] = claimed[name]
        else:
            numbers[name] = number_of(distribution, value)
    if trial.state is OptunaState.RUNNING:
        return {**claimed, **numbers}
    return numbers


def configuration_of(
    trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """Return the values that a trial has of the parameters in the search space."""
    numbers = numbers_of(trial)
    return {
        name: distribution.to_external_repr(numbers[name])
        for name, distribution in search_space.items()
        if name in numbers
    }


def trial_of(
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    directions: Sequence[StudyDirection],
) -> Trial:
    """Return the recommender's view of a trial that is not waiting.

    Args:
        trial: A trial of the study.
        search_space: The parameters to keep.
        directions: Directions of the study, one for each objective.
    """
    signs = [1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in directions]
    values = trial.values if trial.state is OptunaState.COMPLETE else []
    signed = tuple(sign * value for sign, value in zip(signs, values, strict=False))
    is_one = len(signs) == 1
    return Trial(
        configuration=configuration_of(trial, search_space),
        state=STATES[trial.state],
        value=signed[0] if is_one and signed else None,
        rungs={step: signs[0] * value for step, value in trial.intermediate_values.items()},
        objectives=() if is_one else signed,
        constraints=constraints_of(trial),
    )


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Return how far a trial violates each constraint, by name; at most 0 where it is met."""
    named = getattr(trial, "constraints", None)  # since Optuna 5
    if named is not None:
        return dict(named)
    listed = trial.system_attrs.get(CONSTRAINTS_KEY) or ()
    return {str(place): violation for place, violation in enumerate(listed)}


def space_of(
    search_space: Mapping[str, BaseDistribution],
    trials: Sequence[FrozenTrial],
    history: Sequence[Trial],
    *,
    order_numeric_choices: bool = True,
) -> SearchSpace:
    """Return the search space, with conditions learnt from what trials asked for.

    Args:
        search_space: Distributions of the parameters.
        trials: Trials that are not waiting; `history` has the same ones, converted.
        order_numeric_choices: See `domain_of`.
    """
    ordered = order_numeric_choices
    return learnt_space(search_space, trials, history, order_numeric_choices=ordered)[0]


def learnt_space(
    search_space: Mapping[str, BaseDistribution],
    trials: Sequence[FrozenTrial],
    history: Sequence[Trial],
    *,
    order_numeric_choices: bool = True,
) -> tuple[SearchSpace, NDArray[np.bool_]]:
    """Return what `space_of` does, and which trials asked for all that their values ask for `[N]`.

    A trial that failed or is still running may not have asked for everything, see
    `define_by_run`.
    """
    domains = {
        name: domain_of(name, one, order_numeric_choices=order_numeric_choices)
        for name, one in search_space.items()
    }
    asked = [
        _asked(trial, converted.configuration)
        for trial, converted in zip(trials, history, strict=True)
    ]
    plain = SearchSpace(domains)
    is_always_the_same = len({frozenset(kind) for kind in {tuple(one) for one in asked}}) <= 1
    units = (
        np.zeros((len(asked), plain.n_parameters))  # values do not matter, and take time
        if is_always_the_same
        else plain.to_units(asked)
    )
    evidence = evidence_of(units, [STATES[trial.state] for trial in trials])
    rows = np.flatnonzero(evidence.shows_absence)
    since = dict(zip(plain.names, np.searchsorted(rows, evidence.since).tolist(), strict=True))
    conditions, optional = infer_conditions(domains, [asked[row] for row in rows], since)
    return SearchSpace(domains, conditions, optional), evidence.is_whole


def _asked(trial: FrozenTrial, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a trial asked for, without what it has only claimed."""
    if trial.state is not OptunaState.RUNNING:
        return configuration
    return {name: value for name, value in configuration.items() if name in trial.params}


def given_to(trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that a trial has before anything is suggested.

    An enqueued trial keeps them in an attribute, one that is added as waiting, such as the retry
    of a trial whose worker died, as parameters.
    """
    return {**trial.params, **trial.system_attrs.get(_FIXED_KEY, {})}


def claimed_by(trial: FrozenTrial) -> dict[str, float]:
    """Return the claim of a trial; empty if there is none, or one that is just being written."""
    parts: list[str] = []
    while part := trial.system_attrs.get(f"{CLAIM_KEY}:{len(parts)}"):
        parts.append(part)
    if not parts:
        return {}
    try:
        # A claim that has become shorter leaves a tail behind: what follows the object is ignored.
        claim: dict[str, float] = json.JSONDecoder().raw_decode("".join(parts))[0]
    except json.JSONDecodeError:
        return {}
    return claim
