"""Samplers of Optuna by name: ``random``, ``tpe:multivariate=True,group=True``, an import path.

A sampler may be given keyword arguments, ours also fields of `Settings`: ``dre:acquisition=ei``.
``dre:prior=shipped`` takes the prior that ships for the scenario, and ``{scenario}`` in a path of
a prior stands for the scenario's name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from dre_bench.names import imported
from dre_plugins.recommend.prior import UNIVERSAL
from dre_plugins.recommend.settings import Settings

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

# The prior of each scenario, see `dre_bench.priors`.
SHIPPED_PRIORS = {"rbv2_xgboost": "xgboost", "rbv2_rpart": "decision-tree"}
N_STARTUP_TRIALS = 10


def make_sampler(specification: str, seed: int, scenario: str) -> BaseSampler:
    """Build a sampler from its name and keyword arguments: ``"tpe:multivariate=True"``."""
    name, _, arguments = specification.partition(":")
    make = SAMPLERS[name] if name in SAMPLERS else _imported_sampler(name)
    options = parse_arguments(arguments)
    if "prior" in options:
        options["prior"] = prior_for(scenario, options["prior"])
    return make(seed=seed, **options)


def _imported_sampler(path: str) -> Callable[..., BaseSampler]:
    module, _, name = path.rpartition(".")
    if not module:
        raise ValueError(
            f"unknown sampler {path!r}; known: {', '.join(SAMPLERS)}, and import paths such as "
            "optuna.samplers.CmaEsSampler."
        )
    found: Callable[..., BaseSampler] = imported(f"sampler {path!r}", module, name)
    return found


def prior_for(scenario: str, given: Any) -> Any:
    """Return the prior of a scenario: `shipped`, or a name or a path."""
    if given == "shipped":
        if scenario not in SHIPPED_PRIORS:
            scenarios = ", ".join(SHIPPED_PRIORS)
            raise ValueError(
                f"prior=shipped needs one of the scenarios {scenarios}, got {scenario!r}."
            )
        return SHIPPED_PRIORS[scenario]
    return given.format(scenario=scenario) if isinstance(given, str) else given


def parse_arguments(text: str) -> dict[str, Any]:
    """Read ``a=1,b=(2,3),c=name`` as Python literals; a bare name stands for its string."""
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
        raise ValueError(f"expected key=value,…, got {text!r}.")
    return {
        str(keyword.arg): keyword.value.id
        if isinstance(keyword.value, ast.Name)
        else ast.literal_eval(keyword.value)
        for keyword in call.keywords
    }


def with_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a sampler of ours, those that are fields of `Settings` in `settings`.

    Unless a prior is named, nothing is known beforehand: some tables have the names of learners,
    of whose evaluations on the same data sets a recognised prior may have been made.
    """
    names = {field.name for field in fields(Settings)}
    chosen = {name: value for name, value in arguments.items() if name in names}
    others = {name: value for name, value in arguments.items() if name not in names}
    given = {"prior": UNIVERSAL, **others}
    return {**given, "settings": Settings(**chosen)} if chosen else given


def split_specifications(text: str) -> list[str]:
    """Split ``random,tpe:a=1,b=(2,3),dre`` at the commas between specifications."""
    depth, start, quote = 0, 0, ""
    parts: list[str] = []
    for place, character in enumerate(text):
        if character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        if quote:
            continue
        depth += (character in "([{") - (character in ")]}")
        # What follows with an equals sign is another argument.
        if character == "," and not depth and not re.match(r"\s*\w+=", text[place + 1 :]):
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, text[start:])]


def _random(seed: int) -> BaseSampler:
    import optuna

    return optuna.samplers.RandomSampler(seed=seed)


def _tpe(seed: int, **arguments: Any) -> BaseSampler:
    import optuna

    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=N_STARTUP_TRIALS, **arguments)


def _gp(seed: int, **arguments: Any) -> BaseSampler:
    import optuna

    return optuna.samplers.GPSampler(seed=seed, n_startup_trials=N_STARTUP_TRIALS, **arguments)


def _nsga2(seed: int, **arguments: Any) -> BaseSampler:
    import optuna

    return optuna.samplers.NSGAIISampler(seed=seed, **arguments)


def _dre(seed: int, **arguments: Any) -> BaseSampler:
    from dre_plugins.adapters.optuna import DRESampler

    return DRESampler(seed=seed, **with_settings(arguments))


SAMPLERS: dict[str, Callable[..., BaseSampler]] = {
    "random": _random,
    "tpe": _tpe,
    "gp": _gp,
    "nsga2": _nsga2,
    "dre": _dre,
}
