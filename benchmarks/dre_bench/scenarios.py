"""Find a scenario by its name: YAHPO Gym, functions, learners of scikit-learn, or yours."""

from __future__ import annotations

from functools import cache

from dre_bench.conditional import CONDITIONAL, conditional_scenario
from dre_bench.learners import LEARNERS, LearnerScenario
from dre_bench.names import imported
from dre_bench.runs import Sources
from dre_bench.synthetic import OWN, PUBLISHED, is_synthetic, synthetic_scenario
from dre_bench.tasks import SCENARIOS, Scenario, YahpoScenario


@cache
def scenario_of(sources: Sources, name: str) -> Scenario:
    """Return a scenario, loaded once a process.

    Args:
        sources: Where data lie.
        name: Name of a scenario of YAHPO Gym, of a synthetic function or of a learner of
            scikit-learn, or `module:attribute`, which is a `Scenario` or makes one.

    Raises:
        ValueError: If there is no such scenario, or its data are missing.
    """
    if name in SCENARIOS:
        folder = sources.data
        if folder is None or not (folder / name).is_dir():
            raise ValueError(
                f"scenario {name!r} needs the data of YAHPO Gym: name the folder that holds "
                f"{name}/model.onnx with --data."
            )
        return YahpoScenario(folder / name)
    if name in CONDITIONAL:
        return conditional_scenario(name, sources.data)
    if is_synthetic(name):
        return synthetic_scenario(name)
    if name in LEARNERS:
        return LearnerScenario(name)
    module, _, attribute = name.partition(":")
    if not attribute:
        names = ", ".join([*SCENARIOS, *CONDITIONAL, *PUBLISHED, *OWN, *LEARNERS])
        raise ValueError(
            f"unknown scenario {name!r}; known: {names}, botorch:NAME, and module:attribute."
        )
    found = imported(f"scenario {name!r}", module, attribute)
    scenario = found if isinstance(found, Scenario) or not callable(found) else found()
    if not isinstance(scenario, Scenario):
        raise ValueError(f"scenario {name!r} is no dre_bench.tasks.Scenario.")
    return scenario
