"""Where tests fork processes: from a server that has imported what takes seconds."""

from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import BaseContext, ForkServerContext
from typing import Any


def fork_server() -> ForkServerContext:
    """Return where processes are forked; Python 3.11 imports only installed packages there."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["optuna", "syne_tune", "dre_plugins.recommend.choices"])
    return context


def run_together(
    n_workers: int, job: Callable[..., Any], *arguments: Any, context: BaseContext | None = None
) -> list[Any]:
    """Return what a job returns in processes that start it at the same moment."""
    context = context or fork_server()
    meeting, results = context.Barrier(n_workers), context.SimpleQueue()
    target = partial(_meet, meeting, results, job, *arguments)
    workers = [context.Process(target=target) for _ in range(n_workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(200)  # on a busy machine
    assert [worker.exitcode for worker in workers] == [0] * n_workers
    return [results.get() for _ in workers]


def _meet(meeting: Any, results: Any, job: Callable[..., Any], *arguments: Any) -> None:
    meeting.wait()
    results.put(job(*arguments))
