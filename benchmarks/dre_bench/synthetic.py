"""Synthetic functions as scenarios: they need no data, and anyone can run them.

Task 0 is the function as it was published. The others move it: each numeric parameter is shifted
by up to a tenth of its range and reflected at its bounds, so that no sampler knows where optima
lie. All are maximised: the sign of published ones is turned.

    branin, hartmann6, ackley5, levy8, rosenbrock5   the usual ones, from BoTorch
    botorch:NAME   any other test function of BoTorch with one objective
    sinusoid       that of the paper's Figure 2: one parameter, four optima
    bowl           five numbers, a category and an integer on a logarithmic scale, smooth
    mixed          a rate on a logarithmic scale, an integer, a share and a category
    branches       conditional: three branches, of which the best looks worst at first
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dre_bench.tasks import Parameter, Scenario

N_TASKS = 20
SHIFT = 0.1
VALUE = "value"
BOWL_NUMBERS = tuple(f"x{i}" for i in range(5))
BOTORCH = "botorch:"
# Name -> class of BoTorch, and number of parameters where it can be chosen.
PUBLISHED: Mapping[str, tuple[str, int | None]] = {
    "branin": ("Branin", None),
    "hartmann6": ("Hartmann", 6),
    "ackley5": ("Ackley", 5),
    "levy8": ("Levy", 8),
    "rosenbrock5": ("Rosenbrock", 5),
}


class SyntheticScenario(Scenario):
    """A function and its shifted copies.

    Args:
        name: See the module.
        parameters: Its parameters.
        function: A configuration -> its value, large is good.
    """

    metric = VALUE

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        function: Callable[[Mapping[str, Any]], float],
    ) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.tasks = [*range(N_TASKS)]
        self._function = function

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        if task not in self.tasks:
            raise ValueError(f"{self.name} has no task {task}; it has 0 to {N_TASKS - 1}.")
        return float(self._function(self._shifted(task, configuration)))

    def _shifted(self, task: int, configuration: Mapping[str, Any]) -> dict[str, Any]:
        if task == 0:
            return dict(configuration)
        shifts = np.random.default_rng(task).uniform(-SHIFT, SHIFT, len(self.parameters))
        shifted = dict(configuration)
        for parameter, shift in zip(self.parameters, shifts.tolist(), strict=True):
            value = configuration.get(parameter.name)
            if value is None or parameter.kind == "categorical":
                continue
            shifted[parameter.name] = _moved(parameter, float(value), shift)
        return shifted


def synthetic_scenario(name: str) -> SyntheticScenario:
    """Return the scenario of a name.

    Raises:
        ValueError: If there is none.
    """
    if name in OWN:
        parameters, function = OWN[name]
        return SyntheticScenario(name, parameters, function)
    if name in PUBLISHED:
        return _of_botorch(name, *PUBLISHED[name])
    return _of_botorch(name, name.removeprefix(BOTORCH), None)


def is_synthetic(name: str) -> bool:
    """Say whether a name is that of a synthetic function."""
    return name in OWN or name in PUBLISHED or name.startswith(BOTORCH)


def sinusoid(configuration: Mapping[str, Any]) -> float:
    """Two optima of 1, at -3π and π, within [-10, 10]."""
    return math.sin((configuration["x"] + math.pi) / 2.0)


def bowl(configuration: Mapping[str, Any]) -> float:
    """Optimum 0 where all numbers are 1, n is 10 and kind is b."""
    distances = [(float(configuration[name]) - 1.0) ** 2 for name in BOWL_NUMBERS]
    miss = float(configuration["kind"] != "b") + abs(math.log(configuration["n"] / 10.0))
    return -(sum(distances) + miss)


def mixed(configuration: Mapping[str, Any]) -> float:
    """Optimum 0 at rate 0.01, depth 7, share 0.8 and kind b."""
    rate = math.log10(configuration["rate"]) + 2.0
    depth = (configuration["depth"] - 7.0) / 4.0
    share = (configuration["share"] - 0.8) * (1.0 + abs(depth))
    kind = {"a": 0.5, "b": 0.0, "c": 1.0, "d": 0.25}[configuration["kind"]]
    return float(-(rate**2 + depth**2 + 4.0 * share**2 + kind))


def branches(configuration: Mapping[str, Any]) -> float:
    """Optimum 0 in the branch "deep", which is worse than the others almost everywhere."""
    if configuration["branch"] == "linear":
        return -1.0 - abs(float(configuration["slope"]) - 0.3)
    if configuration["branch"] == "tree":
        return -0.6 - (float(configuration["leaves"]) - 40.0) ** 2 / 5000.0
    rate, width = math.log10(configuration["rate"]), float(configuration["width"])
    return -3.0 * (1.0 - math.exp(-4.0 * (rate + 2.5) ** 2 - 8.0 * (width - 0.6) ** 2))


OWN: Mapping[str, tuple[tuple[Parameter, ...], Callable[[Mapping[str, Any]], float]]] = {
    "sinusoid": ((Parameter("x", "float", -10.0, 10.0),), sinusoid),
    "bowl": (
        (
            *(Parameter(name, "float", -5.0, 5.0) for name in BOWL_NUMBERS),
            Parameter("kind", "categorical", choices=("a", "b", "c")),
            Parameter("n", "int", 1, 100, log=True),
        ),
        bowl,
    ),
    "mixed": (
        (
            Parameter("rate", "float", 1e-5, 1.0, log=True),
            Parameter("depth", "int", 1, 15),
            Parameter("share", "float", 0.0, 1.0),
            Parameter("kind", "categorical", choices=("a", "b", "c", "d")),
        ),
        mixed,
    ),
    "branches": (
        (
            Parameter("branch", "categorical", choices=("linear", "tree", "deep")),
            Parameter("slope", "float", 0.0, 1.0, parent="branch", active_for=("linear",)),
            Parameter("leaves", "int", 2, 100, parent="branch", active_for=("tree",)),
            Parameter("rate", "float", 1e-5, 1.0, log=True, parent="branch", active_for=("deep",)),
            Parameter("width", "float", 0.0, 1.0, parent="branch", active_for=("deep",)),
        ),
        branches,
    ),
}


def _moved(parameter: Parameter, value: float, shift: float) -> float:
    """Return a value shifted by a share of its range, and reflected at its bounds."""
    low, high = parameter.low, parameter.high
    if parameter.log:
        low, high, value = math.log(low), math.log(high), math.log(value)
    unit = abs((value - low) / (high - low) + shift)
    moved = low + min(unit, 2.0 - unit) * (high - low)
    return math.exp(moved) if parameter.log else moved


def _of_botorch(name: str, test_function: str, n_parameters: int | None) -> SyntheticScenario:
    try:
        import torch
        from botorch import test_functions
    except ImportError as error:
        raise ValueError(
            f"scenario {name!r} needs BoTorch: pip install './benchmarks[rivals]'"
        ) from error

    function_type = getattr(test_functions, test_function, None)
    if not isinstance(function_type, type):
        raise ValueError(f"unknown scenario {name!r}: BoTorch has no test function of this name.")
    shape = {} if n_parameters is None else {"dim": n_parameters}
    problem = function_type(negate=True, **shape)
    bounds = problem.bounds.T.tolist()
    parameters = [
        Parameter(f"x{i}", "float", float(low), float(high))
        for i, (low, high) in enumerate(bounds)
    ]

    def function(configuration: Mapping[str, Any]) -> float:
        point = torch.tensor(
            [[configuration[parameter.name] for parameter in parameters]], dtype=torch.float64
        )
        with torch.no_grad():
            value = problem(point)
        if value.numel() != 1:
            raise ValueError(f"{name} has several objectives; this benchmark maximises one.")
        return float(value)

    return SyntheticScenario(name, parameters, function)
