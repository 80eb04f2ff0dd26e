"""Meta-training on a Ray cluster: a process on each of several GPUs or CPUs, of any machine."""

from __future__ import annotations

from typing import Any

from dre_plugins.transfer.data_parallel import Job, Share

try:
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer, get_device
except ImportError as error:
    raise ImportError(
        "Meta-training on a cluster needs Ray: pip install 'dre-plugins[ray]'"
    ) from error

from torch import distributed

LOCAL = "local"


def run_on_cluster(job: Job, n: int, device: str, *, address: str) -> None:
    """Run a job on several processes of a cluster, and wait for all of them.

    Args:
        job: What each process does. Paths in it must mean the same on all machines.
        n: Number of processes, a CPU or a GPU each.
        device: "cpu", or "cuda" for a GPU each.
        address: Address of the cluster, "auto" for the one of this machine; "local" starts one.

    Raises:
        ray.train.TrainingFailedError: If one of them fails, with its traceback.
    """
    where: dict[str, Any] = {"num_cpus": n} if address == LOCAL else {"address": address}
    ray.init(**where, include_dashboard=False)
    try:
        TorchTrainer(
            _work,
            train_loop_config={"job": job},
            scaling_config=ScalingConfig(num_workers=n, use_gpu=device.startswith("cuda")),
            run_config=RunConfig(name="dre-meta-train"),
        ).fit()
    finally:
        ray.shutdown()


def _work(config: dict[str, Any]) -> None:
    share = Share(distributed.get_rank(), distributed.get_world_size())
    config["job"](share, str(get_device()))
