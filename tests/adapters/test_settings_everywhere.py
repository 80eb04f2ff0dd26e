"""Arguments that are the same in every framework: `settings=`, `valid=` and others.

Of `valid=` more is in `test_valid.py` of Optuna and in `tests/recommend/test_valid.py`.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from presets import FAST
from searches import EVERY, MakeSearch, OptunaSearch, every_framework

from dre_plugins.recommend.settings import RecommenderSettings, Settings
from dre_plugins.space.rules import RuleError

FIELDS = [field.name for field in fields(Settings)]


def _optuna(**arguments: Any) -> Any:
    return import_module("dre_plugins").DRESampler(**arguments)


def _ray_tune(**arguments: Any) -> Any:
    return import_module("dre_plugins").DRESearch(**arguments)


def _syne_tune(name: str) -> Callable[..., Any]:
    def build(**arguments: Any) -> Any:
        from syne_tune.config_space import uniform

        more: dict[str, dict[str, Any]] = {
            "DRE": {"metric": "loss"},
            "ASHADRE": {"metric": "loss", "time_attr": "epoch", "max_t": 9},
            "MODRE": {"metrics": ["a", "b"]},
        }
        space = {"x": uniform(0, 1)}
        made = getattr(import_module("dre_plugins"), name)
        return made(space, **more.get(name, {}), **arguments)

    return build


def _ask_tell(**arguments: Any) -> Any:
    from dre_plugins.space import Float

    return import_module("dre_plugins").AskTell({"x": Float(0.0, 1.0)}, **arguments)


SAMPLERS = {
    "DRESampler": ("optuna", _optuna),
    "DRESearch": ("ray", _ray_tune),
    **{
        name: ("syne_tune", _syne_tune(name))
        for name in ("DRE", "ASHADRE", "MODRE", "DRESearcher", "MultiObjectiveDRESearcher")
    },
    "AskTell": ("numpy", _ask_tell),
}
every_sampler = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name)
        for name, (package, make) in SAMPLERS.items()
        if find_spec(package)
    ],
)


# A wrong argument that all of them share, and what is said of it.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"n_startup_trials": -1}, "n_startup_trials must be an integer .* at least 0.* got -1"),
    ({"n_startup_trials": 1.5}, "n_startup_trials must be an integer .* got 1.5"),
    ({"allow_duplicates": "no"}, "allow_duplicates must be True or False, got 'no'"),
    ({"failed": "drop"}, r"failed must be one of \('model', .*\), got 'drop'"),
]


@every_sampler
def test_a_wrong_option_is_named(make: Callable[..., Any]) -> None:
    for arguments, message in WRONG:
        with pytest.raises(ValueError, match=message):
            make(**arguments)


@every_sampler
def test_settings_are_taken_and_nothing_else_is(make: Callable[..., Any]) -> None:
    make(settings=Settings(acquisition="ei", n_threads=2))
    make(settings=None)
    for wrong in ({"n_threads": 2}, RecommenderSettings(), "default"):
        with pytest.raises(TypeError, match=r"settings must be a dre_plugins\.Settings"):
            make(settings=wrong)
    with pytest.raises(TypeError, match="no_such_argument"):
        make(no_such_argument=1)


@pytest.mark.parametrize(("name", "most"), [("DRESampler", 13), ("DRESearch", 17)])
def test_the_arguments_are_few(name: str, most: int) -> None:
    if not find_spec(SAMPLERS[name][0]):
        pytest.skip(f"{name} is of another framework")
    signature = inspect.signature(getattr(import_module("dre_plugins"), name))
    assert len(signature.parameters) <= most
    assert not set(FIELDS) & set(signature.parameters)
    assert "settings" in signature.parameters


# Optuna shows its space as trials ask for it.
space_is_given = pytest.mark.parametrize(
    "framework", [case for case in EVERY if case.values[0] is not OptunaSearch]
)


def is_low(configuration: dict[str, Any]) -> bool:
    return configuration["n"] <= 1 + 8 * configuration["x"]


@every_framework
def test_every_suggestion_satisfies_the_rule(framework: MakeSearch) -> None:
    outcome = framework(valid=is_low, settings=FAST).run(16)
    assert all(map(is_low, outcome.configurations))
    assert outcome.stats["model"] and outcome.stats["universal-prior"] and outcome.stats["random"]
    assert not outcome.stats["invalid"] and not outcome.stats["fallbacks"]


@space_is_given
def test_a_rule_that_nothing_satisfies_is_refused_at_set_up(framework: MakeSearch) -> None:
    for valid, message in [
        (lambda c: c["x"] > 1, r"valid holds for none of .* x, n"),
        (lambda c: c["width"] > 1, r"valid raised KeyError: 'width'"),
        (lambda c: None, "valid returned None"),
        (3, "valid must be a function of a configuration, or None, got 3"),
    ]:
        with pytest.raises(RuleError, match=message):
            framework(valid=valid)


@every_framework
@pytest.mark.parametrize("as_lambda", [False, True])
def test_a_search_that_another_process_restores_keeps_its_rule(
    framework: MakeSearch, as_lambda: bool
) -> None:
    if as_lambda and framework is OptunaSearch:
        pytest.skip("pickle itself takes no lambda")
    valid = (lambda c: is_low(c)) if as_lambda else is_low
    search = framework(valid=valid)
    search.run(6)
    configurations = search.restarted().run(3).configurations
    assert all(map(is_low, configurations))
    assert configurations == framework(valid=valid).run(9).configurations


@every_framework
def test_points_that_break_it_are_tried_and_counted(framework: MakeSearch, caplog) -> None:
    points = [{"x": 0.1, "n": 9}, {"n": 8}, {"x": 0.0, "n": 2}]
    outcome = framework(valid=is_low, points=points).run(6)
    found = outcome.configurations
    assert [configuration["n"] for configuration in found[:3]] == [9, 8, 2]
    assert [is_low(configuration) for configuration in found] == [False, True, False, *[True] * 3]
    assert outcome.stats["invalid"] == 2
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "A configuration that you gave" in text]) == 1
