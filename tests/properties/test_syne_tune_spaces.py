"""Random configuration spaces of Syne Tune, and trials that end in any way."""

import copy
from typing import Any

import pytest
from cases import cases
from histories import SETTINGS, values
from hypothesis import assume, given, strategies as st
from spaces import among, exactly, real, whole

cs = pytest.importorskip("syne_tune.config_space")

from dre_plugins.adapters.syne_tune import DRESearcher  # noqa: E402

names = st.text(max_size=4)
ITEMS: tuple[st.SearchStrategy[Any], ...] = (
    *(st.text(max_size=3), st.booleans(), st.integers(-9, 9)),
    st.integers(-99, 99).map(lambda n: n / 10),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.lists(st.integers(0, 2), max_size=2),
)


@st.composite
def domains(draw: st.DrawFn) -> tuple[Any, Any]:
    """A domain of Syne Tune, and the rule for its values."""
    kind = draw(
        st.sampled_from(["uniform", "log", "reverse", "int", "log int", "choice", "other"])
    )
    low, width = draw(st.integers(1, 500)) / 100, draw(st.integers(0, 500)) / 100
    first, count = draw(st.integers(1, 60)), draw(st.integers(0, 60))
    if kind == "uniform":
        return cs.uniform(low - 3, low - 3 + width), real(low - 3, low - 3 + width)
    if kind == "log":
        return cs.loguniform(low, low + width), real(low, low + width)
    if kind == "reverse":
        return cs.reverseloguniform(0.1 * low / 6, 0.99), real(0.1 * low / 6, 0.99)
    if kind == "int":
        return cs.randint(first - 30, first - 30 + count), whole(first - 30, first - 30 + count)
    if kind == "log int":
        return cs.lograndint(first, first + count), whole(first, first + count)
    if kind == "choice":
        # One kind: Syne Tune refuses choices of several.
        lists = (st.lists(items, min_size=1, max_size=5, unique_by=exactly) for items in ITEMS)
        listed = draw(st.one_of(*lists))
        assume(
            all(choice != other for choice in listed for other in listed if choice is not other)
        )
        return cs.choice(listed), among(listed)
    made = draw(
        st.sampled_from(
            [
                cs.finrange(0.0, 1.0, 1 + count),
                cs.logfinrange(low, low + width + 1, 2 + count % 9),
                cs.finrange(first, first + 60, 7, cast_int=True),
                cs.ordinal(sorted({first, first + count, 99}), kind="nn"),
                cs.logordinal([first, first + count + 1]),
                cs.ordinal(["small", "large"], kind="equal"),
            ]
        )
        if count
        else st.just(cs.ordinal([1, 2, 4]))
    )
    values = made.values if isinstance(made, cs.FiniteRange) else made.categories
    return made, among(values)


@st.composite
def config_spaces(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    drawn = draw(st.dictionaries(names, domains(), min_size=1, max_size=5))
    return {name: domain for name, (domain, _) in drawn.items()}, {
        name: rule for name, (_, rule) in drawn.items()
    }


@cases(8)
@given(
    config_spaces(),
    st.integers(0, 2**31 - 1),
    st.lists(st.sampled_from(["complete", "error", "stop", "reports"]), min_size=1, max_size=6),
    st.lists(values | st.text(max_size=2) | st.none(), min_size=1, max_size=6),
)
def test_suggestions_belong_to_the_space(
    drawn: tuple[dict[str, Any], dict[str, Any]], seed: int, ends: list[str], told: list[Any]
) -> None:
    config_space, rules = drawn
    searcher = DRESearcher(config_space, random_seed=seed, settings=SETTINGS, n_startup_trials=2)
    for trial_id in range(6):
        config = searcher.suggest()
        if config is None:
            assert searcher.study.is_exhausted
            return
        assert config.keys() == rules.keys()
        for name, rule in rules.items():
            assert rule(config[name]), (name, config[name], config_space[name])
        how, value = ends[trial_id % len(ends)], told[trial_id % len(told)]
        searcher.on_trial_add(trial_id, config)
        if how == "reports":
            searcher.on_trial_result(trial_id, config, value, resource_level=1)
        elif how == "error":
            searcher.on_trial_error(trial_id, config)
        elif how == "stop":
            searcher.on_trial_stop(trial_id, config)
        else:
            searcher.on_trial_complete(trial_id, config, value)
        assert searcher.explain(trial_id).source != "unknown"
    assert searcher.stats["fallbacks"] == 0
    assert repr(copy.deepcopy(searcher).suggest()) == repr(searcher.suggest())
