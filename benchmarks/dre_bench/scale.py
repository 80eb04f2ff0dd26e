"""What a device can do: a million candidates, batches of thousands of lists: `dre-bench scale`.

On a CPU, seconds are those of the processor on one thread, so that other programs do not count;
on a GPU those of the clock. Memory is the largest that a fresh process has held.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np
import torch

from dre_plugins.engine.acquisition import ACQUISITIONS
from dre_plugins.engine.ranks import ranks_against
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.space import Float
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings, Progress, meta_train
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.task_lists import TaskLists
from dre_plugins.transfer.training import SCORER

Result = TypeVar("Result")

N_PARAMETERS = 16
N_REFERENCE = 512
# Steps that are timed at a batch of one list; fewer at larger ones, as many before they count.
N_STEPS = 64


@dataclass(frozen=True)
class Scoring:
    """Hold how long it takes to choose among candidates.

    Attributes:
        device: Where it was computed.
        n_candidates: How many.
        seconds: To score, to rank, to choose the best by its acquisition.
        memory: Largest memory, bytes: of the process on a CPU, of the GPU on one.
    """

    device: str
    n_candidates: int
    seconds: tuple[float, float, float]
    memory: int


@dataclass(frozen=True)
class Throughput:
    """Hold how fast meta-training is at a batch.

    Attributes:
        device: Where it was computed.
        n_lists: Lists that each member sees in one step.
        n_members: Members.
        step: Seconds a step.
        memory: Largest memory, bytes: of the process on a CPU, of the GPU on one.
    """

    device: str
    n_lists: int
    n_members: int
    step: float
    memory: int

    @property
    def lists(self) -> float:
        """Return lists (of one member) a second."""
        return self.n_lists * self.n_members / self.step


def devices() -> list[str]:
    """Return the CPU, and the GPU if there is one."""
    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def scoring(device: str, n_candidates: int, n_members: int) -> Scoring:
    """Time the choice of the best of random candidates, in a process of its own."""
    return _in_fresh_process(_scoring, device, n_candidates, n_members)


def throughputs(
    device: str, n_lists: Sequence[int], n_members: int, n_tasks: int, n_evaluations: int
) -> list[Throughput]:
    """Time meta-training on synthetic tasks, in a process of its own.

    Args:
        device: Where to compute.
        n_lists: Batches.
        n_members: Members.
        n_tasks: Tasks.
        n_evaluations: Evaluations of each.
    """
    arguments = (device, sorted(n_lists), n_members, n_tasks, n_evaluations)
    return _in_fresh_process(_throughputs, *arguments)


@isolated(n_threads=1)
def _scoring(device: str, n_candidates: int, n_members: int) -> Scoring:
    generator = torch.Generator().manual_seed(0)
    settings = ScorerSettings(n_members=n_members)
    ensemble = DeepRankingEnsemble.initialise(settings, N_PARAMETERS, seed=0, device=device)
    candidates = torch.rand((n_candidates, N_PARAMETERS), generator=generator).to(device)
    reference = ensemble.scores(torch.rand((N_REFERENCE, N_PARAMETERS), generator=generator))
    seconds: list[float] = []
    scores = _timed(lambda: ensemble.scores(candidates), device, seconds)
    ranks = _timed(lambda: ranks_against(scores, reference), device, seconds)
    best = ranks_against(reference, reference)[:, 0]
    acquisition = ACQUISITIONS["log-rank-ei"]
    _timed(lambda: acquisition(ranks, best).argmax().item(), device, seconds)
    return Scoring(device, n_candidates, (seconds[0], seconds[1], seconds[2]), _memory(device))


@isolated(n_threads=1)
def _throughputs(
    device: str, n_lists: Sequence[int], n_members: int, n_tasks: int, n_evaluations: int
) -> list[Throughput]:
    tasks = [*_tasks(n_tasks, n_evaluations)]
    lists = TaskLists.of(tasks, tasks[0].space).to(device)
    rows = []
    for batch in n_lists:
        step = _step_seconds(lists, device, batch, n_members)
        rows.append(Throughput(device, batch, n_members, step, _memory(device)))
    return rows


def _step_seconds(lists: TaskLists, device: str, n_lists: int, n_members: int) -> float:
    """Return the seconds of a step between the first and the second look of a training."""
    n_steps = max(1, N_STEPS // n_lists)
    settings = MetaTrainingSettings(n_steps=2 * n_steps, n_lists=n_lists, validate_every=n_steps)
    times: list[float] = []

    def look(progress: Progress) -> None:
        times.append(_now(device))

    scorer = replace(SCORER, n_members=n_members)
    meta_train(lists, None, scorer, settings, seed=0, device=device, on_progress=look)
    return (times[1] - times[0]) / n_steps


def _tasks(n_tasks: int, n_evaluations: int) -> Iterator[Task]:
    rng = np.random.default_rng(0)
    space = SearchSpace({f"x{i:02}": Float(0.0, 1.0) for i in range(N_PARAMETERS)})
    failed = np.zeros(n_evaluations, dtype=np.bool_)
    for number in range(n_tasks):
        units = rng.random((n_evaluations, N_PARAMETERS))
        values = -((units - rng.random(N_PARAMETERS)) ** 2).sum(axis=1)
        yield Task(f"{number}", space, units, values, failed)


def _timed(compute: Callable[[], Result], device: str, seconds: list[float]) -> Result:
    start = _now(device)
    result = compute()
    seconds.append(_now(device) - start)
    return result


def _now(device: str) -> float:
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def _memory(device: str) -> int:
    if device != "cpu":
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _in_fresh_process(function: Callable[..., Result], *arguments: Any) -> Result:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
