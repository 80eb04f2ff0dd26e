"""A recommender: what it suggests, and its settings, checked where they are built."""

import doctest
import math
import pickle
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from presets import QUICK
from small_spaces import GRID, PLANE, history_of, sphere

import dre_plugins
from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend import (
    Recommender,
    RecommenderSettings,
    Trial,
    TrialState,
    settings as module,
)
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace

SETTINGS = RecommenderSettings(preset=QUICK, n_startup_trials=4)


def suggest(history, *, space=PLANE, settings=SETTINGS, seed=0, index=None, count=1, stats=None):
    recommender = Recommender(space, settings, seed=seed, stats=stats)
    return recommender.suggest(history, count, index=len(history) if index is None else index)


def continued(history, n: int, objective=sphere, **options) -> list[Trial]:
    """Return the history and so many suggestions after it."""
    for _ in range(n):
        (suggestion,) = suggest(history, **options)
        value = objective(suggestion.configuration)
        history = [*history, Trial(suggestion.configuration, TrialState.COMPLETE, value)]
    return history


def test_a_suggestion_is_a_function_of_history_seed_and_index() -> None:
    history = history_of(8)
    first = suggest(history)[0].configuration
    assert first == suggest(list(history))[0].configuration
    assert first != suggest(history, seed=1)[0].configuration
    assert first != suggest(history, index=9)[0].configuration


def test_start_up_is_one_space_filling_sequence() -> None:
    settings = replace(SETTINGS, n_startup_trials=100)
    middle, *points = (suggest([], index=i, settings=settings)[0] for i in (0, *range(16, 32)))
    assert middle.configuration == {"x": 0.0, "y": 0.0}
    assert {point.source for point in points} == {"random"}
    quadrants = Counter(
        (point.configuration["x"] > 0, point.configuration["y"] > 0) for point in points
    )
    assert set(quadrants.values()) == {4}


def test_trials_that_are_all_equal_are_followed_by_space_filling_points() -> None:
    """Models would propose the corners only, as nothing is said of any other point."""
    history = history_of(12, value=lambda c: 0.5)
    failure = Trial({"x": 0.0, "y": 0.0}, TrialState.FAILED)
    assert suggest(history)[0].source == suggest([*history, failure])[0].source == "random"
    for told in (
        Trial({"x": 0.0, "y": 0.0}, TrialState.COMPLETE, 0.6),
        replace(history[0], constraints={"c": 1.0}),
    ):
        assert suggest([*history, told])[0].source == "universal-prior"


def test_the_model_finds_a_smooth_optimum() -> None:
    history = history_of(6)
    for _ in range(14):
        (suggestion,) = suggest(history)
        assert suggestion.source == ("universal-prior" if len(history) % 2 else "model")
        explanation = suggestion.explanation
        assert explanation.predicted_rank is not None and explanation.spread is not None
        value = sphere(suggestion.configuration)
        history.append(Trial(suggestion.configuration, TrialState.COMPLETE, value))
    assert max(trial.value for trial in history) > -0.01


def test_an_optimum_on_several_bounds_is_reached() -> None:
    space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(7)})

    def corner(configuration) -> float:
        return sum(configuration.values())

    history = continued(history_of(10, space, corner), 15, corner, space=space)
    assert max(trial.value for trial in history) > 6.5


@pytest.mark.parametrize("n_ended", [0, 6])
def test_suggestions_of_a_batch_are_all_different(n_ended) -> None:
    history = history_of(n_ended, GRID, lambda c: float(c["a"]))
    seen = {tuple(trial.configuration.values()) for trial in history}
    batch = suggest(history, space=GRID, count=18 - len(seen))
    assert len(seen | {tuple(suggestion.configuration.values()) for suggestion in batch}) == 18


