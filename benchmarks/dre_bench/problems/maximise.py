"""The plain problem: a study of one sampler that maximises the value of a task."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dre_bench.runs import Record, Run
from dre_bench.tasks import Configuration, Scenario

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

T = TypeVar("T")


def maximise(scenario: Scenario, run: Run, sampler: BaseSampler) -> Record:
    """Maximise a task's value over its whole, conditional space; see `asked_and_told`."""
    import optuna

    study = optuna.create_study(direction="maximize", sampler=sampler)

    def ask() -> tuple[optuna.Trial, Configuration]:
        trial = study.ask()
        return trial, scenario.suggest(trial)

    return asked_and_told(scenario, run, ask, study.tell)


def asked_and_told(
    scenario: Scenario,
    run: Run,
    ask: Callable[[], tuple[T, Configuration]],
    tell: Callable[[T, float], object],
) -> Record:
    """Run a study of whatever can be asked for a trial and told its value.

    Returns:
        ``configurations``, ``values`` and ``ask_seconds`` of every trial; ``reference``: median
        and best of a random sample of the task.
    """
    configurations: list[Configuration] = []
    values, seconds = [], []
    for _ in range(run.trials):
        start = time.perf_counter()
        trial, configuration = ask()
        seconds.append(round(time.perf_counter() - start, 5))
        configurations.append(configuration)
        values.append(scenario.value(run.number, configuration))
        tell(trial, values[-1])
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
    sample = scenario.random_configurations(scenario.n_reference, np.random.default_rng(task))
    return sample, scenario.evaluate_many(task, sample)
