"""Invariance of suggestions: to the scale of the metric, its sign, names, and the order of calls.

Suggestions are compared exactly. Three invariances hold less far; what holds of them is tested:

- The scale of the metric. The ensemble sees the order of trials alone. The Gaussian process in its
  turns sees values as well, whatever their unit (`tests/recommend/test_universal_proposer.py`).
- The order of parameters and of categories. Random weights and coordinates of the Sobol sequence
  are drawn by position, so that another order is another draw. They could be drawn by name
  instead, but then names would matter, and the same space is named differently in Ray Tune and in
  Optuna. What does not depend on the draw must not depend on the order: which configurations are
  the same, how many there are, what is active, and what the surrogate sees of each parameter.
- Repeated configurations. From three repetitions on, the size of the noise is part of what is
  known, which only a change of unit leaves alone.
"""

import copy
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from cases import cases
from histories import SETTINGS, SMALL
from hypothesis import given, strategies as st
from spaces import SpaceCase, space_cases

from dre_plugins.recommend import TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Condition, RangeCondition, SearchSpace
from dre_plugins.space.seen import groups
from dre_plugins.study import AskTell

seeds = st.integers(0, 2**32)
Configuration = Mapping[str, Any]

# Strictly increasing on the integers from −50 to 50, also in floats.
INCREASING: dict[str, Callable[[float], float]] = {
    "cubed": lambda y: y**3,
    "exp": math.exp,
    "huge": lambda y: y * 3e306,
    "denormal": lambda y: math.ldexp(y, -1070),
    "far": lambda y: y - 1e12,
    "last is infinite": lambda y: math.inf if y == 50 else y,
}


def told(study: AskTell, seed: int, n: int, f: Callable[[float], float] = float) -> AskTell:
    """Tell what became of n different configurations, of which f changes the values."""
    rng = np.random.default_rng(seed)
    units = rng.random((4 * n, study.space.n_parameters))
    canonical = study.space.canonical(units)
    _, first = np.unique(groups(canonical), return_index=True)
    for place in sorted(first.tolist())[:n]:
        configuration = study.space.to_configuration(units[place])
        state = rng.choice([None, None, None, "pruned", "failed", "running"])
        reported = {float(step): f(float(rng.integers(-50, 51))) for step in range(1, 3)}
        study.add(
            configuration,
            f(float(rng.integers(-50, 51))),
            state=None if state is None else TrialState(state),
            rungs=reported if state == "pruned" else None,
        )
    return study


def suggested(study: AskTell, f: Callable[[float], float] = float) -> list[str]:
    """Return the next three configurations, of which the first one ends at once."""
    number, first = study.ask()
    study.tell(number, f(7.0))
    return [repr(first), *(repr(configuration) for _, configuration in study.ask_batch(2))]


def study_of(space: SearchSpace, seed: int, **arguments: Any) -> AskTell:
    return AskTell(space, seed=seed, n_startup_trials=2, **{"settings": SETTINGS, **arguments})


@cases(20)
@given(space_cases(), seeds, st.integers(1, 12), st.sampled_from([*INCREASING]))
def test_the_scale_of_the_metric(case: SpaceCase, seed: int, n: int, name: str) -> None:
    settings = Settings(preset=replace(SMALL, universal_turns=False))

    def run(f: Callable[[float], float]) -> list[str]:
        return suggested(told(study_of(case.space, seed, settings=settings), seed, n, f), f)

    assert run(INCREASING[name]) == run(float)


@cases(6)
@given(space_cases(), seeds, st.integers(4, 12), st.integers(-100, 100))
def test_the_unit_of_a_noisy_metric(case: SpaceCase, seed: int, n: int, power: int) -> None:
    def run(f: Callable[[float], float]) -> list[str]:
        study = study_of(case.space, seed, allow_duplicates=True)
        told(study, seed, n, f)
        for trial in study.trials[:4]:  # four repetitions
            study.add(trial.configuration, f(3.0))
        return suggested(study, f)

    assert run(lambda y: math.ldexp(y, power)) == run(float)


@cases(20)
@given(space_cases(), seeds, st.integers(0, 12))
def test_minimising_f_is_maximising_minus_f(case: SpaceCase, seed: int, n: int) -> None:
    down = study_of(case.space, seed, direction="minimize")
    up = study_of(case.space, seed, direction="maximize")
    assert suggested(told(down, seed, n)) == suggested(
        told(up, seed, n, lambda y: -y), lambda y: -y
    )


