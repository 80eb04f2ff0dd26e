"""SMAC3 (Lindauer et al., JMLR 2022) on the whole, conditional space.

Its facade for hyper-parameters, at its defaults: a random forest, which knows conditions.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition, Integer
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory import TrialValue

DISTRIBUTIONS = ("smac", "ConfigSpace")


class Searcher:
    """Ask and tell SMAC; see the package."""

    def __init__(self, parameters: list[dict[str, Any]], seed: int, trials: int) -> None:
        self._folder = TemporaryDirectory()
        self._facade = HyperparameterOptimizationFacade(
            Scenario(
                _space(parameters),
                deterministic=True,
                n_trials=trials,
                seed=seed,
                output_directory=self._folder.name,
            ),
            _never,
            overwrite=True,
            logging_level=False,
        )

    def ask(self, n: int) -> list[dict[str, Any]]:
        """Return the next configurations: active parameters only."""
        self._trials = [self._facade.ask() for _ in range(n)]
        return [dict(trial.config) for trial in self._trials]

    def tell(self, values: list[float]) -> None:
        """Take the values of the last configurations; SMAC minimises."""
        for trial, value in zip(self._trials, values, strict=True):
            self._facade.tell(trial, TrialValue(cost=-value))


def _space(parameters: list[dict[str, Any]]) -> ConfigurationSpace:
    space = ConfigurationSpace()
    domains = {parameter["name"]: _domain(**parameter) for parameter in parameters}
    space.add(*domains.values())
    for parameter in parameters:
        if parameter["parent"] is not None:
            child, parent = domains[parameter["name"]], domains[parameter["parent"]]
            space.add(InCondition(child, parent, parameter["active_for"]))
    return space


def _domain(
    name: str, kind: str, low: float, high: float, log: bool, choices: list[str], **_: Any
) -> Categorical | Float | Integer:
    if kind == "categorical":
        return Categorical(name, choices)
    if kind == "int":
        return Integer(name, (int(low), int(high)), log=log)
    return Float(name, (low, high), log=log)


def _never(config: object, seed: int = 0) -> float:
    """Stand for the objective, which SMAC wants to have and is never to call."""
    raise NotImplementedError("SMAC is asked and told here.")
