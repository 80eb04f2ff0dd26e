"""Random parameter spaces of Ray Tune, nested in any way, and trials that end in any way."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from cases import cases
from histories import SETTINGS, values
from hypothesis import given, strategies as st
from spaces import among, exactly, real, whole

tune = pytest.importorskip("ray.tune")

from dre_plugins.adapters.ray_tune import DRESearch  # noqa: E402

letters = st.characters(exclude_characters="/", exclude_categories=["Cs"])
names = st.text(letters, min_size=1, max_size=4)
fixed = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.just([1, 2])


def multiples(low: float, high: float, step: float) -> Any:
    """Multiples of a step, wherever the range begins; as near as floats are."""

    def rule(value: Any) -> bool:
        k = value / step
        return low - 1e-9 <= value <= high + 1e-9 and math.isclose(k, round(k), abs_tol=1e-6)

    return rule


@st.composite
def domains(draw: st.DrawFn) -> tuple[Any, Any]:
    """A domain of Ray and the rule for its values."""
    kind = draw(st.sampled_from(["uniform", "log", "q", "int", "log int", "q int", "n", "choice"]))
    low, width = draw(st.integers(1, 500)) / 100, draw(st.integers(1, 500)) / 100
    first, count = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    if kind == "uniform":
        low -= 3
        return tune.uniform(low, low + width), real(low, low + width)
    if kind == "log":
        return tune.loguniform(low, low + width), real(low, low + width)
    if kind == "q":
        step = draw(st.sampled_from([0.1, 0.25]))
        low = round(low / step) * step
        high = low + draw(st.integers(1, 30)) * step
        make = tune.quniform if draw(st.booleans()) or low <= 0 else tune.qloguniform
        return make(low, high, step), multiples(low, high, step)
    if kind == "int":
        return tune.randint(first - 9, first - 9 + count), whole(first - 9, first - 10 + count)
    if kind == "log int":
        return tune.lograndint(first, first + count), whole(first, first + count - 1)
    if kind == "q int":
        step = draw(st.integers(1, 4))
        high = (first + count) * step
        rule = whole(first * step, high if step > 1 else high - 1, step)
        return tune.qrandint(first * step, high, step), rule
    if kind == "n":
        return tune.randn(low, width), real(low - 4 * width - 1e-9, low + 4 * width + 1e-9)
    listed = draw(st.lists(fixed, min_size=1, max_size=4, unique_by=exactly))
    return tune.choice(listed), among(listed)


@st.composite
def param_spaces(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], Any]:
    """A parameter space, and a function that checks a configuration of it."""
    space: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        kind = draw(st.sampled_from(["domain"] * 4 + ["fixed", "nested", "list", "branches"]))
        if kind == "fixed" or (depth == 0 and kind != "domain"):
            space[name] = draw(fixed)
            rules[name] = among([space[name]])
        elif kind == "domain":
            space[name], rules[name] = draw(domains())
        elif kind == "nested":
            space[name], rules[name] = draw(param_spaces(depth - 1))
        elif kind == "list":
            drawn = draw(st.lists(domains(), min_size=1, max_size=2))
            space[name] = [domain for domain, _ in drawn]
            rules[name] = _all_of([rule for _, rule in drawn])
        else:
            drawn = draw(st.lists(domains(), min_size=2, max_size=3))
            space[name] = tune.choice(
                [{"kind": place, f"x{place}": domain} for place, (domain, _) in enumerate(drawn)]
            )
            rules[name] = _branch_of([rule for _, rule in drawn])
    return space, _mapping_of(rules)


def _mapping_of(rules: Mapping[str, Any]) -> Any:
    return lambda value: (
        type(value) is dict
        and value.keys() == rules.keys()
        and all(rule(value[name]) for name, rule in rules.items())
    )


def _all_of(rules: list[Any]) -> Any:
    parts = _mapping_of(dict(enumerate(rules)))
    return lambda value: type(value) is list and parts(dict(enumerate(value)))


def _branch_of(rules: list[Any]) -> Any:
    return lambda value: (
        value.keys() == {"kind", f"x{value['kind']}"}
        and rules[value["kind"]](value[f"x{value['kind']}"])
    )


@cases(8)
@given(
    param_spaces(),
    st.integers(0, 2**32),
    st.sampled_from(["min", "max"]),
    st.lists(st.sampled_from(["result", "error", "nothing", "reports"]), min_size=1, max_size=6),
    st.lists(values | st.text(max_size=2) | st.none(), min_size=1, max_size=6),
)
def test_suggestions_belong_to_the_space(
    drawn: tuple[dict[str, Any], Any], seed: int, mode: str, ends: list[str], told: list[Any]
) -> None:
    space, rule = drawn
    search = DRESearch(
        space, metric="loss", mode=mode, seed=seed, settings=SETTINGS, n_startup_trials=2
    )
    for number in range(6):
        trial_id, how = str(number), ends[number % len(ends)]
        config = search.suggest(trial_id)
        if config == DRESearch.FINISHED:
            break
        assert rule(config), config
        # What Ray hands back is read as what was suggested.
        result = {"loss": told[number % len(told)], "config": config, "training_iteration": 1}
        search.add_evaluated_point(config, 1.0)
        asked, added = (trial.configuration for trial in search.study.trials[-2:])
        names = [name for name in search.study.space.names if name in asked]
        assert [repr(added[name]) for name in names] == [repr(asked[name]) for name in names]
        if how == "reports":
            search.on_trial_result(trial_id=trial_id, result={**result, "loss": 1.0})
            result["training_iteration"] = 2
        if how == "error":
            search.on_trial_complete(trial_id=trial_id, error=True)
        else:
            search.on_trial_complete(trial_id, None if how == "nothing" else result)
    assert search.stats["fallbacks"] == 0
    restored = DRESearch()
    restored.set_state(search.get_state())
    assert repr(restored.suggest("next")) == repr(search.suggest("next"))
