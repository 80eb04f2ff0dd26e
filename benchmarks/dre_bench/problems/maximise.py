"""The plain problem: a study of one sampler that maximises the value of a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dre_bench.runs import Record, Run
from dre_bench.tasks import Configuration, Scenario

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler


def maximise(scenario: Scenario, run: Run, sampler: BaseSampler, *, batch: int = 1) -> Record:
    """Maximise a task's value over its whole, conditional space; see `asked_and_told`."""
    import optuna

    study = optuna.create_study(direction="maximize", sampler=sampler)
    trials: list[optuna.Trial] = []

    def ask(n: int) -> list[Configuration]:
        trials[:] = [study.ask() for _ in range(n)]
        return [scenario.suggest(trial) for trial in trials]

    def tell(values: Sequence[float]) -> None:
        for trial, value in zip(trials, values, strict=True):
            study.tell(trial, value)

    return asked_and_told(scenario, run, ask, tell, batch=batch)


def asked_and_told(
    scenario: Scenario,
    run: Run,
    ask: Callable[[int], list[Configuration]],
    tell: Callable[[Sequence[float]], object],
    *,
    batch: int,
) -> Record:
    """Run a study of whatever can be asked for configurations and told their values.

    Args:
        scenario: Evaluates configurations.
        run: The task, and how many trials.
        ask: Returns as many configurations as it is asked for, or fewer, but one at least.
        tell: Takes the values of those that were asked for last.
        batch: Configurations that are asked for at once.

    Returns:
        ``configurations``, ``values`` and ``ask_seconds`` of every trial (a batch's seconds are
        shared by its trials); ``reference``: median and best of a random sample of the task.
    """
    configurations: list[Configuration] = []
    values: list[float] = []
    seconds: list[float] = []
    while len(values) < run.trials:
        start = time.perf_counter()
        asked = ask(min(batch, run.trials - len(values)))
        seconds += [round((time.perf_counter() - start) / len(asked), 5)] * len(asked)
        configurations += asked
        told = [scenario.value(run.number, configuration) for configuration in asked]
        tell(told)
        values += told
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
