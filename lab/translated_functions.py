"""Functions that are no test tasks, translated so that the centre of the space is no gift."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from dre_bench.synthetic import SyntheticScenario, synthetic_scenario
from dre_bench.tasks import Parameter

MIXED = ("mixed", "bowl")
# Name -> BoTorch's class, number of parameters, the optimum where all its coordinates are equal.
FUNCTIONS: dict[str, tuple[str, int | None, float | None]] = {
    "Levy": ("Levy", 4, 1.0),
    "Levy6": ("Levy", 6, 1.0),
    "Hartmann": ("Hartmann", 4, None),
    "Rosenbrock": ("Rosenbrock", 3, 1.0),
    "StyblinskiTang": ("StyblinskiTang", 5, -2.903534),
    "Griewank": ("Griewank", 4, 0.0),
    "DixonPrice": ("DixonPrice", 4, None),
    "Powell": ("Powell", 4, 0.0),
    "Michalewicz": ("Michalewicz", 5, None),
    "Ackley": ("Ackley", 3, 0.0),
    "SixHumpCamel": ("SixHumpCamel", None, None),
    "Rastrigin": ("Rastrigin", 3, 0.0),
}
OPTIMUM = {"StyblinskiTang": 5 * 39.16599, "Hartmann": -np.inf, "Michalewicz": -np.inf}
OPTIMUM["SixHumpCamel"] = -np.inf  # that of the translated box is the best that was found


class Translated(SyntheticScenario):
    """A function of BoTorch on a box of the same size elsewhere, by its task.

    Args:
        name: One of `FUNCTIONS`.
        share: Of each range, by how much the box is moved at most.
        margin: Share of each range by which an optimum that is known lies within the box.
        first_seed: Seed of the move of task 0.
    """

    def __init__(
        self, name: str, share: float = 0.25, margin: float = 0.05, first_seed: int = 1000
    ) -> None:
        import torch
        from botorch import test_functions

        known, n_parameters, self._optimum = FUNCTIONS[name]
        shape = {} if n_parameters is None else {"dim": n_parameters}
        self._problem = getattr(test_functions, known)(**shape)
        self._bounds = self._problem.bounds.T.numpy().copy()
        # It refuses what lies outside of its own box.
        self._problem.bounds = torch.tensor([[-1e9], [1e9]]).expand(2, len(self._bounds))
        self._share, self._margin, self._first_seed = share, margin, first_seed
        self.name, self.tasks = name, [1]
        self.parameters = tuple(
            Parameter(f"x{i}", "float", low, high)
            for i, (low, high) in enumerate(self._bounds.tolist())
        )

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        import torch

        point = np.array([configuration[parameter.name] for parameter in self.parameters])
        low, width = self._bounds[:, 0], np.diff(self._bounds)[:, 0]
        rng = np.random.default_rng(self._first_seed + task)
        shift = rng.uniform(-self._share, self._share, len(width))
        if self._optimum is not None:
            at = (self._optimum - low) / width
            shift = np.clip(shift, at - 1.0 + self._margin, at - self._margin)
        shift *= {"Hartmann": 0.4, "Michalewicz": 0.6}.get(self.name, 1.0)
        with torch.no_grad():
            return -float(
                self._problem.evaluate_true(torch.from_numpy((point + shift * width)[None]))
            )


@cache
def scenario(name: str) -> SyntheticScenario:
    """Return a translated function, or one of `MIXED`."""
    return Translated(name) if name in FUNCTIONS else synthetic_scenario(name)