@cases(8)
@given(space_cases(), seeds, st.integers(0, 12))
def test_a_seed_decides(case: SpaceCase, seed: int, n: int) -> None:
    study = told(study_of(case.space, seed), seed, n)
    others = [
        told(study_of(case.space, seed), seed, n),
        copy.deepcopy(study),
        pickle.loads(pickle.dumps(study)),
    ]
    expected = suggested(study)
    assert [suggested(other) for other in others] == [expected] * 3


@cases(15)
@given(space_cases(), seeds, st.integers(0, 12), st.integers(0, 10**6))
def test_names_of_parameters_and_categories(
    case: SpaceCase, seed: int, n: int, number: int
) -> None:
    new_name = {name: f"{number - place}·" for place, name in enumerate(case.space.domains)}
    domains = {new_name[name]: renamed(domain) for name, domain in case.space.domains.items()}

    def in_new_names(configuration: Configuration) -> dict[str, Any]:
        return {
            new_name[name]: renamed_value(case.space.domains[name], value)
            for name, value in configuration.items()
        }

    def condition_in_new_names(condition: Condition | RangeCondition) -> Any:
        domain, changed = case.space.domains[condition.parent], {}
        if isinstance(condition, Condition):
            changed["values"] = tuple(renamed_value(domain, v) for v in condition.values)
        names = {"child": new_name[condition.child], "parent": new_name[condition.parent]}
        return replace(condition, **names, **changed)

    conditions = [*map(condition_in_new_names, case.space.conditions)]
    plain = told(study_of(case.space, seed), seed, n)
    other = told(study_of(SearchSpace(domains, conditions), seed), seed, n)
    for study in (plain, other):
        suggested(study)
    assert [repr(in_new_names(trial.configuration)) for trial in plain.trials] == [
        repr(trial.configuration) for trial in other.trials
    ]


def renamed(domain: Any) -> Any:
    if not isinstance(domain, Categorical):
        return domain
    return Categorical(tuple(f"category {place}" for place in range(len(domain.choices))))


def renamed_value(domain: Any, value: Any) -> Any:
    if not isinstance(domain, Categorical):
        return value
    choices = [(type(choice), repr(choice)) for choice in domain.choices]
    return f"category {choices.index((type(value), repr(value)))}"


@cases(40)
@given(space_cases(), seeds, st.randoms(use_true_random=False))
def test_the_order_of_parameters_and_categories(case: SpaceCase, seed: int, random: Any) -> None:
    space = case.space
    names = [*space.domains]
    random.shuffle(names)
    other = SearchSpace(
        {name: reordered(space.domains[name], random) for name in names}, space.conditions
    )
    rng = np.random.default_rng(seed)
    configurations = [
        space.to_configuration(units) for units in rng.random((8, space.n_parameters))
    ]
    ours, theirs = space.to_units(configurations), other.to_units(configurations)
    for configuration, units in zip(configurations, theirs, strict=True):
        assert text_of(other.to_configuration(units)) == text_of(configuration)
    assert other.n_configurations == space.n_configurations
    assert kinds(groups(theirs)) == kinds(groups(ours))
    columns = [other.names.index(name) for name in space.names]
    assert (other.active(theirs)[:, columns] == space.active(ours)).all()
    assert [*map(sorted, rounded(other.features(theirs)))] == [
        *map(sorted, rounded(space.features(ours)))
    ]


def reordered(domain: Any, random: Any) -> Any:
    # Beyond 32 categories share columns of signs, which are theirs by position.
    if not isinstance(domain, Categorical) or len(domain.choices) > 32:
        return domain
    choices = [*domain.choices]
    random.shuffle(choices)
    return Categorical(tuple(choices))


def kinds(found: Sequence[bytes]) -> list[int]:
    """Return which entries are the same."""
    return [found.index(row) for row in found]


def text_of(configuration: Configuration) -> list[str]:
    """Return a configuration as text, with as many digits of an integer as a unit can tell.

    On a log scale to 10^18 a unit of 53 bits is a relative step of 5e-15.
    """
    return sorted(
        f"{name!r}: {value:.12e}"
        if type(value) is int and abs(value) > 10**13
        else f"{name!r}: {value!r}"
        for name, value in configuration.items()
    )


def rounded(features: Any) -> Any:
    return np.round(features.astype(np.float64), 6).tolist()
