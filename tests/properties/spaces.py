"""Search spaces of any domains and conditions, each with an own rule for what belongs to it.

The rules share no code with `dre_plugins.space`: they are about plain values, in exact arithmetic.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import assume, strategies as st

from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Domain,
    Float,
    Integer,
    Normal,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.space.base import UnsupportedDomainError

Rule = Callable[[Any], bool]


@dataclass(frozen=True)
class Parameter:
    """A domain, and the rule for its values."""

    domain: Domain
    rule: Rule


def exactly(value: Any) -> tuple[type, str]:
    """Return what is equal for values of the same type and value; NaN is itself."""
    return type(value), repr(value)


def among(values: Any) -> Rule:
    return lambda value: exactly(value) in {exactly(allowed) for allowed in values}


def real(low: float, high: float) -> Rule:
    return lambda value: type(value) is float and low <= value <= high


def whole(low: int, high: int, step: int = 1) -> Rule:
    return lambda value: type(value) is int and low <= value <= high and (value - low) % step == 0


def on_grid(low: float, high: float, step: float) -> Rule:
    """Values are low + k * step as the decimals that were written, rounded once."""
    first, stride = Decimal(repr(low)), Decimal(repr(step))

    def is_on_grid(value: Any) -> bool:
        if type(value) is not float or not low <= value <= high:
            return False
        k = round((Fraction(value) - Fraction(first)) / Fraction(stride))
        return value == float(Fraction(first) + k * Fraction(stride))

    return is_on_grid


def built(make: Callable[[], Domain]) -> Domain:
    """Build a domain; skip the case if it is refused with a message."""
    try:
        return make()
    except UnsupportedDomainError:
        assume(False)
        raise


finite = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.integers(-999, 999).map(lambda n: n / 100)
texts = st.text(max_size=5)


@st.composite
def floats(draw: st.DrawFn) -> Parameter:
    scale = draw(st.sampled_from(["linear", "log", "reverse-log"]))
    positive, shares = st.floats(5e-324, 1.7e308), st.floats(0.0, 1.0, exclude_max=True)
    kind = {"linear": finite, "log": positive, "reverse-log": shares}[scale]
    low, high = sorted([draw(kind), draw(kind)])
    return Parameter(built(lambda: Float(low, high, scale)), real(low, high))


@st.composite
def float_grids(draw: st.DrawFn) -> Parameter:
    scale = draw(st.sampled_from(["linear", "log"]))
    low = draw(decimals) if scale == "linear" else draw(st.integers(1, 500)) / 100
    step = draw(st.sampled_from([0.01, 0.05, 0.1, 0.25, 1.0, 3.0, 1e-6]))
    high = low + draw(st.integers(0, 300)) * draw(st.sampled_from([0.01, 0.07, 0.1, 1.0]))
    domain = built(lambda: Float(low, high, scale, step))
    return Parameter(domain, on_grid(low, high, step))


@st.composite
def integers(draw: st.DrawFn) -> Parameter:
    scale = draw(st.sampled_from(["linear", "log"]))
    size = draw(st.sampled_from([3, 100, 10**9, 10**30, 10**300]))
    low = draw(st.integers(1 if scale == "log" else -size, size))
    high = low + draw(st.integers(0, size))
    step = draw(st.integers(1, 7))
    return Parameter(built(lambda: Integer(low, high, scale, step)), whole(low, high, step))


@st.composite
def normals(draw: st.DrawFn) -> Parameter:
    mean, sd = draw(decimals), draw(st.integers(1, 500)) / 100
    step = draw(st.sampled_from([None, 0.1, 0.5, 2.0]))
    reach = 4 * sd + 1e-9 + (step or 0.0)
    if step is None:
        return Parameter(Normal(mean, sd), real(mean - reach, mean + reach))
    multiple = on_grid(0.0, float("inf"), step)
    return Parameter(
        Normal(mean, sd, step),
        lambda value: real(mean - reach, mean + reach)(value) and multiple(abs(value)),
    )


choices = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(10**20, 10**21),
    st.sampled_from([0.5, 1.0, float("nan"), float("inf"), 1e300, 5e-324]),
    texts,
    st.tuples(st.integers(0, 2), texts),
    st.lists(st.integers(0, 2), max_size=2),
    st.dictionaries(texts, st.integers(0, 2), max_size=1),
)


@st.composite
def categories(draw: st.DrawFn) -> Parameter:
    most = draw(st.sampled_from([4, 4, 40]))
    kinds = choices if most == 4 else st.integers(0, 10**6) | texts
    values = draw(st.lists(kinds, min_size=1, max_size=most, unique_by=exactly))
    return Parameter(Categorical(tuple(values)), among(values))


@st.composite
def ordinals(draw: st.DrawFn) -> Parameter:
    spacing = draw(st.sampled_from(["equal", "linear", "log"]))
    numbers = st.integers(1, 10**6) | st.floats(1e-3, 1e6)
    values = sorted(draw(st.lists(numbers, min_size=1, max_size=6, unique=True)))
    return Parameter(Ordinal(tuple(values), spacing), among(values))


constants = choices.map(lambda value: Parameter(Constant(value), among([value])))
parameters = st.one_of(
    floats(), float_grids(), integers(), normals(), categories(), ordinals(), constants
)


@dataclass(frozen=True)
class SpaceCase:
    """A search space, and rules for its configurations."""

    space: SearchSpace
    rules: Mapping[str, Rule]
    is_active: Mapping[str, Callable[[Mapping[str, Any]], bool]]

    def check(self, configuration: Mapping[str, Any]) -> None:
        """Assert that a configuration has all active parameters, no other, and right values."""
        assert type(configuration) is dict
        for name, rule in self.rules.items():
            is_wanted = self.is_active.get(name, lambda _: True)(configuration)
            assert (name in configuration) == is_wanted, (name, configuration)
            if is_wanted:
                value = configuration[name]
                assert rule(value), (name, value, self.space.domains[name])
        assert configuration.keys() <= self.rules.keys()


@st.composite
def space_cases(draw: st.DrawFn, most: int = 5) -> SpaceCase:
    names = draw(st.lists(texts, min_size=1, max_size=most, unique=True))
    drawn = {name: draw(parameters) for name in names}
    conditions: list[Any] = []
    active: dict[str, Callable[[Mapping[str, Any]], bool]] = {}
    for place, child in enumerate(names[1:], start=1):
        parent = names[draw(st.integers(0, place - 1))]
        domain = drawn[parent].domain
        if isinstance(drawn[child].domain, Constant) or not draw(st.booleans()):
            continue
        if isinstance(domain, (Categorical, Ordinal)):
            listed = domain.choices if isinstance(domain, Categorical) else domain.values
            wanted = draw(
                st.lists(st.sampled_from(listed), min_size=1, max_size=3, unique_by=repr)
            )
            conditions.append(Condition(child, parent, tuple(wanted)))
            active[child] = _has(parent, among(wanted))
        elif isinstance(domain, Integer) and domain.high < 2**50 and domain.low > -(2**50):
            bound = draw(st.integers(domain.low, domain.high))
            conditions.append(RangeCondition(child, parent, low=bound))
            active[child] = _has(parent, lambda value, bound=bound: value >= bound)
    space = SearchSpace({name: case.domain for name, case in drawn.items()}, conditions)
    return SpaceCase(space, {name: case.rule for name, case in drawn.items()}, active)


def _has(parent: str, rule: Rule) -> Callable[[Mapping[str, Any]], bool]:
    return lambda configuration: parent in configuration and rule(configuration[parent])
