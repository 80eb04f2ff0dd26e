"""`DRESearch(valid=…)`: the rule is asked about configurations as trials get them."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from presets import TINY

pytest.importorskip("ray.tune")

from ray import tune
from ray_tune_worker import MIXED_SPACE, begun, mixed_value, run, tiny_search

from dre_plugins.recommend.settings import Settings
from dre_plugins.space.rules import RuleError

pytestmark = pytest.mark.ray

SPACE = {
    "tree": {"low": tune.randint(1, 65), "high": tune.randint(1, 65)},
    "x": tune.uniform(0, 1),
    "limit": 60,
}
FAST = Settings(preset=replace(TINY, universal_turns=True))


def rising(config: dict[str, Any]) -> bool:
    return config["tree"]["low"] <= config["tree"]["high"] <= config["limit"]


def is_deep_or_slow(config: dict[str, Any]) -> bool:
    if config["kind"]["name"] == "a":
        return config["kind"]["depth"] > 6
    return config["rate"] <= config["kind"]["share"]


def loss(config: dict[str, Any]) -> float:
    return abs(config["tree"]["low"] - 20) + abs(config["tree"]["high"] - 25) + config["x"]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_every_suggestion_satisfies_the_rule(mode: str) -> None:
    search = begun(SPACE, mode, valid=rising, settings=FAST)
    assert all(rising(config) for config in run(search, 16, loss))
    assert search.stats["model"] and search.stats["universal-prior"] and search.stats["random"]
    assert not search.stats["invalid"] and not search.stats["fallbacks"]


def test_it_is_asked_about_nested_choices_as_trials_get_them() -> None:
    configs = run(begun(MIXED_SPACE, valid=is_deep_or_slow), 16, mixed_value)
    assert all(is_deep_or_slow(config) for config in configs)
    assert {config["kind"]["name"] for config in configs} == {"a", "b"}


def test_a_rule_that_nothing_satisfies_is_refused_at_set_up() -> None:
    with pytest.raises(RuleError, match=r"valid holds for none of .* tree/low, tree/high, x"):
        begun(SPACE, valid=lambda config: config["x"] > 1)
    with pytest.raises(RuleError, match=r"valid raised KeyError: 'low'"):
        begun(SPACE, valid=lambda config: config["low"] > 1)
    with pytest.raises(RuleError, match="valid returned None"):
        tiny_search(SPACE, metric="loss", mode="min", valid=lambda config: None)


def test_points_that_break_it_are_tried_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    points = [
        {"tree": {"low": 50, "high": 3}, "x": 0.5},
        {"tree": {"low": 40}},
        {"tree": {"low": 64}},
    ]
    with caplog.at_level(logging.WARNING):
        search = begun(SPACE, valid=rising, points_to_evaluate=points)
        configs = run(search, 6, loss)
    assert [config["tree"]["low"] for config in configs[:3]] == [50, 40, 64]
    assert [rising(config) for config in configs] == [False, True, False, True, True, True]
    assert search.stats["invalid"] == 2
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "A configuration that you gave" in text]) == 1


@pytest.mark.parametrize("as_lambda", [False, True])
def test_a_restored_search_keeps_its_rule(tmp_path: Path, as_lambda: bool) -> None:
    valid = (lambda config: rising(config)) if as_lambda else rising
    search = begun(SPACE, valid=valid)
    run(search, 6, loss)
    search.save(str(tmp_path / "state"))
    again = tiny_search()
    again.restore(str(tmp_path / "state"))
    configs = run(again, 6, loss, first=6)
    assert all(map(rising, configs)) and configs == run(search, 6, loss, first=6)