@pytest.mark.parametrize("n_ended", [0, 8])
def test_the_rest_is_chosen_to_go_with_fixed_values(n_ended) -> None:
    recommender = Recommender(PLANE, SETTINGS, seed=0)
    history = history_of(n_ended)
    batch = recommender.suggest(history, 3, index=n_ended, fixed={"x": 0.25})
    assert {suggestion.configuration["x"] for suggestion in batch} == {0.25}
    assert len({suggestion.configuration["y"] for suggestion in batch}) == 3
    cells = Recommender(GRID, SETTINGS, seed=0).suggest(
        history_of(n_ended, GRID, lambda c: float(c["a"])), 3, index=0, fixed={"b": "z"}
    )
    assert {suggestion.configuration["b"] for suggestion in cells} == {"z"}


def test_fixed_values_are_kept_exactly_even_without_their_parent() -> None:
    space = SearchSpace(
        {"kind": Categorical(("a", "b")), "y": Float(0.0, 1.0)}, [Condition("y", "kind", ("b",))]
    )
    third = 0.7 / 3
    for n_ended in (0, 8):
        history = history_of(n_ended, space, lambda c: c.get("y", 0.5))
        recommender = Recommender(space, SETTINGS, seed=0)
        (suggestion,) = recommender.suggest(history, index=n_ended, fixed={"y": third})
        assert suggestion.configuration["y"] == third
    for fixed in ({"y": 7.0}, {"unknown": 1}):
        with pytest.raises(ValueError, match="fixed"):
            Recommender(space, SETTINGS, seed=0).suggest([], index=0, fixed=fixed)


def test_what_was_observed_outside_the_range_is_taught_where_it_was() -> None:
    """Values fall beyond x = 1, which the range ends at now: 1 itself is still the best."""
    wide = [Trial({"x": x}, TrialState.COMPLETE, -x) for x in np.linspace(1.2, 5.0, 12)]
    narrow = [Trial({"x": x}, TrialState.COMPLETE, x) for x in np.linspace(0.1, 0.9, 6)]
    space = SearchSpace({"x": Float(0.0, 1.0)})
    history = continued([*wide, *narrow], 8, lambda c: c["x"], space=space)
    assert max(trial.configuration["x"] for trial in history[18:]) > 0.995


def test_the_last_configurations_of_a_larger_finite_space_are_found() -> None:
    space = SearchSpace({"a": Integer(0, 69), "b": Integer(0, 69)})  # beyond MAX_TABLE
    cells = [{"a": a, "b": b} for a in range(70) for b in range(70)]
    left = cells.pop(1234)
    history = [Trial(cell, TrialState.COMPLETE, float(cell["a"])) for cell in cells]
    for index, source in ((4900, "model"), (4901, "universal-prior")):
        (last,) = suggest(history, space=space, index=index)
        assert (last.configuration, last.source) == (left, source)


def test_a_history_that_the_space_cannot_hold_is_a_clear_error() -> None:
    history = [*history_of(8, GRID, lambda c: 0.0), Trial({"a": 0, "b": "?"}, TrialState.RUNNING)]
    with pytest.raises(ValueError, match=r"b.*\?"):
        suggest(history, space=GRID)


