"""`settings=` and other arguments are the same in every framework."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from dre_plugins.recommend.settings import RecommenderSettings, Settings

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
