"""A search space of a learner as a user writes it, and what the learner is evaluated with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.parameters import Configuration
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, REGRESSION
from dre_plugins.space import Domain
from dre_plugins.transfer.spaces.conversion import shapes
from dre_plugins.transfer.spaces.prefixes import change_of

BOTH = (CLASSIFICATION, REGRESSION)
# What an evaluation needs beside what is tuned: the libraries' defaults.
BESIDES: Mapping[str, Mapping[str, int]] = {
    "hist_gradient_boosting": {"max_iter": 100},
    **{
        name: {"n_estimators": 100}
        for name in ("lightgbm", "xgboost", "random_forest", "extra_trees")
    },
}


@dataclass(frozen=True)
class UserSpace:
    """Describe a search space of a user.

    Attributes:
        learner: The name among the evaluations.
        key: What the space is to be recognised as.
        parameters: What the learner calls each parameter of the user, None if priors do not know
            it, and its domain.
        fixed: Values that the user does not tune, where they are not the library's defaults.
        tasks: Classification, regression or both.
    """

    learner: str
    key: str
    parameters: Mapping[str, tuple[str | None, Domain]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[str, ...] = BOTH

    @property
    def domains(self) -> dict[str, Domain]:
        """The parameters as the user tunes them."""
        return {name: domain for name, (_, domain) in self.parameters.items()}

    @property
    def names(self) -> dict[str, str]:
        """What the learner calls them; what is not there is unknown to priors."""
        return {name: other for name, (other, _) in self.parameters.items() if other is not None}

    def configuration(self, chosen: Mapping[str, Any]) -> Configuration:
        """Return what the learner is evaluated with."""
        found: Configuration = {**BESIDES.get(self.learner, {}), **self.fixed}
        for name, value in chosen.items():
            other, domain = self.parameters[name]
            layers = shapes(domain) if other == "width" else None
            if layers is not None:
                number, width = layers[domain.all_values().index(value)].tolist()
                found |= {"n_layers": int(number), "width": int(width)}
            elif other is not None:
                change = change_of(name, other)
                found[other] = (
                    _plain(value) if change is None else float(change(np.array([value]))[0])
                )
        return found


def _plain(value: Any) -> Any:
    return str(value).lower() if value is None or isinstance(value, bool) else value
