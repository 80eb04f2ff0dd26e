"""Perform the runs of a benchmark on a Ray cluster instead of processes of this machine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict

import ray
from ray.exceptions import RayError

from dre_bench.runs import DIED, ONE_THREAD, Record, Run, Sources, Study, perform

LOCAL = "local"


def performed(
    study: Study, sources: Sources, runs: Sequence[Run], *, address: str, jobs: int
) -> Generator[Record, None, None]:
    """Perform runs, a CPU each; records come as runs end.

    Args:
        study: Runs one study.
        sources: Where data lie, at the same paths on all machines.
        runs: The runs, which begin in this order.
        address: Address of the cluster, "auto" for the one of this machine; "local" starts one.
        jobs: CPUs of a cluster that is started.
    """
    where = {"num_cpus": jobs} if address == LOCAL else {"address": address}
    ray.init(
        **where,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": ONE_THREAD},
    )
    try:
        # A crash ends one run, which is recorded; Ray would begin it anew.
        remote = ray.remote(num_cpus=1, max_retries=0)(perform)
        waiting = {remote.remote(study, sources, run): run for run in runs}
        while waiting:
            (done,), _ = ray.wait([*waiting], num_returns=1)
            run = waiting.pop(done)
            try:
                record: Record = ray.get(done)
            except RayError as error:
                record = {**asdict(run), "error": f"{DIED}: {error}"}
            yield record
    finally:
        ray.shutdown()
