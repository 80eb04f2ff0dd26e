"""Make the small extract of the YAHPO Gym surrogates that the repository ships.

python -m dre_bench.extract --data PATH --out benchmarks/data/yahpo_extract.npz

It holds random configurations of some test tasks and what they reached, for tests and examples
that must not need the full data; ``tasks.load_extract`` reads it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dre_bench.tasks import SCENARIOS, Parameter, YahpoScenario

OUTPUTS = ("acc", "logloss", "timetrain", "memory")
N_TASKS = 8
N_CONFIGURATIONS = 250


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the extract from the command line."""
    parser = argparse.ArgumentParser(prog="python -m dre_bench.extract", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/data/yahpo_extract.npz"))
    options = parser.parse_args(arguments)
    write_extract([YahpoScenario(options.data / name) for name in SCENARIOS], options.out)
    print(f"{options.out}: {options.out.stat().st_size / 1024:.0f} KiB")


def write_extract(scenarios: Sequence[YahpoScenario], path: Path) -> None:
    """Write random configurations of the first test tasks of each scenario, and their outputs."""
    header: dict[str, Any] = {"outputs": OUTPUTS, "scenarios": {}}
    arrays: dict[str, NDArray[Any]] = {}
    for scenario in scenarios:
        tasks = scenario.splits["test"][:N_TASKS]
        header["scenarios"][scenario.name] = {
            "tasks": tasks,
            "parameters": [parameter.name for parameter in scenario.parameters],
            "choices": {p.name: p.choices for p in scenario.parameters if p.choices},
        }
        for task in tasks:
            configurations = scenario.random_configurations(
                N_CONFIGURATIONS, np.random.default_rng(task)
            )
            outputs = scenario.evaluate_many(task, configurations)
            arrays[f"{scenario.name}/{task}/values"] = np.array(
                [_row(scenario.parameters, configuration) for configuration in configurations],
                dtype=np.float32,
            )
            arrays[f"{scenario.name}/{task}/outputs"] = np.stack(
                [outputs[name] for name in OUTPUTS], axis=1
            ).astype(np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)


def _row(parameters: Sequence[Parameter], configuration: Mapping[str, Any]) -> list[float]:
    """Raw values; NaN where inactive, the index into the choices where categorical."""
    return [_number(parameter, configuration) for parameter in parameters]


def _number(parameter: Parameter, configuration: Mapping[str, Any]) -> float:
    if parameter.name not in configuration:
        return np.nan
    value = configuration[parameter.name]
    return parameter.choices.index(value) if parameter.choices else float(value)


if __name__ == "__main__":
    main()
