"""`OptunaSearch(sampler=DRESampler())` in a real Tuner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dre_plugins.adapters.optuna import DRESampler

ray = pytest.importorskip("ray")
tune = pytest.importorskip("ray.tune")

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.filterwarnings("ignore")
def test_a_tuner_runs_30_trials(tiny_sampler: Callable[..., DRESampler], tmp_path: Path) -> None:
    from ray.tune.search.optuna import OptunaSearch

    def trainable(config: dict[str, Any]) -> dict[str, float]:
        return {"loss": (config["x"] - 0.3) ** 2 + config["n"] / 100 + (config["kind"] == "b")}

    sampler = tiny_sampler()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        results = tune.Tuner(
            trainable,
            param_space={
                "x": tune.uniform(0.0, 1.0),
                "n": tune.randint(0, 10),
                "kind": tune.choice(["a", "b"]),
            },
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                num_samples=30,
                search_alg=OptunaSearch(sampler=sampler),
                reuse_actors=True,  # a process per trial would take minutes
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        ).fit()
    finally:
        ray.shutdown()
    assert len(results) == 30
    assert results.num_errors == 0
    configurations = {tuple(sorted(result.config.items())) for result in results}
    assert len(configurations) == 30
    assert results.get_best_result().metrics["loss"] < 0.3
