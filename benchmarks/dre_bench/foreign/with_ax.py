"""Ax (Meta): its `Client` at its defaults, told of conditions.

It begins with the centre of the space and four Sobol points.
"""

from __future__ import annotations

from typing import Any

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

DISTRIBUTIONS = ("ax-platform", "botorch", "torch")
VALUE = "value"


class Searcher:
    """Ask and tell Ax; see the package."""

    def __init__(self, parameters: list[dict[str, Any]], seed: int, trials: int) -> None:
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(parameters=_domains(parameters))
        self._client.configure_optimization(objective=VALUE)
        self._numbers: list[int] = []

    def ask(self, n: int) -> list[dict[str, Any]]:
        """Return the next configurations, fewer if Ax waits for values of its design."""
        trials = self._client.get_next_trials(max_trials=n)
        self._numbers = list(trials)
        return [dict(configuration) for configuration in trials.values()]

    def tell(self, values: list[float]) -> None:
        """Take the values of the last configurations."""
        for number, value in zip(self._numbers, values, strict=True):
            self._client.complete_trial(number, raw_data={VALUE: value})


def _domains(parameters: list[dict[str, Any]]) -> list[Any]:
    """Return Ax's parameters: a parent names its children, by its values.

    A space must be a tree in Ax, so a child of several values is left without its condition.
    """
    children: dict[str, dict[str, list[str]]] = {}
    for parameter in parameters:
        if len(parameter["active_for"]) == 1:
            of_parent = children.setdefault(parameter["parent"], {})
            of_parent.setdefault(parameter["active_for"][0], []).append(parameter["name"])
    return [_domain(children.get(parameter["name"]), **parameter) for parameter in parameters]


def _domain(
    children: dict[str, list[str]] | None,
    name: str,
    kind: str,
    low: float,
    high: float,
    log: bool,
    choices: list[str],
    **_: Any,
) -> Any:
    if kind == "categorical":
        return ChoiceParameterConfig(
            name=name,
            values=choices,
            parameter_type="str",
            is_ordered=False,
            dependent_parameters=children,
        )
    return RangeParameterConfig(
        name=name, bounds=(low, high), parameter_type=kind, scaling="log" if log else "linear"
    )
