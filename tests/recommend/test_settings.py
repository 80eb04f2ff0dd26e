"""`Settings`: checked where they are built, and stating a default changes nothing."""

import doctest
import pickle
from dataclasses import fields
from typing import Any

import pytest

import dre_plugins
from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend import RecommenderSettings, settings as module
from dre_plugins.recommend.settings import Settings


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
