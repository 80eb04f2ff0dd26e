"""SMAC3 (Lindauer et al., JMLR 2022) on the whole, conditional space: `pip install smac`.

Its facade for hyper-parameters, at its defaults: a random forest, which knows conditions. It is
asked for a configuration and told its value, as the samplers of Optuna are.
"""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryDirectory

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition, Integer
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario as SmacScenario
from smac.runhistory import TrialInfo, TrialValue

from dre_bench.problems.maximise import asked_and_told
from dre_bench.runs import Record, Run, Sources
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import Configuration, Parameter


def maximise(sources: Sources, run: Run) -> Record:
    """Maximise a task's value.

    Returns:
        What `problems.maximise` returns.
    """
    scenario = scenario_of(sources, run.scenario)
    with TemporaryDirectory() as folder:
        facade = Facade(
            SmacScenario(
                config_space(scenario.parameters),
                deterministic=True,
                n_trials=run.trials,
                seed=run.sampler_seed,
                output_directory=folder,
            ),
            _never,
            overwrite=True,
            logging_level=False,
        )

        def ask() -> tuple[TrialInfo, Configuration]:
            trial = facade.ask()
            return trial, _plain(dict(trial.config))

        def tell(trial: TrialInfo, value: float) -> None:
            facade.tell(trial, TrialValue(cost=-value))

        return asked_and_told(scenario, run, ask, tell)


def config_space(parameters: Sequence[Parameter]) -> ConfigurationSpace:
    """Return a search space with its conditions."""
    space = ConfigurationSpace()
    domains = {one.name: _domain(one) for one in parameters}
    space.add(*domains.values())
    for one in parameters:
        if one.parent is not None:
            space.add(InCondition(domains[one.name], domains[one.parent], [*one.active_for]))
    return space


def _domain(parameter: Parameter) -> Categorical | Float | Integer:
    if parameter.kind == "categorical":
        return Categorical(parameter.name, [*parameter.choices])
    if parameter.kind == "float":
        return Float(parameter.name, (parameter.low, parameter.high), log=parameter.log)
    bounds = int(parameter.low), int(parameter.high)
    return Integer(parameter.name, bounds, log=parameter.log)


def _plain(configuration: Configuration) -> Configuration:
    """Return a configuration without NumPy's types."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }


def _never(config: object, seed: int = 0) -> float:
    """Stand for the objective, which SMAC wants to have and is never to call."""
    raise NotImplementedError("SMAC is asked and told here.")
