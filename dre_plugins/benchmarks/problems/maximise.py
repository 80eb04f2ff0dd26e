"""The plain problem: a study of one sampler that maximises the value of a task."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dre_plugins.benchmarks.runs import Record, Run
from dre_plugins.benchmarks.tasks import Configuration, Scenario

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

N_REFERENCE = 2000
"""Random configurations of a task that give its regret a scale (see ``reports.report``)."""


def maximise(scenario: Scenario, run: Run, sampler: BaseSampler) -> Record:
    """Maximise a task's value over its whole, conditional space.

    Returns:
        ``configurations``, ``values`` and ``ask_seconds`` of every trial; ``reference``: median
        and best of a random sample of the task.
    """
    import optuna

    configurations: list[Configuration] = []
    values, seconds = [], []
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(run.trials):
        start = time.perf_counter()
        trial = study.ask()
        configuration = scenario.suggest(trial)
        seconds.append(round(time.perf_counter() - start, 5))
        configurations.append(configuration)
        values.append(scenario.value(run.number, configuration))
        study.tell(trial, values[-1])
    return {
        "reference": reference(scenario, run.number),
        "configurations": configurations,
        "values": values,
        "ask_seconds": seconds,
    }


def reference(scenario: Scenario, task: int) -> dict[str, float]:
    """Median and best value of the random sample of a task."""
    _, outputs = reference_sample(scenario, task)
    values = outputs[scenario.metric]
    return {"median": float(np.median(values)), "best": float(values.max())}


@lru_cache(maxsize=4)
def reference_sample(
    scenario: Scenario, task: int
) -> tuple[list[Configuration], dict[str, NDArray[np.float64]]]:
    """Random configurations and their outputs, the same in every run of the task."""
    sample = scenario.random_configurations(N_REFERENCE, np.random.default_rng(task))
    return sample, scenario.evaluate_many(task, sample)
