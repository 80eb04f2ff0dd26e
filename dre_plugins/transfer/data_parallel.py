"""One meta-training on several processes, each of which computes a share of every step.

All of them draw the same lists from the same seed and compute the gradient of an equal share of
them; the gradients are averaged, so that all take the same step. What comes out is what a single
process would have found, up to the order in which numbers are added.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, distributed
from torch.multiprocessing.spawn import ProcessException, spawn

from dre_plugins.engine.settings import require

# Until a process that has crashed is noticed by the others; a look at the validation tasks of a
# large training takes seconds.
TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Share:
    """Say which share of the lists a process computes; the default is all of them.

    Args:
        rank: Number of the process, from 0.
        n: Number of processes.
    """

    rank: int = 0
    n: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this process writes files and shows progress."""
        return self.rank == 0

    def of(self, lists: Tensor) -> Tensor:
        """Return this process's share of what is drawn for each list `[M, B]`: `[M, B / n]`."""
        return lists[:, self.rank :: self.n]

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their means over all processes."""
        if self.n == 1:
            return
        flat = torch.cat([one.detach().reshape(-1) for one in tensors])
        distributed.all_reduce(flat)
        start = 0
        for one in tensors:
            one.copy_((flat[start : start + one.numel()] / self.n).reshape(one.shape))
            start += one.numel()

    def check(self, n_lists: int) -> None:
        """Raise a ValueError unless every process gets as many lists."""
        expected = f"a multiple of the {self.n} processes"
        require(n_lists % self.n == 0, "the number of lists of a step", n_lists, expected)


class Job(Protocol):
    """What each process does; it must be possible to pickle it."""

    def __call__(self, share: Share, device: str) -> None:
        """Compute a share on a device."""


def run_processes(job: Job, n: int, device: str) -> None:
    """Run a job on several processes of this machine, and wait for all of them.

    Args:
        job: What each process does.
        n: Number of processes.
        device: "cpu", or "cuda" for a GPU each.

    Raises:
        RuntimeError: If one of them fails; its traceback is that of the cause.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            spawn(_process, (n, device, Path(folder, "rendezvous").as_uri(), job), nprocs=n)
        except ProcessException as error:
            reason = str(error).strip().splitlines()[-1]
            raise RuntimeError(f"one of {n} processes failed: {reason}") from error


def _process(rank: int, n: int, device: str, rendezvous: str, job: Job) -> None:
    is_gpu = device.startswith("cuda")
    distributed.init_process_group(
        "nccl" if is_gpu else "gloo",
        init_method=rendezvous,
        rank=rank,
        world_size=n,
        timeout=TIMEOUT,
    )
    try:
        job(Share(rank, n), f"cuda:{rank}" if is_gpu else device)
    finally:
        distributed.destroy_process_group()
