"""HEBO (Cowen-Rivers et al., 2022) at its defaults, in the flat space."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

DISTRIBUTIONS = ("hebo", "pymoo", "gpytorch", "torch")


class Searcher:
    """Ask and tell HEBO; see the package."""

    def __init__(self, parameters: list[dict[str, Any]], seed: int, trials: int) -> None:
        # HEBO draws from the global generators.
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)  # noqa: TID251
        space = DesignSpace().parse([_domain(**parameter) for parameter in parameters])
        self._optimiser = HEBO(space, scramble_seed=seed)

    def ask(self, n: int) -> list[dict[str, Any]]:
        """Return the next configurations."""
        self._suggestions = self._optimiser.suggest(n_suggestions=n)
        return [dict(row.to_dict()) for _, row in self._suggestions.iterrows()]

    def tell(self, values: list[float]) -> None:
        """Take the values of the last configurations; HEBO minimises."""
        self._optimiser.observe(self._suggestions, -np.array(values)[:, None])


def _domain(
    name: str, kind: str, low: float, high: float, log: bool, choices: list[str], **_: Any
) -> dict[str, Any]:
    if kind == "categorical":
        return {"name": name, "type": "cat", "categories": choices}
    plain, logarithmic = ("int", "pow_int") if kind == "int" else ("num", "pow")
    return {"name": name, "type": logarithmic if log else plain, "lb": low, "ub": high}
