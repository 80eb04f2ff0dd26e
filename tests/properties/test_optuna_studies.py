"""Random studies of Optuna: any parameters, asked for one by one or as a whole, any end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import assume, given, strategies as st
from spaces import Rule, among, exactly, on_grid, real, whole

optuna = pytest.importorskip("optuna")

from histories import SETTINGS  # noqa: E402
from optuna.distributions import (  # noqa: E402
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from dre_plugins.adapters.optuna import DRESampler  # noqa: E402
from dre_plugins.space.base import UnsupportedDomainError  # noqa: E402

seeds = st.integers(0, 2**32 - 1)
# What an objective may do after its parameters; numbers are returned.
ENDS = (
    *(1.0, -2.5, 3, 0.1, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, np.float32(2)),
    *("raise", "prune", "report and prune", "report nan and prune", "report", None),
)


@dataclass(frozen=True)
class Asked:
    """A parameter, the rule for its values, and when it is asked for."""

    name: str
    distribution: BaseDistribution
    rule: Rule
    parent: str | None
    wanted: tuple[Any, ...]


@st.composite
def distributions(draw: st.DrawFn) -> tuple[BaseDistribution, Rule]:
    kind = draw(st.sampled_from(["float", "log", "step", "int", "log int", "huge int", "choice"]))
    if kind == "choice":
        plain = st.one_of(
            st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.text()
        )
        odd = st.lists(st.integers(0, 2), max_size=2)  # Optuna warns of them
        choices = draw(st.lists(plain | odd, min_size=1, max_size=5, unique_by=exactly))
        # Optuna itself takes 1, 1.0 and True for the same in an in-memory study.
        assume(len({repr(choice) for choice in choices}) == len(choices))
        assume(
            all(choice != other for choice in choices for other in choices if choice is not other)
        )
        return CategoricalDistribution(choices), among(choices)
    if kind == "float":
        low, high = sorted(draw(st.tuples(*[st.floats(-1e150, 1e150)] * 2)))
        return FloatDistribution(low, high), real(low, high)
    if kind == "log":
        low, high = sorted(draw(st.tuples(*[st.floats(1e-300, 1e300)] * 2)))
        return FloatDistribution(low, high, log=True), real(low, high)
    if kind == "step":
        low, step = draw(st.integers(-99, 99)) / 10, draw(st.sampled_from([0.1, 0.25, 3.0]))
        made = FloatDistribution(low, low + draw(st.integers(0, 99)) / 10, step=step)
        return made, on_grid(low, made.high, step)
    size = 10**30 if kind == "huge int" else 50
    low, width = draw(st.integers(1, size)), draw(st.integers(0, size))
    if kind == "log int":
        return IntDistribution(low, low + width, log=True), whole(low, low + width)
    # Of huge integers Optuna itself loses the grid.
    step = draw(st.integers(1, 5)) if kind == "int" else 1
    made = IntDistribution(low - 7, low - 7 + width, step=step)
    return made, whole(low - 7, made.high, step)


@st.composite
def programs(draw: st.DrawFn) -> list[Asked]:
    names = draw(st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True))
    program: list[Asked] = []
    for name in names:
        distribution, rule = draw(distributions())
        parents = [p for p in program if isinstance(p.distribution, CategoricalDistribution)]
        parent, wanted = None, ()
        if parents and draw(st.booleans()):
            parent_step = draw(st.sampled_from(parents))
            wanted = tuple(
                draw(st.lists(st.sampled_from(parent_step.distribution.choices), min_size=1))
            )
            parent = parent_step.name
        program.append(Asked(name, distribution, rule, parent, wanted))
    return program


def ask(trial: Any, program: list[Asked]) -> dict[str, Any]:
    """Ask for what a program asks for, and check each value as it comes."""
    values: dict[str, Any] = {}
    for step in program:
        if step.parent is not None and not (
            step.parent in values and among(step.wanted)(values[step.parent])
        ):
            continue
        d = step.distribution
        if isinstance(d, CategoricalDistribution):
            value = trial.suggest_categorical(step.name, d.choices)
        elif isinstance(d, IntDistribution):
            value = trial.suggest_int(step.name, d.low, d.high, step=d.step, log=d.log)
        else:
            value = trial.suggest_float(step.name, d.low, d.high, step=d.step, log=d.log)
        assert step.rule(value), (step, value)
        values[step.name] = value
    return values


def end(trial: Any, how: Any) -> Any:
    if how == "raise":
        raise RuntimeError("out of memory")
    if isinstance(how, str):
        trial.report(math.nan if "nan" in how else 1.0, 3)
        if "prune" in how:
            raise optuna.TrialPruned
        return 2.0
    return how


def sampler_of(seed: int, **arguments: Any) -> DRESampler:
    few = {"settings": SETTINGS, "n_startup_trials": 3, "warn_independent_sampling": False}
    return DRESampler(seed=seed, **few, **arguments)


@cases(8)
@given(
    programs(),
    seeds,
    st.sampled_from(["minimize", "maximize"]),
    st.lists(st.sampled_from(ENDS), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_define_by_run(
    program: list[Asked], seed: int, direction: str, ends: list[Any], n: int
) -> None:
    sampler = sampler_of(seed)
    study = optuna.create_study(direction=direction, sampler=sampler)

    def objective(trial: Any) -> Any:
        ask(trial, program)
        return end(trial, ends[trial.number % len(ends)])

    study.optimize(objective, n_trials=n, catch=RuntimeError)
    assert len(study.trials) == n
    assert sampler.stats["fallbacks"] == 0
    for trial in study.trials:
        # Of a single value Optuna does not ask a sampler.
        if not all(distribution.single() for distribution in trial.distributions.values()):
            assert sampler.explain(study, trial).source != "unknown"


@cases(12)
@given(
    programs(),
    seeds,
    st.lists(st.sampled_from(ENDS), min_size=1, max_size=8),
    st.sampled_from([0, 1, 3, 8, 30]),
)
def test_a_fixed_space_with_trials_from_elsewhere(
    program: list[Asked], seed: int, ends: list[Any], n: int
) -> None:
    space = {step.name: step.distribution for step in program}
    # Of huge integers Optuna refuses trials from elsewhere: it compares them as floats.
    is_huge = [
        isinstance(distribution, IntDistribution) and distribution.high >= 2**53
        for distribution in space.values()
    ]
    assume(not any(is_huge))
    rules = {step.name: step.rule for step in program}
    asked = []
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        sampler = sampler_of(seed)
        study = optuna.create_study(direction=direction, sampler=sampler)
        for number in range(n):
            study.add_trial(from_elsewhere(space, number, ends[number % len(ends)], sign))
        trial = study.ask(space)
        assert trial.params.keys() == space.keys()
        assert all(rule(trial.params[name]) for name, rule in rules.items()), trial.params
        assert sampler.stats["fallbacks"] == 0
        asked.append(repr(trial.params))
    assert asked[0] == asked[1]


def from_elsewhere(
    space: Mapping[str, BaseDistribution], number: int, how: Any, sign: float
) -> Any:
    rng = np.random.default_rng(number)
    params = {name: drawn(distribution, rng) for name, distribution in space.items()}
    has_value = how is not None and not isinstance(how, str) and not math.isnan(how)
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=states.COMPLETE if has_value else states.PRUNED if how else states.FAIL,
        value=sign * float(how) if has_value else None,
        params=params,
        distributions=dict(space),
        intermediate_values={3: sign * 1.0} if isinstance(how, str) else {},
    )


def drawn(distribution: BaseDistribution, rng: np.random.Generator) -> Any:
    """Draw a value; Optuna's own random sampler leaves huge and tiny ranges."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[rng.integers(len(distribution.choices))]
    low, high, step = distribution.low, distribution.high, distribution.step
    if isinstance(distribution, IntDistribution):
        return low + step * int(rng.integers(min((high - low) // step + 1, 2**50)))
    between = low + (high - low) * rng.random() if step is None else high
    return min(max(float(rng.choice([low, high, between])), low), high)


def test_what_is_too_wide_is_refused_with_its_name() -> None:
    study = optuna.create_study(sampler=sampler_of(0))
    with pytest.raises(UnsupportedDomainError, match=r"'x'.*too wide"):
        study.ask({"x": FloatDistribution(-1.7e308, 1.7e308)})
