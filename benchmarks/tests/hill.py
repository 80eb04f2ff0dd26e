"""A scenario that is a formula, for tests of the benchmark: found by its import path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dre_bench.tasks import Parameter, Scenario

NAME = f"{__name__}:Hill"


class Hill(Scenario):
    """Best at x = 0.7, a little elsewhere on each task; of kind b, y counts as well."""

    name = NAME
    metric = "height"
    parameters = (
        Parameter("x", "float", 0.0, 1.0),
        Parameter("kind", "categorical", choices=("a", "b")),
        Parameter("y", "float", 0.0, 1.0, False, (), "kind", ("b",)),
    )

    def __init__(self) -> None:
        self.tasks = [*range(20)]

    def evaluate_many(
        self, task: int, configurations: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the height at each configuration."""
        peak = 0.7 + 0.01 * task
        height = [
            1.0 - (configuration["x"] - peak) ** 2 - 0.3 * (configuration.get("y", 0.5) - 0.2) ** 2
            for configuration in configurations
        ]
        return {"height": np.array(height)}
