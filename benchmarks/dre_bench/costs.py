"""What an ask costs where studies are unusual: `python -m dre_bench.costs [CASE ...]`.

Each case runs through the public API in a fresh process. Seconds are those of the processor, so
that other programs do not count, or of the clock where an ask may wait. Memory is how far the
largest that the process has held grows, once a small study has paid for imports.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from dre_plugins.recommend import TrialState
from dre_plugins.space import Categorical, Domain, Float, Integer
from dre_plugins.study import AskTell

Clock = Callable[[], float]
Ask = Callable[[], Any]

N_PARAMETERS = 5
N_TRIALS = 30
# Asks of each case: turns of the ensemble and of the universal prior, in a stagnating study too.
N_ASKS = 6


@dataclass(frozen=True)
class Cost:
    """Hold what the asks of a case cost.

    Args:
        seconds: Of the slowest ask.
        memory: Bytes that the process grew by.
    """

    seconds: float
    memory: int


def cost_of(case: str) -> Cost:
    """Return what a case costs, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_cost, case).result()


def _cost(case: str) -> Cost:
    _warm_up()
    make, clock, n_asks = CASES[case]
    ask = make()
    before = _memory()
    seconds = []
    for _ in range(n_asks):
        start = clock()
        ask()
        seconds.append(clock() - start)
    return Cost(max(seconds), _memory() - before)


def _warm_up() -> None:
    study = study_of(spheres(1), N_TRIALS)
    for _ in range(2 * N_ASKS):
        number, _ = study.ask()
        study.tell(number, 1.0)


def _memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


# ---- studies


def spheres(n: int) -> dict[str, Domain]:
    """Return a space of `n` times five numbers."""
    return {f"x{i}": Float(-1.0, 1.0) for i in range(n * N_PARAMETERS)}


def values_of(configuration: Mapping[str, Any], n_objectives: int) -> list[float]:
    """Return spheres around different centres, one for each objective."""
    numbers = np.array([float(number) for number in configuration.values()])
    return [float(((numbers - 0.3 * k) ** 2).sum()) for k in range(n_objectives)]


def violations_of(configuration: Mapping[str, Any], n_constraints: int) -> dict[str, float]:
    """Return how far a configuration is beyond planes that each cut off a part of the space."""
    numbers = np.array([*configuration.values()])
    normals = np.random.default_rng(1).normal(size=(n_constraints, len(numbers)))
    return {f"c{i}": float(normal @ numbers - 0.5) for i, normal in enumerate(normals)}


def study_of(
    domains: Mapping[str, Domain],
    n_trials: int,
    *,
    n_running: int = 0,
    n_objectives: int = 1,
    n_constraints: int = 0,
    n_rungs: int = 0,
) -> AskTell:
    """Return a study with random trials in it, the running ones last."""
    study = AskTell(domains, direction=["minimize"] * n_objectives, seed=0)
    rng = np.random.default_rng(0)
    for number, units in enumerate(rng.random((n_trials + n_running, len(domains)))):
        configuration = study.space.to_configuration(units)
        if number >= n_trials:
            study.add(configuration, None, state=TrialState.RUNNING)
            continue
        values = values_of(configuration, n_objectives)
        is_pruned = n_rungs > 0 and number % 2 == 1
        reached = 1 + number % n_rungs if is_pruned else n_rungs
        study.add(
            configuration,
            None if is_pruned else values[0] if n_objectives == 1 else values,
            state=TrialState.PRUNED if is_pruned else None,
            rungs={step: values[0] / step for step in range(1, reached + 1)},
            constraints=violations_of(configuration, n_constraints),
        )
    return study


def _told(study: AskTell) -> Ask:
    """Return an ask whose trial ends at once, worse than all others."""

    def ask() -> None:
        number, _ = study.ask()
        study.tell(number, None)

    return ask


def _running(n_running: int, n_trials: int = N_TRIALS) -> Ask:
    return _told(study_of(spheres(1), n_trials, n_running=n_running))


def _batch(count: int) -> Ask:
    study = study_of(spheres(1), N_TRIALS)
    return lambda: study.ask_batch(count)


def _choices(n_parameters: int, n_choices: int) -> Ask:
    domain = Categorical(tuple(range(n_choices)))
    return _told(study_of({f"x{i}": domain for i in range(n_parameters)}, 130))


