"""Trials as a storage may hold them, whoever wrote them; for test_stored_trials.py."""

import math
import warnings
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import optuna
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, Trial, TrialState

STORAGES = ("in-memory", "SQLite", "journal")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    DISTRIBUTIONS: list[BaseDistribution] = [
        FloatDistribution(0.0, 1.0),
        FloatDistribution(0.0, 5.0),
        FloatDistribution(0.0, 1.0, step=0.25),
        FloatDistribution(1e-5, 1.0, log=True),
        FloatDistribution(-math.inf, math.inf),
        FloatDistribution(-1.7e308, 1.7e308),
        FloatDistribution(0.5, 0.5),
        IntDistribution(1, 9),
        IntDistribution(1, 9, log=True),
        IntDistribution(3, 2**60, step=7),
        IntDistribution(0, 10**30),
        CategoricalDistribution(["a", "b", "c"]),
        CategoricalDistribution(["c", "a", "other"]),
        CategoricalDistribution([1, True, 1.0, None]),
        CategoricalDistribution([1, 1, 2]),
        CategoricalDistribution([math.nan, math.nan]),
        CategoricalDistribution([0.0, -0.0, math.inf]),
        CategoricalDistribution([[1, 2], [3]]),
        CategoricalDistribution(["only"]),
        optuna.distributions.UniformDistribution(0.0, 1.0),
        optuna.distributions.DiscreteUniformDistribution(0.0, 1.0, 0.5),
        optuna.distributions.IntUniformDistribution(1, 9),
    ]

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
numbers = (
    st.floats()
    | st.sampled_from([0.5, math.inf, -math.inf, math.nan, 1e308, 5e-324, -0.0])
    | st.integers(-(10**400), 10**400)
)
names = st.sampled_from(["x", "n", "k"]) | st.text(max_size=6) | st.just("n" * 400)
moments = st.sampled_from(
    [
        datetime.now(),
        datetime.now(timezone.utc),
        datetime(1, 1, 1),
        datetime(9999, 12, 31, tzinfo=timezone.utc),
    ]
)
# What samplers leave behind: ours, Optuna's old and new constraints, others'.
attributes = st.dictionaries(
    st.sampled_from(
        [
            *("dre:suggestion", "constraints", "constraints:c"),
            *("fixed_params", "cma:generation", "nsga2:generation", "tpe:relative_params"),
        ]
    ),
    anything
    | st.lists(numbers, max_size=2)
    | st.sampled_from([{"x": math.inf}, {"k": 7.0, "n": -3}, {"x": "a"}, "[" * 5000])
    | st.dictionaries(names, anything, max_size=3),
    max_size=3,
)


@st.composite
def parameters(draw: st.DrawFn) -> tuple[BaseDistribution, Any]:
    """Draw a distribution and a value, which mostly is one of it."""
    distribution = draw(st.sampled_from(DISTRIBUTIONS))
    if draw(st.integers(0, 3)) == 0:
        return distribution, draw(numbers)
    if isinstance(distribution, CategoricalDistribution):
        return distribution, draw(st.sampled_from(distribution.choices))
    low, high = max(distribution.low, -1e300), min(distribution.high, 1e300)
    value = draw(st.sampled_from([low, high, 0.5 * low + 0.5 * high]))
    return distribution, int(value) if isinstance(distribution, IntDistribution) else value


@st.composite
def trials(draw: st.DrawFn, n_objectives: int) -> FrozenTrial:
    """Draw a trial that Optuna itself would not always have let in."""
    params = draw(st.dictionaries(names, parameters(), max_size=4))
    state = draw(st.sampled_from(list(TrialState)))
    values = draw(st.lists(numbers, min_size=n_objectives, max_size=n_objectives))
    rungs = st.dictionaries(st.integers(-5, 2**62), numbers, max_size=3)
    return FrozenTrial(
        number=-1,
        trial_id=-1,
        state=state,
        value=None,
        values=values if state is TrialState.COMPLETE else None,
        datetime_start=draw(st.none() | moments),
        datetime_complete=draw(st.none() | moments),
        params={name: value for name, (_, value) in params.items()},
        distributions={name: distribution for name, (distribution, _) in params.items()},
        user_attrs=draw(st.dictionaries(st.just("dre:explanation"), anything, max_size=1)),
        system_attrs=draw(attributes),
        intermediate_values=draw(rungs),
    )


@dataclass(frozen=True)
class Stored:
    """Hold what a study is found to have, and what its user has enqueued."""

    trials: list[FrozenTrial]
    enqueued: list[dict[str, Any]]
    n_objectives: int
    n_proper: int


@st.composite
def studies(draw: st.DrawFn) -> Stored:
    n_objectives = draw(st.sampled_from([1, 1, 2]))
    wishes = st.dictionaries(names, anything | numbers, max_size=3)
    return Stored(
        draw(st.lists(trials(n_objectives), max_size=4)),
        draw(st.lists(wishes, max_size=2)),
        n_objectives,
        draw(st.integers(0, 3)),
    )


@cache
def tables() -> Any:
    """Return one SQLite for all studies: to create its tables takes longer than a study does."""
    return optuna.storages.RDBStorage("sqlite:///:memory:")


def storage_of(kind: str, folder: Path) -> Any:
    if kind == "in-memory":
        return optuna.storages.InMemoryStorage()
    if kind == "SQLite":
        return tables()
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(folder / "journal")))


def objective(trial: Trial) -> float | tuple[float, ...]:
    x = trial.suggest_float("x", 0.0, 1.0)
    value = x + trial.suggest_int("n", 1, 9)
    if trial.suggest_categorical("k", ["a", "b", "c"]) == "a":
        value += trial.suggest_float("only a", 1e-3, 1.0, log=True)
    return (value, -value)[: len(trial.study.directions)]