@pytest.mark.parametrize(("name", "wrong"), [("count", 0), ("count", "2"), ("index", -1)])
def test_what_is_no_count_or_index_is_refused(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*integer.*, got {wrong!r}"):
        suggest([], **{name: wrong})


def test_an_exhausted_space_repeats_and_says_so() -> None:
    everything = [
        Trial({"a": a, "b": b}, TrialState.COMPLETE, float(a)) for a in range(3) for b in "uvwxyz"
    ]
    stats: Counter[str] = Counter()
    for settings in (SETTINGS, replace(SETTINGS, n_startup_trials=100)):
        (suggestion,) = suggest(everything, space=GRID, settings=settings, stats=stats)
        assert suggestion.source == "exhausted"
        assert GRID.contains(suggestion.configuration)
    assert stats["exhausted"] == 2
    settings = replace(SETTINGS, allow_duplicates=True)
    (suggestion,) = suggest(everything, space=GRID, settings=settings)
    assert suggestion.source == "model"


@pytest.mark.parametrize(("failed", "border"), [("worst", 0.0), ("model", 0.6)])
def test_failures_are_avoided(failed: str, border: float) -> None:
    """All trials beyond a border fail; the optimum is at x = .4."""

    def half(configuration) -> float:
        return sphere(configuration) if configuration["x"] < border else math.nan

    settings = replace(SETTINGS, failed=failed)
    history = continued(history_of(10, value=half), 20, half, settings=settings)
    assert sum(math.isnan(trial.value) for trial in history[10:]) <= 4


def test_failures_that_have_nothing_to_do_with_the_configuration_cost_little() -> None:
    """Every third trial fails, those near the optimum as well."""
    history = history_of(6)
    for number in range(6, 30):
        (suggestion,) = suggest(history)
        value = None if number % 3 == 0 else sphere(suggestion.configuration)
        history.append(Trial(suggestion.configuration, TrialState.COMPLETE, value))
    assert max(trial.value for trial in history if trial.value is not None) > -0.01


def test_pruned_trials_steer_the_search() -> None:
    """All that is known of x < 0 is that trials there were pruned for a bad first report."""
    history = [
        Trial(t.configuration, TrialState.PRUNED, None, {1: -1.0})
        if t.configuration["x"] < 0
        else Trial(t.configuration, TrialState.COMPLETE, 0.0, {1: 1.0})
        for t in history_of(16)
    ]
    suggestions = [suggest(history, index=i)[0].configuration["x"] for i in range(16, 26)]
    assert sum(x > 0 for x in suggestions) >= 8


# ---- settings


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("acquisition", "ucb", "acquisition must be .*'ei'.*, or with preset='paper' .*'ucb'"),
        ("acquisition", "lcb", "acquisition.*'ei'.*preset='paper'.*'lcb'"),
        ("preset", "huge", "preset.*'default'.*'huge'"),
        ("preset", ["default"], r"preset.*'default'.*got \['default'\]"),
        ("device", "cudaa", "device.*'cudaa'"),
        ("device", None, "device.*None"),
        ("n_threads", 0, "n_threads.*at least 1.*0"),
        ("n_threads", 1.5, "n_threads.*an integer.*1.5"),
        ("n_threads", True, "n_threads.*an integer.*True"),
        ("n_threads", 1025, "n_threads must be at most 1024, got 1025"),
        ("max_history", 1, "max_history.*at least 2.*1"),
        ("max_history", "all", "max_history.*'all'"),
        ("order_numeric_choices", "no", "order_numeric_choices.*True or False.*'no'"),
    ],
)
def test_what_is_wrong_is_named_where_it_is_built(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**{name: value})


def test_the_default_preset_itself_is_as_its_name() -> None:
    with pytest.raises(ValueError, match=r"acquisition.*'pi'"):
        Settings(acquisition="pi", preset=get_preset("default"))
    assert Settings(acquisition="pi", preset=get_preset("paper")).acquisition == "pi"


def test_they_are_public_frozen_and_comparable() -> None:
    assert dre_plugins.Settings is Settings
    settings = Settings(max_history=64)
    assert pickle.loads(pickle.dumps(settings)) == settings == Settings(max_history=64)
    with pytest.raises(AttributeError):
        settings.max_history = 3  # type: ignore[misc]


def test_every_field_reaches_the_recommender() -> None:
    """A field that only `Settings` had would be taken and then ignored."""
    shared = {field.name for field in fields(RecommenderSettings)}
    chosen = Settings(acquisition="pi", preset="paper", n_threads=3, max_history=9)
    made = chosen.for_recommender(n_startup_trials=2, allow_duplicates=True, failed="ignore")
    for field in fields(Settings):
        if field.name != "order_numeric_choices":  # what adapters read
            assert field.name in shared
            assert getattr(made, field.name) == getattr(chosen, field.name)
    assert (made.n_startup_trials, made.allow_duplicates, made.failed) == (2, True, "ignore")
    assert Settings().for_recommender() == RecommenderSettings()


def test_the_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0