def _numbers(n_parameters: int) -> Ask:
    return _told(study_of(spheres(n_parameters // N_PARAMETERS), 130))


def _integers(n_parameters: int) -> Ask:
    return _told(study_of({f"x{i}": Integer(0, 9) for i in range(n_parameters)}, 130))


def _several(n_trials: int, n_objectives: int, n_constraints: int) -> Ask:
    study = study_of(spheres(1), n_trials, n_objectives=n_objectives, n_constraints=n_constraints)
    return _told(study)


def _best_trials() -> Ask:
    study = study_of(spheres(1), 20_000, n_objectives=3)
    return lambda: study.best_trials


def _optuna_study(n_zombies: int) -> Any:
    import optuna

    from dre_plugins.adapters.optuna import DRESampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(N_TRIALS):
        trial = study.ask()
        x = [trial.suggest_float(f"x{i}", -1.0, 1.0) for i in range(N_PARAMETERS)]
        study.tell(trial, sum(number**2 for number in x))
    for _ in range(n_zombies):
        trial = study.ask()
        for i in range(N_PARAMETERS):
            trial.suggest_float(f"x{i}", -1.0, 1.0)
    study.sampler = DRESampler(seed=0)
    return study


def _optuna_ask(study: Any) -> None:
    trial = study.ask()
    for i in range(N_PARAMETERS):
        trial.suggest_float(f"x{i}", -1.0, 1.0)
    study.tell(trial, 9.0)


def _optuna_zombies(n_zombies: int) -> Ask:
    study = _optuna_study(n_zombies)
    return lambda: _optuna_ask(study)


def _beside_a_silent_trial() -> Ask:
    """Return an ask beside a trial of another sampler, which asks for nothing for a while."""
    import optuna

    study = _optuna_study(0)
    _optuna_ask(study)
    ours, study.sampler = study.sampler, optuna.samplers.RandomSampler(seed=0)
    study.ask()
    study.sampler = ours
    return lambda: _optuna_ask(study)


CPU, WALL = time.process_time, time.perf_counter

CASES: dict[str, tuple[Callable[[], Ask], Clock, int]] = {
    "plain": (lambda: _running(0), CPU, N_ASKS),
    "batch of 10": (lambda: _batch(10), CPU, 1),
    "batch of 16": (lambda: _batch(16), CPU, 1),
    "batch of 30": (lambda: _batch(30), CPU, 1),
    "batch of 100": (lambda: _batch(100), CPU, 1),
    "batch of 400": (lambda: _batch(400), CPU, 1),
    "64 running": (lambda: _running(64), CPU, N_ASKS),
    "1000 running": (lambda: _running(1000), CPU, N_ASKS),
    "3000 running": (lambda: _running(3000), CPU, N_ASKS),
    "3000 running, 130 complete": (lambda: _running(3000, 130), CPU, N_ASKS),
    "1000 running in Optuna": (lambda: _optuna_zombies(1000), CPU, N_ASKS),
    "300 choices of ten": (lambda: _choices(300, 10), CPU, N_ASKS),
    "30 choices of a hundred": (lambda: _choices(30, 100), CPU, N_ASKS),
    "1000 numbers": (lambda: _numbers(1000), CPU, N_ASKS),
    "1000 integers": (lambda: _integers(1000), CPU, N_ASKS),
    "beside a silent trial": (_beside_a_silent_trial, WALL, 1),
    "3 objectives, 10 constraints": (lambda: _several(130, 3, 10), CPU, N_ASKS),
    "1 objective, 30 constraints": (lambda: _several(130, 1, 30), CPU, N_ASKS),
    "1 objective, 100 constraints": (lambda: _several(130, 1, 100), CPU, N_ASKS),
    "10 objectives": (lambda: _several(130, 10, 0), CPU, N_ASKS),
    "20,000 complete": (lambda: _running(0, 20_000), CPU, N_ASKS),
    "20,000 of 3 objectives": (lambda: _several(20_000, 3, 0), CPU, N_ASKS),
    "rungs": (lambda: _told(study_of(spheres(1), 2000, n_rungs=27)), CPU, N_ASKS),
    "best_trials of 20,000": (_best_trials, CPU, 1),
}


def main(names: Sequence[str]) -> None:
    """Print what the cases cost, all of them by default."""
    print(f"{'case':30} {'s':>7} {'MB':>6}")
    for name in names or CASES:
        cost = cost_of(name)
        print(f"{name:30} {cost.seconds:7.2f} {math.ceil(cost.memory / 2**20):6d}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
