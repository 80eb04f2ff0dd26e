"""Find a scenario by its name: YAHPO Gym from a folder, synthetic functions, or one of yours."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from dre_plugins.benchmarks.synthetic import OWN, PUBLISHED, is_synthetic, synthetic_scenario
from dre_plugins.benchmarks.tasks import SCENARIOS, Scenario, YahpoScenario


@cache
def scenario_of(data: Path | None, name: str) -> Scenario:
    """Return a scenario, loaded once a process.

    Args:
        data: Folder with a folder for each scenario of YAHPO Gym; None if there is none.
        name: Name of a scenario of YAHPO Gym or of a synthetic function, or `module:attribute`,
            which is a `Scenario` or makes one.

    Raises:
        ValueError: If there is no such scenario, or its data are missing.
    """
    if name in SCENARIOS:
        if data is None or not (data / name).is_dir():
            raise ValueError(
                f"scenario {name!r} needs the data of YAHPO Gym: name the folder that holds "
                f"{name}/model.onnx with --data."
            )
        return YahpoScenario(data / name)
    if is_synthetic(name):
        return synthetic_scenario(name)
    module, _, attribute = name.partition(":")
    if not attribute:
        known = ", ".join([*SCENARIOS, *PUBLISHED, *OWN])
        raise ValueError(
            f"unknown scenario {name!r}; known: {known}, botorch:NAME, and module:attribute."
        )
    return _imported(name, module, attribute)


def _imported(name: str, module: str, attribute: str) -> Scenario:
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"scenario {name!r} cannot be imported: {error}") from error
    scenario = found if isinstance(found, Scenario) or not callable(found) else found()
    if not isinstance(scenario, Scenario):
        raise ValueError(f"scenario {name!r} is no dre_plugins.benchmarks.tasks.Scenario.")
    return scenario
